"""A second set of kinds of bugs for judging (`FRESH`), written before `layered` was changed.

The kinds in `kinds.JUDGING` had been looked at three times by then: their table says in which kinds
the old `layered` was behind, and that is where the ideas for a change came from. So they judge it
no longer. These were written, drawn and stored (`fresh_bugs.json`) before any strategy or
candidate was run on them, except the single strategies that say which bugs are kept.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from bug_families.kinds import (
    KINDS,
    Numbers,
    Parameters,
    Rows,
    Tests,
    kind,
    longest_run,
    running,
    up_to,
)

_BEFORE = set(KINDS)


@kind(
    "one of `sources` raises a level, one of `drains` lowers it to no less than 0; another feature "
    "is used while the level is exactly `level`",
    lambda rng, n, steps: {
        "level": up_to(rng, steps / 4, 2),
        "sources": (s := up_to(rng, n - 2)),
        "drains": up_to(rng, n - 1 - s),
    },
)
def boundary(tests: Tests, p: Mapping[str, int]) -> Rows:
    up = tests.among(1, 1 + p["sources"])
    down = tests.among(1 + p["sources"], 1 + p["sources"] + p["drains"])
    height = running(up) - running(down)
    level = height - np.minimum(np.minimum.accumulate(height, axis=1), 0)
    found: Rows = np.any(tests.among(0, 1) & (level == p["level"]), axis=1)
    return found


@kind(
    "a feature is used after `gap` steps in which none of `busy` others was",
    lambda rng, n, steps: {"gap": up_to(rng, steps / 2, 2), "busy": up_to(rng, n - 1)},
)
def idle(tests: Tests, p: Mapping[str, int]) -> Rows:
    places = np.arange(tests.steps.shape[1], dtype=np.int32)
    busy = tests.among(1, 1 + p["busy"])
    last = np.maximum.accumulate(np.where(busy, places, -1), axis=1)
    # Before the first busy step nothing has been started that could become idle.
    found: Rows = np.any(tests.among(0, 1) & (last >= 0) & (places - last > p["gap"]), axis=1)
    return found


@kind(
    "at least `percent` of the steps, `least` of them, use one of `members` features, and each of "
    "these is used",
    lambda rng, n, steps: {
        "members": (k := up_to(rng, n - 1)),
        "percent": rng.randint(min(95, 100 * k // n + 10), 98),
        "least": up_to(rng, steps / 2),
    },
)
def majority(tests: Tests, p: Mapping[str, int]) -> Rows:
    of_members = tests.counts[:, : p["members"]]
    total = of_members.sum(axis=1)
    enough = (total * 100 >= p["percent"] * tests.lengths) & (total >= p["least"])
    found: Rows = enough & (of_members > 0).all(axis=1)
    return found


@kind(
    "between two uses of a feature, each of `others` is used, and none of `absent`",
    lambda rng, n, steps: {
        "others": (k := up_to(rng, min(n - 1, 12))),
        "absent": rng.randint(0, n - 1 - k),
    },
)
def between(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, width = p["others"], tests.steps.shape[1]
    places = np.arange(width, dtype=np.int32)
    used = tests.among(0, 1)
    before = _last_before(used)
    after = before >= 0
    # Since the use before: the last use of each of the others, of none of the absent ones.
    for number in range(1, 1 + k):
        last = np.maximum.accumulate(np.where(tests.among(number, number + 1), places, -1), axis=1)
        after &= last > before
    absent = tests.among(1 + k, 1 + k + p["absent"])
    last_absent = np.maximum.accumulate(np.where(absent, places, -1), axis=1)
    found: Rows = np.any(used & after & (last_absent <= before), axis=1)
    return found


def _last_before(used: Rows) -> Numbers:
    """Return for each step the last marked step before it, or -1."""
    places = np.arange(used.shape[1], dtype=np.int32)
    last = np.maximum.accumulate(np.where(used, places, -1), axis=1)
    before: Numbers = np.concatenate(
        [np.full((len(last), 1), -1, last.dtype), last[:, :-1]], axis=1
    )
    return before


@kind(
    "`pieces` features, `times` rounds of them, in their order, with anything between",
    lambda rng, n, steps: {
        "pieces": (k := rng.randint(2, max(2, min(8, n)))),
        "times": up_to(rng, max(1, steps / k / 2)),
    },
)
def rounds(tests: Tests, p: Mapping[str, int]) -> Rows:
    waiting = np.zeros(len(tests.steps), np.int32)
    for column in tests.steps.T:
        waiting += column == waiting % p["pieces"]
    found: Rows = waiting >= p["pieces"] * p["times"]
    return found


@kind(
    "the use number `number` of a feature is directly followed by another feature; `absent` others "
    "are not used before",
    lambda rng, n, steps: {
        "number": 2 ** rng.randint(1, max(1, int(np.log2(max(4, steps / 8))))),
        "absent": rng.randint(0, n - 2),
    },
)
def grown(tests: Tests, p: Mapping[str, int]) -> Rows:
    used = tests.among(0, 1)
    there = used & (running(used) == p["number"])
    absent = running(tests.among(2, 2 + p["absent"])) == 0
    follows = tests.among(1, 2)[:, 1:]
    found: Rows = np.any(there[:, :-1] & absent[:, :-1] & follows, axis=1)
    return found


@kind(
    "`most` features are used at least once and at most `few` times each, each of `others` `times` "
    "times",
    lambda rng, n, steps: {
        "most": (k := up_to(rng, n / 2)),
        "few": up_to(rng, 4),
        "others": (m := up_to(rng, n - k)),
        "times": up_to(rng, steps / m / 2, 2),
    },
)
def seldom(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, counts = p["most"], tests.counts
    rare = np.all((counts[:, :k] > 0) & (counts[:, :k] <= p["few"]), axis=1)
    found: Rows = rare & np.all(counts[:, k : k + p["others"]] >= p["times"], axis=1)
    return found


@kind(
    "`pairs` pairs of features, each used equally often, at least `times` times",
    lambda rng, n, steps: {
        "pairs": (k := rng.randint(1, max(1, min(3, n // 2)))),
        "times": up_to(rng, steps / n / k),
    },
)
def equal_counts(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, counts = p["pairs"], tests.counts
    left, right = counts[:, :k], counts[:, k : 2 * k]
    found: Rows = ((left == right) & (left >= p["times"])).all(axis=1)
    return found


@kind(
    "`times` changes between steps of `members` features and steps of the others, with each of "
    "`needed` of the others used",
    lambda rng, n, steps: {
        "members": (k := rng.randint(1, n - 1)),
        "needed": up_to(rng, n - k),
        "times": up_to(rng, steps * 0.8, 2),
    },
)
def churn(tests: Tests, p: Mapping[str, int]) -> Rows:
    steps, k = tests.steps, p["members"]
    inside = steps < k
    real = steps[:, 1:] < tests.features
    changes = ((inside[:, 1:] != inside[:, :-1]) & real).sum(axis=1)
    found: Rows = (changes >= p["times"]) & (tests.counts[:, k : k + p["needed"]] > 0).all(axis=1)
    return found


@kind(
    "the first use of each of `objects` features comes before the first of `closing` others, and "
    "after that the first object is used `times` times",
    lambda rng, n, steps: {
        "objects": (k := up_to(rng, min(n - 1, 6))),
        "closing": up_to(rng, n - k),
        "times": up_to(rng, steps / n / 2),
    },
)
def after_close(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, width = p["objects"], tests.steps.shape[1]
    closed = tests.first(k, k + p["closing"])
    opened = np.all([tests.first(number, number + 1) < closed for number in range(k)], axis=0)
    uses = running(tests.among(0, 1))
    later = uses[:, -1] - uses[np.arange(len(uses)), np.minimum(closed, width - 1)]
    found: Rows = opened & (closed < width) & (later >= p["times"])
    return found


@kind(
    "`length` steps in a row that use at most `members` of the features, and each of `needed` in "
    "the whole test",
    lambda rng, n, steps: {
        "members": (k := rng.randint(1, max(1, n // 3))),
        "length": up_to(rng, steps / 2, 3),
        "needed": rng.randint(1, max(1, min(n, 2 * k))),
    },
)
def narrow(tests: Tests, p: Mapping[str, int]) -> Rows:
    # The members are the first features of those that must be used in the whole test.
    row = longest_run(tests.among(0, p["members"])) >= p["length"]
    found: Rows = row & (tests.counts[:, : p["needed"]] > 0).all(axis=1)
    return found


@kind(
    "a geometric ladder of `rungs` features: each is used `low` to `high` tenths as often as the "
    "one before, the last at least once",
    lambda rng, n, steps: {
        "rungs": rng.randint(2, max(2, min(5, n))),
        "low": (low := rng.randint(1, 6)),
        "high": low + rng.randint(1, 4),
    },
)
def ladder(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts[:, : p["rungs"]]
    above, below = counts[:, :-1], counts[:, 1:]
    met = (below * 10 >= p["low"] * above) & (below * 10 <= p["high"] * above)
    found: Rows = met.all(axis=1) & (counts[:, -1] > 0)
    return found


def _fresh(rng: random.Random, n: int, steps: int) -> Parameters:
    k = up_to(rng, n - 1)
    return {"members": k, "most": up_to(rng, steps / 2), "times": up_to(rng, 4)}


@kind(
    "each of `members` features `times` times, within the first `most` steps, and never again",
    _fresh,
)
def early(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, most = p["members"], p["most"]
    last = tests.last(0, k)
    found: Rows = (tests.counts[:, :k] >= p["times"]).all(axis=1) & (last < most)
    return found


@kind(
    "`sizes` or more different features in the test, and no feature more than `percent` percent of "
    "its steps, `least` steps",
    lambda rng, n, steps: {
        "sizes": (k := rng.randint(2, n)),
        "percent": min(95, int(100 / k * (1.2 + 2 * rng.random()))),
        "least": up_to(rng, steps * 0.8, 2),
    },
)
def spread(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts, lengths = tests.counts, tests.lengths
    even = counts.max(axis=1) * 100 <= p["percent"] * lengths
    found: Rows = even & ((counts > 0).sum(axis=1) >= p["sizes"]) & (lengths >= p["least"])
    return found


FRESH = tuple(name for name in KINDS if name not in _BEFORE)
