"""How often the methods of a class refuse the arguments that a derived machine draws.

A method that refuses every call is not tested. That is found by a few tests in a fork, before the
campaign, because a test may do anything to its process.
"""

from __future__ import annotations

from collections import Counter

from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.subjects.api import ApiMachine
from swarmtest.subjects.machine.subject import MachineSubject

_TESTS = 30
_SECONDS = 5.0
_FEWEST = 5
"""Fewer calls of a method tell nothing."""


def trial_calls(subject: MachineSubject, tests: int = _TESTS) -> dict[str, tuple[int, int]]:
    """Return, for each method, how many calls of a few tests it accepted, and how many there were.

    The result is empty if the tests end their process or take too long.

    >>> from collections import UserList
    >>> from swarmtest.subjects.api import api_machine
    >>> accepted, calls = trial_calls(MachineSubject(api_machine(UserList)))["append"]
    >>> accepted == calls > 0
    True
    """

    def count() -> dict[tuple[str, bool], int]:
        for seed in range(tests):
            subject.execute(subject.space.default(), seed)
        machine = subject.machine
        return dict(machine.calls) if issubclass(machine, ApiMachine) else {}

    try:
        counted = Counter(in_fork(count, _SECONDS))
    except NoAnswer:
        return {}
    names = dict.fromkeys(name for name, _ in counted)
    return {
        name: (counted[name, True], counted[name, True] + counted[name, False]) for name in names
    }


def never_accepted(calls: dict[str, tuple[int, int]]) -> list[str]:
    """Return the methods that refused every call.

    >>> never_accepted({"open": (0, 9), "read": (1, 10), "close": (0, 1)})
    ['open']
    """
    return sorted(name for name, (accepted, of) in calls.items() if of >= _FEWEST and not accepted)


def rejection_rows(calls: dict[str, tuple[int, int]]) -> list[tuple[str, str, str]]:
    """Return the methods with the calls that they rejected, and all calls; the worst first.

    >>> rejection_rows({"size": (9, 9), "open": (0, 9)})
    [('open', '9', '9'), ('size', '0', '9')]
    """
    worst = sorted(calls.items(), key=lambda item: (item[1][0] / max(item[1][1], 1), item[0]))
    return [(name, str(of - accepted), str(of)) for name, (accepted, of) in worst]
