"""Threads of the system serve many runs; a program sees new threads in each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType

import pytest
from threaded_programs import AB_BA, AIRLINES

from swarmtest.race.accelerator import OFF, accelerator_status
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import RandomWalk

Load = Callable[[str], ModuleType]
_SERVED = sys.version_info < (3, 13) or (
    sys.version_info < (3, 14) and accelerator_status().startswith("C")
)
pytestmark = pytest.mark.skipif(not _SERVED, reason="each thread has one of the system here")

LOOKING = """
    import contextvars, sys, threading

    local = threading.local()
    variable = contextvars.ContextVar("variable", default=None)
    natives, found = [], []

    def look():
        found.append((getattr(local, "value", None), variable.get(), sys.gettrace()))
        natives.append(threading.get_native_id())
        local.value = 1
        variable.set(2)
        sys.settrace(lambda *_: None)

    def test():
        for _ in range(2):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
"""


def run_of(test: Callable[[], object]) -> None:
    run = controlled_run(test, RandomWalk(1))
    assert (run.fault, run.problem) == (None, "")


def test_nothing_of_one_run_is_seen_by_the_threads_of_the_next(load: Load) -> None:
    program = load(LOOKING)
    for _ in range(3):
        run_of(program.test)
    assert program.found == [(None, None, None)] * 6
    assert len(set(program.natives)) == 2  # they were the same threads of the system


def test_two_threads_of_a_run_are_two_threads_of_the_system(load: Load) -> None:
    program = load(LOOKING)
    run_of(program.test)
    assert len(set(program.natives)) == 2


def test_a_thread_knows_who_it_is(load: Load) -> None:
    program = load("""
        import threading

        seen = {}

        def look():
            me = threading.current_thread()
            seen["inside"] = me.name, me.ident == threading.get_ident(), me.is_alive()
            seen["native"] = me.native_id == threading.get_native_id()
            seen["listed"] = me in threading.enumerate()

        def test():
            thread = threading.Thread(target=look, name="looker")
            assert thread.ident is None
            thread.start()
            assert thread.ident not in (None, threading.get_ident()) and thread.is_alive()
            thread.join()
            seen["after"] = thread.is_alive(), thread in threading.enumerate(), thread.ident is None
            try:
                thread.start()
            except RuntimeError as error:
                seen["again"] = str(error)
            seen["thread"] = thread
    """)
    for _ in range(2):
        run_of(program.test)
        assert program.seen["inside"] == ("looker", True, True)
        assert program.seen["native"]
        assert program.seen["listed"]
        assert program.seen["after"] == (False, False, False)
        assert program.seen["again"] == "threads can only be started once"
        program.seen["thread"].join(1)  # also when no run is on
        assert not program.seen["thread"].is_alive()
    assert threading.active_count() == 1


def test_thread_locals_are_gone_before_the_thread_is_joined(load: Load) -> None:
    program = load("""
        import threading

        closed = []

        class Connection:
            def __del__(self):
                closed.append(threading.get_ident())

        local = threading.local()

        def work():
            local.connection = Connection()

        def test():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert closed.pop() == thread.ident
    """)
    for _ in range(2):
        run_of(program.test)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_ends_with_its_thread(load: Load) -> None:
    program = load("""
        import os, threading

        codes = []

        def fork():
            child = os.fork()
            if child:
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        def test():
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()
    """)
    run_of(program.test)
    assert program.codes == [0]


def test_a_program_that_wants_larger_stacks_has_them(load: Load) -> None:
    program = load(LOOKING)
    run_of(program.test)
    before = threading.stack_size(1 << 20)
    try:
        run_of(program.test)
    finally:
        threading.stack_size(before)
    shared = set(program.natives[:2]) & set(program.natives[2:])
    assert not shared


def test_more_threads_than_are_kept_are_no_problem(load: Load) -> None:
    program = load("""
        import threading

        def test():
            threads = [threading.Thread(target=lambda: None) for _ in range(80)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    """)
    for _ in range(2):
        run_of(program.test)
    listed = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
    assert listed < 160


@pytest.mark.parametrize("text", [AB_BA, AIRLINES])
def test_runs_are_the_same_without_the_accelerator(
    load: Load, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    test = load(text).test
    with_it = [controlled_run(test, RandomWalk(seed, 0.2)) for seed in range(8)]
    monkeypatch.setenv(OFF, "1")
    without = [controlled_run(test, RandomWalk(seed, 0.2)) for seed in range(8)]
    assert [run.schedule for run in with_it] == [run.schedule for run in without]
    assert [run.fault for run in with_it] == [run.fault for run in without]
    assert any(run.fault for run in with_it)
