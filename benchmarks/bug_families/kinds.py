"""Generators of bugs: each kind draws any number of bugs, and says which tests find one.

A bug is about which features a test uses, how often, and in which order. Features are numbers; a
bug names the first few. No strategy treats one feature otherwise than another, so that is any few.

The kinds are split into those that choose the shares of `layered` (`TUNING`) and those that judge
every strategy (`JUDGING`). The split is by kind, so that no bug is judged whose like was tuned on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int32]
Parameters: TypeAlias = dict[str, int]

WORLDS = (
    *((3, 20), (3, 100), (4, 50), (5, 200), (6, 30), (8, 100), (9, 500), (10, 10), (10, 200)),
    *((12, 100), (12, 512), (16, 50), (20, 100), (20, 500), (30, 100), (30, 2000), (45, 200)),
    *((60, 50), (60, 500), (100, 200), (100, 1000), (200, 100), (200, 1000)),
)
"""Numbers of features, and of steps of a test."""


class Tests:
    """The steps of some tests: a row for each, its features by number, then `features` as filler.

    A test in which weights have used up steps is shorter than the others.
    """

    def __init__(self, steps: npt.NDArray[Any], features: int) -> None:
        self.steps = steps
        self.features = features

    @cached_property
    def counts(self) -> Numbers:
        """How often each test uses each feature."""
        rows, width = len(self.steps), self.features + 1
        cells = self.steps + np.arange(rows, dtype=np.int64)[:, None] * width
        counted = np.bincount(cells.ravel(), minlength=rows * width).reshape(rows, width)
        return counted[:, : self.features].astype(np.int32)

    @cached_property
    def lengths(self) -> Numbers:
        lengths: Numbers = self.counts.sum(axis=1, dtype=np.int32)
        return lengths

    def among(self, low: int, high: int) -> Rows:
        """Which steps use one of the features from `low` to before `high`."""
        return (self.steps >= low) & (self.steps < high)

    def first(self, low: int, high: int) -> Numbers:
        """The step at which each test first uses one of some features; the last step for none."""
        used = self.among(low, high)
        first = used.argmax(axis=1)
        places: Numbers = np.where(used.any(axis=1), first, used.shape[1]).astype(np.int32)
        return places

    def last(self, low: int, high: int) -> Numbers:
        """The step at which each test last uses one of some features; -1 for none."""
        used = self.among(low, high)[:, ::-1]
        last = used.shape[1] - 1 - used.argmax(axis=1)
        places: Numbers = np.where(used.any(axis=1), last, -1).astype(np.int32)
        return places


def running(used: Rows) -> Numbers:
    """How many steps of each test are marked, up to and including each step."""
    counted: Numbers = np.cumsum(used, axis=1, dtype=np.int32)
    return counted


def longest_run(used: Rows) -> Numbers:
    """The length of each test's longest run of marked steps."""
    counted = running(used)
    before = np.maximum.accumulate(np.where(used, 0, counted), axis=1)
    longest: Numbers = (counted - before).max(axis=1)
    return longest


Draw: TypeAlias = Callable[[random.Random, int, int], Parameters]
Found: TypeAlias = Callable[[Tests, Mapping[str, int]], Rows]


@dataclass(frozen=True)
class Kind:
    """A kind of bugs: how to draw the parameters of one, and which tests find it."""

    draw: Draw
    found: Found
    tells: str


KINDS: dict[str, Kind] = {}


def kind(tells: str, draw: Draw) -> Callable[[Found], Found]:
    """Return a decorator that adds a kind, with the function that says which tests find a bug."""

    def add(found: Found) -> Found:
        KINDS[found.__name__] = Kind(draw, found, tells)
        return found

    return add


def up_to(rng: random.Random, most: float, least: int = 1) -> int:
    """Draw a number whose logarithm is uniform."""
    most = max(least, most)
    return min(int(most), int(least * (most / least + 1e-9) ** rng.random() + rng.random()))


# Which features a test uses.


@kind(
    "each of `needed` features at least once",
    lambda rng, n, steps: {"needed": rng.randint(1, n)},
)
def needed(tests: Tests, p: Mapping[str, int]) -> Rows:
    found: Rows = np.all(tests.counts[:, : p["needed"]] > 0, axis=1)
    return found


@kind(
    "each of `needed` features at least `times` times, and none of `absent` others",
    lambda rng, n, steps: {
        "needed": (k := up_to(rng, n - 1)),
        "absent": up_to(rng, n - k),
        "times": up_to(rng, steps / k / 2),
    },
)
def absent(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, counts = p["needed"], tests.counts
    enough = (counts[:, :k] >= p["times"]).all(axis=1)
    found: Rows = enough & (counts[:, k : k + p["absent"]] == 0).all(axis=1)
    return found


@kind(
    "all but at most `missing` of all features, and not the first",
    lambda rng, n, steps: {"missing": up_to(rng, n / 3)},
)
def nearly_all(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts
    found: Rows = (counts[:, 0] == 0) & ((counts == 0).sum(axis=1) <= p["missing"])
    return found


@kind(
    "at most `most` different features, with the first two `times` times each",
    lambda rng, n, steps: {"most": rng.randint(2, max(2, n // 3)), "times": up_to(rng, steps / 5)},
)
def few(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts
    sparse = (counts > 0).sum(axis=1) <= p["most"]
    found: Rows = sparse & (counts[:, :2] >= p["times"]).all(axis=1)
    return found


# How often.


@kind(
    "each of `needed` features at least `times` times",
    lambda rng, n, steps: {"needed": (k := up_to(rng, n)), "times": up_to(rng, steps / k)},
)
def frequent(tests: Tests, p: Mapping[str, int]) -> Rows:
    found: Rows = np.all(tests.counts[:, : p["needed"]] >= p["times"], axis=1)
    return found


@kind(
    "one feature exactly `times` times and another one used, none of `absent` others",
    lambda rng, n, steps: {"times": up_to(rng, min(12, steps / 3)), "absent": up_to(rng, n - 2)},
)
def exact(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts
    met = (counts[:, 0] == p["times"]) & (counts[:, 1] > 0)
    found: Rows = met & (counts[:, 2 : 2 + p["absent"]] == 0).all(axis=1)
    return found


@kind(
    "`needed` features are used, none of them more than `factor` tenths as often as another",
    lambda rng, n, steps: {
        "needed": rng.randint(max(2, n // 2), n),
        "factor": rng.randint(12, 40),
        "times": up_to(rng, steps / n),
    },
)
def balance(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts[:, : p["needed"]]
    least = counts.min(axis=1)
    found: Rows = (least >= p["times"]) & (counts.max(axis=1) * 10 <= least * p["factor"])
    return found


@kind(
    "`times` steps, with one feature at least `factor` times as often as another that is used",
    lambda rng, n, steps: {"factor": up_to(rng, 20, 3), "times": up_to(rng, steps / 3, 3)},
)
def ratio(tests: Tests, p: Mapping[str, int]) -> Rows:
    a, b = tests.counts[:, 0], tests.counts[:, 1]
    found: Rows = (b > 0) & (a >= p["factor"] * b) & (a + b >= p["times"])
    return found


@kind(
    "each of `needed` features 0.3 to 0.7 times as often as each of as many others",
    lambda rng, n, steps: {
        "needed": rng.randint(1, max(1, min(5, n // 2))),
        "times": up_to(rng, steps / n / 2),
    },
)
def half_as_common(tests: Tests, p: Mapping[str, int]) -> Rows:
    k = p["needed"]
    rare, common = tests.counts[:, :k], tests.counts[:, k : 2 * k]
    low = np.maximum(p["times"], 0.3 * common.max(axis=1))
    high = 0.7 * common.min(axis=1)
    found: Rows = (rare.min(axis=1) >= low) & (rare.max(axis=1) <= high)
    return found


@kind(
    "`needed` features, each at least `factor` tenths as often as the next, all used",
    lambda rng, n, steps: {
        "needed": rng.randint(3, max(3, min(6, n))),
        "factor": rng.randint(12, 30),
        "times": up_to(rng, 8),
    },
)
def ranking(tests: Tests, p: Mapping[str, int]) -> Rows:
    counts = tests.counts[:, : p["needed"]]
    ordered = (counts[:, :-1] * 10 >= counts[:, 1:] * p["factor"]).all(axis=1)
    found: Rows = ordered & (counts[:, -1] >= p["times"])
    return found


@kind(
    "one feature `factor` times as often as each of `others` that are all used",
    lambda rng, n, steps: {"factor": up_to(rng, 12, 2), "others": rng.randint(2, n - 1)},
)
def dominant(tests: Tests, p: Mapping[str, int]) -> Rows:
    others = tests.counts[:, 1 : 1 + p["others"]]
    used = others.min(axis=1) > 0
    found: Rows = used & (tests.counts[:, 0] >= p["factor"] * others.max(axis=1))
    return found


@kind(
    "`odd` features an odd number of times, `even` others an even number, not 0",
    lambda rng, n, steps: {"odd": (k := up_to(rng, min(7, n - 1))), "even": up_to(rng, n - k)},
)
def parity(tests: Tests, p: Mapping[str, int]) -> Rows:
    k, counts = p["odd"], tests.counts
    even = counts[:, k : k + p["even"]]
    found: Rows = (counts[:, :k] % 2 == 1).all(axis=1) & ((even > 0) & (even % 2 == 0)).all(axis=1)
    return found


@kind(
    "at most `most` steps in the test, with `needed` features among them",
    lambda rng, n, steps: {"needed": (k := up_to(rng, min(n, 5))), "most": k + up_to(rng, steps)},
)
def short(tests: Tests, p: Mapping[str, int]) -> Rows:
    found: Rows = (tests.lengths <= p["most"]) & (tests.counts[:, : p["needed"]] > 0).all(axis=1)
    return found


# In which order.


@kind(
    "one feature `depth` times more often than `down` others, counted from any 0",
    lambda rng, n, steps: {"depth": up_to(rng, steps / 2, 2), "down": rng.randint(1, n - 1)},
)
def depth(tests: Tests, p: Mapping[str, int]) -> Rows:
    height = running(tests.among(0, 1)) - running(tests.among(1, 1 + p["down"]))
    lowest = np.minimum(np.minimum.accumulate(height, axis=1), 0)
    found: Rows = (height - lowest).max(axis=1) >= p["depth"]
    return found


@kind(
    "`length` steps in a row of `members` features, with the first among them",
    lambda rng, n, steps: {"length": up_to(rng, steps / 2, 2), "members": up_to(rng, n / 2)},
)
def run(tests: Tests, p: Mapping[str, int]) -> Rows:
    used = tests.counts[:, 0] > 0
    found: Rows = used & (longest_run(tests.among(0, p["members"])) >= p["length"])
    return found


@kind(
    "within `width` steps, one feature `times` times and none of `absent` others",
    lambda rng, n, steps: {
        "width": (w := up_to(rng, steps / 2, 4)),
        "times": up_to(rng, w / 2, 2),
        "absent": up_to(rng, n - 1),
    },
)
def window(tests: Tests, p: Mapping[str, int]) -> Rows:
    hits = running(tests.among(0, 1))
    resets = running(tests.among(1, 1 + p["absent"]))
    width = p["width"]
    inside = (hits[:, width:] - hits[:, :-width] >= p["times"]) & (
        resets[:, width:] == resets[:, :-width]
    )
    at_start = (hits[:, width - 1] >= p["times"]) & (resets[:, width - 1] == 0)
    found: Rows = inside.any(axis=1) | at_start
    return found


@kind(
    "`times` uses of one feature before any of `resets` others; afterwards each of `needed`",
    lambda rng, n, steps: {
        "times": up_to(rng, steps / 3),
        "resets": up_to(rng, n - 1),
        "needed": up_to(rng, n - 1),
    },
)
def start_up(tests: Tests, p: Mapping[str, int]) -> Rows:
    first = tests.first(1, 1 + p["resets"])
    uses = running(tests.among(0, 1))
    width = uses.shape[1]
    ready = np.where(first > 0, uses[np.arange(len(uses)), np.minimum(first, width) - 1], 0)
    needs = range(tests.features - p["needed"], tests.features)
    done = np.all([tests.last(number, number + 1) >= first for number in needs], axis=0)
    found: Rows = (ready >= p["times"]) & (first < width) & done
    return found


@kind(
    "all uses of each of `phases` features come before all uses of the next, `times` of each",
    lambda rng, n, steps: {"phases": rng.randint(2, max(2, min(5, n))), "times": up_to(rng, 6)},
)
def phases(tests: Tests, p: Mapping[str, int]) -> Rows:
    k = p["phases"]
    met = [
        tests.last(number, number + 1) < tests.first(number + 1, number + 2)
        for number in range(k - 1)
    ]
    found: Rows = np.all([np.all(tests.counts[:, :k] >= p["times"], axis=1), *met], axis=0)
    return found


@kind(
    "`pieces` different features one directly after the other, in their order",
    lambda rng, n, steps: {"pieces": rng.randint(2, max(2, min(6, n)))},
)
def sequence(tests: Tests, p: Mapping[str, int]) -> Rows:
    steps, k = tests.steps, p["pieces"]
    width = steps.shape[1] - k + 1
    met = np.all([steps[:, number : number + width] == number for number in range(k)], axis=0)
    found: Rows = np.any(met, axis=1)
    return found


@kind(
    "`gap` steps or more between two uses of a feature, with each of `needed` others in the test",
    lambda rng, n, steps: {"gap": up_to(rng, steps * 0.8, 3), "needed": up_to(rng, n - 1)},
)
def distance(tests: Tests, p: Mapping[str, int]) -> Rows:
    places = np.arange(tests.steps.shape[1], dtype=np.int32)
    used = tests.among(0, 1)
    at = np.maximum.accumulate(np.where(used, places, -1), axis=1)
    before = np.concatenate([np.full((len(at), 1), -1, at.dtype), at[:, :-1]], axis=1)
    apart = (used & (before >= 0) & (places - before >= p["gap"])).any(axis=1)
    found: Rows = apart & (tests.counts[:, 1 : 1 + p["needed"]] > 0).all(axis=1)
    return found


@kind(
    "two features in turns, `turns` changes with no step of another feature between",
    lambda rng, n, steps: {"turns": up_to(rng, min(40, steps / 2), 2)},
)
def alternation(tests: Tests, p: Mapping[str, int]) -> Rows:
    steps = tests.steps
    change = (steps[:, 1:] != steps[:, :-1]) & (steps[:, 1:] < 2) & (steps[:, :-1] < 2)
    found: Rows = longest_run(change) >= p["turns"]
    return found


# The examples of the swarm testing paper and of the blog (`machines.py`).


@kind("`times` uses of one feature in all, none of another between them", lambda rng, n, steps: {})
def opens(tests: Tests, p: Mapping[str, int]) -> Rows:
    uses = running(tests.among(0, 1))
    at_close = np.maximum.accumulate(np.where(tests.among(1, 2), uses, 0), axis=1)
    found: Rows = (uses - at_close).max(axis=1) >= p["times"]
    return found


@kind(
    "a feature after `history` steps, with a second one `factor` times as often as a third",
    lambda rng, n, steps: {},
)
def optimize(tests: Tests, p: Mapping[str, int]) -> Rows:
    often, rare = running(tests.among(1, 2)), running(tests.among(2, 3))
    history = running(tests.steps < tests.features)
    ready: Rows = (history > p["history"]) & (rare > 0) & (often >= p["factor"] * rare)
    found: Rows = np.any(tests.among(0, 1) & ready, axis=1)
    return found


TUNING = (
    *("needed", "absent", "frequent", "ratio", "half_as_common", "short"),
    *("depth", "run", "window", "phases"),
)
JUDGING = (
    *("nearly_all", "few", "exact", "balance", "ranking", "dominant", "parity"),
    *("start_up", "sequence", "distance", "alternation"),
)


PAPER = ("opens", "optimize")


@dataclass(frozen=True)
class Bug:
    """One bug: its kind, how many features there are, how long tests are, its parameters."""

    kind: str
    features: int
    steps: int
    parameters: Parameters = field(hash=False)

    def found(self, tests: Tests) -> Rows:
        """Return which tests find it."""
        return KINDS[self.kind].found(tests, self.parameters)

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"{self.kind}: {numbers} ({self.features} features, {self.steps} steps)"


def draw_bug(kind_name: str, seed: int) -> Bug:
    """Draw a bug of a kind; it may be trivial, or out of reach (see `calibration`)."""
    rng = random.Random(f"{kind_name} {seed}")
    features, steps = rng.choice(WORLDS)
    return Bug(kind_name, features, steps, KINDS[kind_name].draw(rng, features, steps))


PAPER_BUGS = (
    Bug("depth", 2, 100, {"depth": 33, "down": 1}),
    Bug("depth", 3, 200, {"depth": 33, "down": 2}),
    Bug("optimize", 3, 200, {"history": 100, "factor": 5}),
    Bug("half_as_common", 10, 512, {"needed": 3, "times": 10}),
    Bug("opens", 9, 512, {"times": 64}),
)
"""The rows of `detection.py`."""

BUGS_FILE = Path(__file__).with_name("bugs.json")
FRESH_FILE = Path(__file__).with_name("fresh_bugs.json")


def read_bugs(kinds: tuple[str, ...]) -> list[Bug]:
    """Return the calibrated bugs of some kinds."""
    stored = json.loads(BUGS_FILE.read_text()) | json.loads(FRESH_FILE.read_text())
    return [Bug(name, *entry) for name in kinds for entry in stored[name]]
