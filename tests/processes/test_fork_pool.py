"""Processes that answer questions one after the other answer each as if it were the first."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

import pytest

from swarmtest.processes.fork_pool import ForkPool, wait_for_any


def answers(pool: ForkPool[Any], *questions: Any) -> list[Any]:
    found = []
    for question in questions:
        asked = pool.ask(question)
        wait_for_any([asked])
        found.append(asked.outcome())
    return found


def lower_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def set_variable() -> None:
    os.environ["LEFT"] = "behind"


CHANGES = [
    lower_limit,
    set_variable,
    lambda: os.chdir("/"),
    lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
    lambda: setattr(__import__("builtins"), "isinstance", None),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_in_which_something_changed_answers_no_more(change: Callable[[], Any]) -> None:
    def answer(question: str) -> int:
        if question == "change":
            change()
        return os.getpid()

    with ForkPool(answer, seconds=30) as pool:
        first, second, changed, third = answers(pool, "", "", "change", "")
    assert first == second == changed != third


def test_what_most_questions_change_is_the_way_in_which_a_program_works() -> None:
    def answer(question: int) -> int:
        os.environ["LAST"] = str(question)
        return os.getpid()

    with ForkPool(answer, seconds=30) as pool:
        processes = answers(pool, *range(12))
    assert len(set(processes)) == 5
    assert len(set(processes[-6:])) == 1
