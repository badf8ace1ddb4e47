"""Whatever a program does to its process is a fault of exactly that test, and of no other."""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path

import pytest

from swarmtest.store import open_store

NASTY = Path(__file__).with_name("nasty.py")
TESTS = 30
TESTS_IF_THEY_HANG = 10
HANGS = {
    "loop",
    "loop_in_sort",
    "loop_in_regex",
    "long_c_call",
    "stopped",
    "close_and_loop",
    "handle_all_signals",
}
EXPECTED = {
    "segfault": ("signal", "SIGSEGV"),
    "os_exit": ("exit", "exit status 3"),
    "os_exit_0": ("exit", "exit status 0"),
    "sys_exit": ("exception", "SystemExit"),
    "abort": ("signal", "SIGABRT"),
    "killed": ("signal", "SIGKILL"),
    "kill_group": ("signal", "SIGTERM"),
    "stopped": ("timeout", "timeout"),
    "loop": ("timeout", "timeout"),
    "loop_in_sort": ("timeout", "timeout"),
    "loop_in_regex": ("timeout", "timeout"),
    "long_c_call": ("timeout", "timeout"),
    "close_and_loop": (None, ""),
    "handle_all_signals": ("timeout", "timeout"),
    "memory": ("memory", "MemoryError"),
    "unprintable": ("exception", "Unprintable"),
    "exits_when_printed": ("exception", "ExitsWhenPrinted"),
    "unexaminable": ("exception", "Unexaminable: (it cannot be examined)"),
    "without_class": ("exception", "WithoutClass: (it cannot be examined)"),
    "overwrite_descriptors": ("exit", "file descriptors that are not its own"),
    "write_to_descriptors": ("exit", "file descriptors that are not its own"),
    "replace_builtins": ("exit", "the program changed its process"),
    "replace_functions": ("exception", "functions are replaced"),
    "surrogate": ("exception", "ValueError: bad text"),
    "long_message": ("exception", "ValueError: ab"),
    "keyboard_interrupt": ("exception", "KeyboardInterrupt"),
    "generator_exit": ("exception", "GeneratorExit"),
    "recursion": ("exception", "RecursionError"),
    "close_everything": (None, ""),
    "noisy": ("exception", "RuntimeError: noisy"),
    "forks_and_child_returns": ("exception", "the parent goes on"),
    "fork_and_linger": ("signal", "SIGSEGV"),
    "in_a_forked_process": ("exception", "the other one exited"),
    "with_threads": ("exception", "threads are left"),
    "change_directory": ("exception", "elsewhere"),
    "subprocess_left": ("exception", "a process is left"),
}


@pytest.fixture(scope="module")
def campaign(swarmtest, tmp_path_factory):
    """Run the nasty program, once per way to be nasty; how it ended, and the store it filled.

    Those that hang have a second, which no other test needs: they are fewer, for they take it.
    """

    @functools.cache
    def run(strike, workers=2):
        here = tmp_path_factory.mktemp(strike)
        store = here / "s.db"
        hangs = strike in HANGS
        done = swarmtest(
            *("run", NASTY, "-n", TESTS_IF_THEY_HANG if hangs else TESTS, "-j", workers),
            *("-s", "coin", "--seed", 7, "--timeout", "1s" if hangs else "1m"),
            *("--memory", "500MB", "--store", store, "-q", "--allow-unused"),
            *("--reduce-time", "1s"),  # faults are reduced, too, but that is not what we wait for
            cwd=here,
            STRIKE=strike,
        )
        return done, store

    return run


@pytest.fixture(scope="module")
def marked_rows(campaign, rows):
    """What every trial is when the strike is a plain exception, in this order."""
    done, store = campaign("mark", workers=0)
    assert done.returncode == 1, done.stderr
    found = rows(store)
    failing = [row["trial"] for row in found if row["verdict"]]
    assert 4 <= len(failing) <= 10
    assert any(b - a > 1 for a, b in itertools.pairwise(failing))
    assert len([trial for trial in failing if trial < TESTS_IF_THEY_HANG]) == 3
    return found


@pytest.mark.parametrize("strike", EXPECTED)
def test_it_is_a_fault_of_exactly_that_test(strike, campaign, rows, marked_rows):
    done, store = campaign(strike)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    marked = marked_rows[:TESTS_IF_THEY_HANG] if strike in HANGS else marked_rows
    found = rows(store)
    assert [row["trial"] for row in found] == [row["trial"] for row in marked]
    failing = [row["trial"] for row in found if row["verdict"] == 1]
    assert failing == [row["trial"] for row in marked if row["verdict"] == 1]
    same = ("configuration", "seed", "verdict", "steps", "used")
    for row, expected in zip(found, marked, strict=True):
        assert {key: row[key] for key in same} == {key: expected[key] for key in same}
        if not row["verdict"]:
            assert row["hits"] == expected["hits"]
    with open_store(str(store)) as opened:
        faults = opened.faults(1)
        assert opened.campaign(1).status == "finished"
    kind, words = EXPECTED[strike]
    for fault in faults:
        assert kind in (None, fault.kind)
        assert words in fault.signature
        assert "\n" not in fault.signature
    assert len(faults) == 1, [fault.signature for fault in faults]
    assert sum(fault.count for fault in faults) == len(failing)


def test_the_shortest_test_of_a_crash_has_its_last_step_last(campaign):
    _, store = campaign("segfault")
    with open_store(str(store)) as opened:
        (fault,) = opened.faults(1)
    assert fault.test
    steps = json.loads(fault.test)["steps"]
    assert steps[-1] == ["strike", [7]]
    assert ["strike", [7]] not in steps[:-1]
    assert fault.size == len(steps)


def test_a_crash_names_the_python_function_that_crashed(campaign):
    _, store = campaign("segfault")
    with open_store(str(store)) as opened:
        (fault,) = opened.faults(1)
    assert "strike" in fault.signature


@pytest.mark.parametrize("strike", ["segfault", "loop", "os_exit", "unprintable"])
def test_replaying_a_deadly_test_shows_the_same_fault(strike, campaign, swarmtest):
    _, store = campaign(strike)
    with open_store(str(store)) as opened:
        (fault,) = opened.faults(1)
    done = swarmtest(
        *("replay", f"1#{fault.trial}", "--store", store, "--timeout", "1s"),
        cwd=store.parent,
        STRIKE=strike,
    )
    assert done.returncode == 1
    assert "the same as recorded" in done.stdout, done.stdout


@pytest.mark.parametrize("strike", ["kill_parent", "end_parent"])
def test_killing_the_parent_is_a_fault_of_exactly_that_test(strike, campaign, rows, marked_rows):
    done, store = campaign(strike)
    assert done.returncode == 1, done.stderr
    found = rows(store)
    assert [(row["trial"], row["verdict"]) for row in found] == [
        (row["trial"], row["verdict"]) for row in marked_rows
    ]
    with open_store(str(store)) as opened:
        (fault,) = opened.faults(1)
    assert fault.signature == "the program killed the process that had started it"


@pytest.mark.parametrize("strike", ["stop_parent", "replace_open"])
def test_what_only_others_would_feel_costs_nobody_anything(strike, campaign, rows, marked_rows):
    done, store = campaign(strike)
    assert done.returncode == 0, done.stderr
    found = rows(store)
    assert [row["trial"] for row in found] == [row["trial"] for row in marked_rows]
    assert not any(row["verdict"] for row in found)
