"""Every run ends, and what cannot be controlled is said in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest

from swarmtest.core.errors import UserError
from swarmtest.processes.fork import in_fork
from swarmtest.race.control import watchdog
from swarmtest.race.control.runner import controlled_run, minimised_schedule, nothing_to_schedule
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.control.watchdog import time_limit
from swarmtest.race.free.runner import free_run

Load = Callable[[str], ModuleType]


def test_a_program_without_threads_has_nothing_to_schedule() -> None:
    run = controlled_run(lambda: None, RandomWalk(1))
    assert nothing_to_schedule(run) == "the program starts no thread: there is nothing to schedule"


def test_a_program_with_one_task_of_asyncio_has_nothing_to_schedule(load: Load) -> None:
    program = load("""
        import asyncio
        async def work():
            await asyncio.sleep(0.01)
        def test():
            asyncio.run(work())
    """)
    run = controlled_run(program.test, RandomWalk(1))
    assert (run.fault, run.problem) == (None, "")
    assert "one task of asyncio only" in nothing_to_schedule(run)


def test_a_livelock_is_a_fault(load: Load) -> None:
    program = load("""
        import threading
        stop = []
        def spin():
            while not stop:
                pass
        def test():
            thread = threading.Thread(target=spin)
            thread.start()
            thread.join()
    """)
    run = controlled_run(program.test, RandomWalk(1), most_probes=5_000)
    assert run.fault
    assert run.fault.kind == "livelock"
    assert run.fault.signature == "livelock [spin]"
    assert run.fault.details.startswith("the run did not end within 5,000 probes")
    assert run.steps <= 5_001


def test_livelocks_of_different_threads_are_different_faults(load: Load) -> None:
    program = load("""
        import threading
        stop = []
        def spin():
            while not stop:
                pass
        def wait():
            while not stop:
                stop.clear()
        def run(target):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    """)
    shown = [
        controlled_run(partial(program.run, loop), RandomWalk(seed), most_probes=2_000).fault
        for loop, seed in [(program.spin, 1), (program.spin, 2), (program.wait, 1)]
    ]
    signatures = [fault and fault.signature for fault in shown]
    assert signatures == ["livelock [spin]", "livelock [spin]", "livelock [wait]"]


def test_main_that_blocks_outside_of_probes_ends_with_a_line(load: Load) -> None:
    program = load("""
        import os, threading
        reads, writes = os.pipe()
        def test():
            thread = threading.Thread(target=lambda: os.write(writes, b"x"))
            thread.start()
            open(reads, "rb", 0, closefd=False).read(1)  # the other thread is never asked
    """)
    problems = {
        controlled_run(program.test, RandomWalk(seed), seconds=0.5).problem for seed in range(4)
    }
    problems -= {""}
    assert len(problems) == 1
    assert "main is in test, " in problems.pop()


def test_main_is_ended_where_interrupts_are_ignored_too(load: Load) -> None:
    """As in what a shell runs in the background."""
    program = load("""
        import os, threading
        reads, writes = os.pipe()
        def test():
            threading.Thread(target=int).start()
            open(reads, "rb", 0, closefd=False).read(1)
    """)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = controlled_run(program.test, RandomWalk(0), seconds=0.5)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert "main is in test, " in run.problem


def test_a_thread_that_blocks_outside_of_probes_is_left(load: Load) -> None:
    program = load("""
        import os, threading
        reads, writes = os.pipe()
        file = open(reads, "rb", 0)
        def test():
            thread = threading.Thread(target=file.read, args=(1,))
            thread.start()
            thread.join()
    """)
    run = controlled_run(program.test, RandomWalk(1), seconds=0.5)
    assert run.fault is None
    assert "main.1 is" in run.problem
    assert "waits where there are no probes" in run.problem
    os.write(program.writes, b"x")  # so that it ends
    _wait_for_end_of_threads()


def test_python_code_without_probes_is_ended() -> None:
    def busy() -> None:
        while True:
            pass

    def test() -> None:
        thread = threading.Thread(target=busy)
        thread.start()
        thread.join()

    run = controlled_run(test, RandomWalk(1), seconds=0.5)
    assert "main.1 is in " in run.problem
    _wait_for_end_of_threads()


def test_a_thread_that_catches_everything_is_left() -> None:
    code = """
from threading import Thread
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.primitives.policy import prepare
from swarmtest.race.weaving.weaver import weave
source = '''
def never_ends(box):
    while True:
        try:
            box.n = 1
        except BaseException:
            pass
'''
names = {}
prepare(names)
exec(weave(source, "program.py"), names)
class Box: pass
def test():
    Thread(target=names["never_ends"], args=(Box(),), daemon=True).start()
for seed in range(3):
    print(*controlled_run(test, RandomWalk(seed)).notes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    line = "main.1 cannot be ended: it catches every exception; it was left"
    told = set(done.stdout.splitlines())  # where it had not begun it could be ended
    assert (told - {""}, done.stderr) == ({line}, "")


def _wait_for_end_of_threads() -> None:
    deadline = time.monotonic() + 60
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == 1


def test_a_program_may_end_by_exit(load: Load) -> None:
    program = load("""
        import sys
        def well():
            sys.exit(0)
        def badly():
            sys.exit(3)
    """)
    assert controlled_run(program.well, RandomWalk(1)).fault is None
    fault = controlled_run(program.badly, RandomWalk(1)).fault
    assert fault
    assert (fault.kind, fault.signature) == ("exit", "SystemExit: # [badly: sys.exit(3)]")


def test_a_program_that_ends_its_process_is_stopped(load: Load) -> None:
    program = load("""
        import os, threading
        def test():
            thread = threading.Thread(target=os._exit, args=(7,))
            thread.start()
            thread.join()
    """)
    run = controlled_run(program.test, RandomWalk(1))
    assert run.problem == "the program ends its process by os._exit(7)"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_program_may_fork(load: Load) -> None:
    program = load("""
        import os, threading
        codes = []
        def fork():
            child = os.fork()
            if not child:
                os._exit(5)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        def test():
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()
    """)
    run = controlled_run(program.test, RandomWalk(1))
    assert (run.fault, run.problem, program.codes) == (None, "", [5])
    assert run.notes == ("the program forks: what its child processes do is not controlled",)


def test_a_child_that_comes_back_from_the_run_ends_there() -> None:
    code = """
import os
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.control.runner import controlled_run
run = controlled_run(os.fork, RandomWalk(1))
print("once", os.wait()[1] >> 8)
"""
    ignored = "ignore::DeprecationWarning"
    command = [sys.executable, "-W", ignored, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "once 1\n"
    assert "a process that the program forked came back from the run" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def _free_problem() -> str:
    return free_run(lambda: None).problem


def _controlled_problem() -> str:
    return controlled_run(lambda: None, RandomWalk(1)).problem


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("run", [_free_problem, _controlled_problem])
def test_a_process_forked_while_the_watchdog_is_busy_has_its_own(run: Callable[[], str]) -> None:
    busy, forked = threading.Event(), threading.Event()

    def ask_to_end() -> None:
        busy.set()
        forked.wait(60)

    with time_limit(0.0, ask_to_end, lambda: True):
        assert busy.wait(60)
        try:
            assert in_fork(run, 20) == ""
        finally:
            forked.set()


def test_time_for_which_the_machine_was_suspended_does_not_end_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    now = 0.0
    monkeypatch.setattr(watchdog, "raw_monotonic", lambda: now)
    limit = watchdog.TimeLimit(1.0, lambda: asked.append(now), lambda: True)
    now = 3_600.0
    limit.enforce()
    assert not asked
    while not asked and now < 3_700:
        now += 0.1
        limit.enforce()
    assert 3_600.5 < asked[0] < 3_601.5


def test_runs_cannot_be_nested() -> None:
    def test() -> None:
        controlled_run(lambda: None, RandomWalk(1))

    fault = controlled_run(test, RandomWalk(1)).fault
    assert fault
    assert "runs cannot be nested" in fault.details


def test_an_interrupt_of_the_user_ends_the_run_and_goes_on(load: Load) -> None:
    program = load("""
        import signal, threading
        def interrupt():
            signal.raise_signal(signal.SIGINT)
            while True:
                threading.current_thread().name
        def test():
            thread = threading.Thread(target=interrupt)
            thread.start()
            thread.join()
    """)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        controlled_run(program.test, RandomWalk(1))
    assert threading.active_count() == 1


def test_a_function_that_depends_on_more_than_its_schedule_is_told(load: Load) -> None:
    program = load("""
        import threading
        calls = []
        def test():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            calls.append(1)
            assert len(calls) > 1
    """)
    run = controlled_run(program.test, RandomWalk(1))
    assert run.fault
    with pytest.raises(UserError, match="depends on more than the order of its threads"):
        minimised_schedule(program.test, run.schedule, run.fault)
