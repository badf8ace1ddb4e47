"""The undirected campaign that comes first when there is no data, and what it leaves of a budget.

Invariant: a limit of time is for all of it. What the baseline took, the directed campaign lacks.
"""

from __future__ import annotations

from dataclasses import replace

from swarmtest.campaign import Budget

TESTS = 2000
_SHARE = 0.25
"""Of the time."""
_SHARE_IF_ASKED = 0.5
"""Of the time, when the number of tests was named."""
_SECONDS = 15.0
_LEAST_SECONDS = 0.1
_LEAST_SHARE = 0.1


def baseline_of(budget: Budget, tests: int | None = None) -> Budget:
    """The budget of a baseline; `tests`: how many were asked for.

    >>> baseline_of(Budget(wall_seconds=300)).describe()
    '2,000 tests or 75 s'
    """
    share = _SHARE if tests is None else _SHARE_IF_ASKED
    wall, cpu = budget.wall_seconds, budget.cpu_seconds
    if wall is not None:
        wall = share * wall
    elif tests is None:
        wall = _SECONDS
    cpu = share * cpu if cpu is not None else None
    return Budget(tests=tests or TESTS, wall_seconds=wall, cpu_seconds=cpu)


def rest_of(budget: Budget, wall_seconds: float, cpu_seconds: float) -> Budget:
    """What is left of a budget after so much time; of a baseline that took too long, a little.

    >>> rest_of(Budget(wall_seconds=300), 75.4, 0.0).describe()
    '224.6 s'
    """
    wall, cpu = budget.wall_seconds, budget.cpu_seconds
    if wall is not None:
        wall = round(max(wall - wall_seconds, _LEAST_SHARE * wall, _LEAST_SECONDS), 1)
    if cpu is not None:
        cpu = round(max(cpu - cpu_seconds, _LEAST_SHARE * cpu), 3)
    return replace(budget, wall_seconds=wall, cpu_seconds=cpu)
