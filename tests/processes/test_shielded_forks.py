"""A test may kill, end or stop its parent: the program that waits for it is told, and goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.processes.fork_pool import ForkPool, run_isolated, wait_for_any

LONG = 120


def passes() -> Result:
    return Result(Verdict.PASSED)


def signal_parent(number: int) -> Result:
    os.kill(os.getppid(), number)
    return passes()


def test_a_test_that_kills_its_parent_fails_and_is_named() -> None:
    result = run_isolated(lambda: signal_parent(signal.SIGKILL), LONG)
    assert result.fault is not None
    assert result.fault.signature == "the program killed the process that had started it"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGHUP])
def test_other_signals_to_its_parent_have_no_effect(number: int) -> None:
    assert run_isolated(lambda: signal_parent(number), LONG).verdict == Verdict.PASSED


def test_a_test_that_stops_its_parent_and_dies_is_known_for_how_it_died() -> None:
    def stop_and_die() -> Result:
        os.kill(os.getppid(), signal.SIGSTOP)
        os._exit(9)

    result = run_isolated(stop_and_die, LONG)
    assert result.fault is not None
    assert "exit status 9" in result.fault.signature


def test_a_hanging_test_still_says_where_it_hangs() -> None:
    def hang_somewhere() -> Result:
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(1000)
        return passes()

    result = run_isolated(hang_somewhere, 0.5)
    assert result.fault is not None
    assert result.fault.kind == "timeout"
    assert "hang_somewhere" in result.fault.details


def test_a_pool_goes_on_after_a_question_that_killed_a_parent() -> None:
    def answer(number: int) -> Result:
        return signal_parent(signal.SIGKILL) if number else passes()

    with ForkPool(answer, LONG) as pool:
        outcomes = []
        for number in (0, 1, 0):
            asked = pool.ask(number)
            wait_for_any([asked])
            outcomes.append(asked.outcome())
    assert [type(outcome).__name__ for outcome in outcomes] == ["Result", "Fault", "Result"]


def test_a_function_that_kills_its_parent_gives_no_answer() -> None:
    with pytest.raises(NoAnswer, match="it killed its parent"):
        in_fork(lambda: os.kill(os.getppid(), signal.SIGKILL), LONG)


def overwrite_descriptors() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3, 256):
        os.dup2(null, number)


def close_descriptors() -> None:
    os.closerange(3, 256)


@pytest.mark.parametrize("spoil", [overwrite_descriptors, close_descriptors])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_test_that_takes_our_descriptors_fails_in_its_time(
    spoil: Callable[[], None], goes_on: bool
) -> None:
    def run() -> Result:
        spoil()
        while goes_on:
            pass
        return passes()

    result = run_isolated(run, 2 if goes_on else LONG)
    assert result.fault is not None
    assert result.fault.kind == ("timeout" if goes_on else "exit")
