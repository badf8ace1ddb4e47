"""Criteria for reduction: when a smaller test is still good enough, and how good a reduction is.

A criterion is any callable that takes parts and returns True or False. Those here know nothing
about subjects: they receive functions that run the parts. A criterion may have a method
`reason(parts)`, which says why the original does not meet it. `ShellCommand` is the criterion of
creduce and similar tools: a command that ends with status 0.

Coverage and mutants are those of chapter 3 of the dissertation: C%-coverage keeps a share of what
the original reached, and N-mutant keeps N of the mutants that it killed, always the same ones. The
metrics at the end of this module are those of its section 3.4. All of them are shares from 0 to 1,
and higher is better.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.processes.commands import capture

Part = TypeVar("Part")
Target = TypeVar("Target", bound=Hashable)

TOOK_TOO_LONG = 124
"""The exit status of ``timeout`` for a command that took too long."""
_NOT_STARTED = {126: "cannot be run", 127: "was not found"}
"""The shell's exit statuses for a command that it could not start."""


class Criterion(Protocol):
    """A decision whether parts are still interesting; see `Repeated` for unreliable ones."""

    def __call__(self, parts: Sequence[Any], /) -> bool:
        """Return whether these parts are interesting."""


class Repeated:
    """A criterion that holds if another one, which is not reliable, holds in `k` of `n` runs.

    It makes no more runs than are needed to decide.

    >>> rolls = iter([True, False, True, False])
    >>> Repeated(lambda parts: next(rolls), k=2, n=4)([])
    True
    >>> next(rolls)
    False
    """

    def __init__(self, criterion: Callable[[Sequence[Any]], bool], k: int, n: int) -> None:
        if not 1 <= k <= n:
            raise UserError(f"{k} of {n} runs cannot be required; k is from 1 to n")
        self._criterion = criterion
        self.k = k
        self.n = n

    def __call__(self, parts: Sequence[Any], /) -> bool:
        met = 0
        for run in range(self.n):
            met += bool(self._criterion(parts))
            if met >= self.k:
                return True
            if met + self.n - run - 1 < self.k:
                return False
        return False

    def count(self, parts: Sequence[Any]) -> int:
        """Return in how many of `n` runs the criterion holds, which shows how flaky it is."""
        return sum(bool(self._criterion(parts)) for _ in range(self.n))

    def why_not(self, met: int) -> str:
        """Return why that many runs are not enough."""
        return f"{met} of {self.n} runs met it, {self.k} are needed"


class CoverageKept:
    """A criterion that keeps a share of what the original reached: C%-coverage.

    `reached` may yield the targets one by one; no more than needed are taken from it.

    >>> still = CoverageKept(lambda parts: parts, original={1, 2, 3, 4}, share=0.75)
    >>> still([1, 2, 9]), still([1, 2, 3])
    (False, True)
    """

    def __init__(
        self,
        reached: Callable[[Sequence[Any]], Iterable[Target]],
        original: Collection[Target],
        share: float = 1.0,
    ) -> None:
        if not 0 < share <= 1:
            raise UserError(
                f"a share of {share:g} of the coverage cannot be kept; above 0, up to 1"
            )
        if not original:
            raise UserError("the original reaches no target, so there is no coverage to keep")
        self._reached = reached
        self._original = frozenset(original)
        self.share = share
        # 0.07 * 100 is slightly more than 7 in floating point, but 8 targets are not meant.
        self.needed = math.ceil(round(share * len(self._original), 9))
        """How many of the original's targets are enough."""

    def __call__(self, parts: Sequence[Any], /) -> bool:
        met: set[Hashable] = set()
        for target in self._reached(parts):
            if target in self._original:
                met.add(target)
                if len(met) >= self.needed:
                    return True
        return False

    def reason(self, parts: Sequence[Any]) -> str:
        """Return why the criterion is not met."""
        met = len(self._original & frozenset(self._reached(parts)))
        return f"it reaches {met} of {len(self._original)} targets now, {self.needed} are needed"


class TargetsKept(CoverageKept):
    """A criterion that holds if all of these targets are reached.

    >>> TargetsKept(lambda parts: parts, wanted={1, 2})([1, 2, 3])
    True
    """

    def __init__(
        self,
        reached: Callable[[Sequence[Any]], Iterable[Target]],
        wanted: Collection[Target],
    ) -> None:
        if not wanted:
            raise UserError("no targets are given that the smaller test has to keep")
        super().__init__(reached, wanted)


class MutantsKept:
    """A criterion that holds if all of these mutants are killed: N-mutant reduction.

    `kills` decides about one mutant, and the first survivor decides about the parts. The last
    mutant that survived is tried first, because the next candidate often fails to kill it too.

    >>> MutantsKept(lambda parts, mutant: mutant in parts, wanted=[3, 5])([3, 4])
    False
    """

    def __init__(
        self, kills: Callable[[Sequence[Any], Target], bool], wanted: Iterable[Target]
    ) -> None:
        self._kills = kills
        self._wanted = list(dict.fromkeys(wanted))
        if not self._wanted:
            raise UserError("no mutants are given that the smaller test has to kill")

    def __call__(self, parts: Sequence[Any], /) -> bool:
        for mutant in list(self._wanted):
            if not self._kills(parts, mutant):
                self._wanted.remove(mutant)
                self._wanted.insert(0, mutant)
                return False
        return True

    def reason(self, parts: Sequence[Any]) -> str:
        """Return why the criterion is not met."""
        killed = sum(self._kills(parts, mutant) for mutant in self._wanted)
        return f"it kills {killed} of the {len(self._wanted)} mutants"


def first_to_add(
    reached: Sequence[Collection[Target]], original: Collection[Target], share: float = 1.0
) -> tuple[int, ...]:
    """Return the indices of the first parts that reach enough for a share: a good first candidate.

    `reached` has what has been reached after each part. If the share is below 1, parts that add
    much are chosen before parts that add little. The indices are in ascending order.

    >>> first_to_add([{1}, {1}, {1, 2, 3}, {1, 2, 3, 4}], {1, 2, 3, 4}, share=0.75)
    (0, 2)
    """
    wanted = frozenset(original)
    reached_before: set[Target] = set()
    gains: list[tuple[int, int]] = []
    for part, met in enumerate(reached):
        new = (wanted & frozenset(met)) - reached_before
        reached_before |= new
        if new:
            gains.append((len(new), part))
    chosen: list[int] = []
    left = math.ceil(round(share * len(wanted), 9))
    for gain, part in sorted(gains, key=lambda pair: (-pair[0], pair[1])):
        if left <= 0:
            break
        chosen.append(part)
        left -= gain
    return tuple(sorted(chosen))


class ShellCommand:
    """A criterion that holds if a shell command ends with status 0.

    The joined parts are written to a file of the given name in a temporary directory, and the
    command runs there. The file's name replaces ``{}`` in the command, or is its last argument if
    there is no ``{}``. A command that takes longer than `seconds` is killed with all its children,
    and the parts count as not interesting.

    >>> ShellCommand("grep -q needle", name="hay.txt")([b"hay ", b"needle"])
    True
    """

    def __init__(self, command: str, name: str = "test", seconds: float = 10.0) -> None:
        if not command.strip():
            raise UserError("the command that decides what is interesting is empty")
        if name in ("", "..") or Path(name).name != name:
            raise UserError(f"{name!r} is not a file name; write one without a directory")
        file = f"'{name}'" if "'" not in name else f'"{name}"'
        self._command = command.replace("{}", file) if "{}" in command else f"{command} {file}"
        self._name = name
        self._seconds = seconds

    def __call__(self, parts: Sequence[bytes | str], /) -> bool:
        return self.status(parts) == 0

    def reason(self, parts: Sequence[bytes | str]) -> str:
        """Return why the criterion is not met."""
        status = self.status(parts)
        if status == TOOK_TOO_LONG:
            return f"`{self._command}` takes more than {self._seconds:g} s"
        if status in _NOT_STARTED:
            return f"`{self._command}` {_NOT_STARTED[status]}"
        return f"`{self._command}` ends with status {status}, not 0"

    def status(self, parts: Sequence[bytes | str]) -> int:
        """Return the command's exit status; `TOOK_TOO_LONG` if it had to be killed."""
        content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
        with tempfile.TemporaryDirectory(prefix="swarmtest-") as directory:
            (Path(directory) / self._name).write_bytes(content)
            words = ["/bin/sh", "-c", self._command]
            ended = capture(words, self._seconds, directory=directory, keep_output=False)
        return TOOK_TOO_LONG if ended.status is None else ended.status


# Metrics of a reduction, and random reduction to compare with.


def size_reduction_rate(before: int, after: int) -> float:
    """Return SRR: the share of the parts that were removed.

    >>> size_reduction_rate(200, 50)
    0.75
    """
    return (before - after) / before if before else 0.0


def preservation_rate(original: Collection[Hashable], reduced: Collection[Hashable]) -> float:
    """Return CPR or MPR: the share of what the original reached (or killed) that is kept.

    >>> preservation_rate({1, 2, 3, 4}, {1, 2, 3, 9})
    0.75
    """
    whole = frozenset(original)
    return len(whole & frozenset(reduced)) / len(whole) if whole else 1.0


def randomly_reduced(parts: Sequence[Part], size: int, rng: random.Random) -> tuple[Part, ...]:
    """Return `size` random parts in their order, to compare a reduction with.

    >>> len(randomly_reduced(range(100), 10, random.Random(1)))
    10
    """
    chosen = sorted(rng.sample(range(len(parts)), size))
    return tuple(parts[i] for i in chosen)


@dataclass(frozen=True)
class KendallTau:
    """The correlation of two rankings."""

    tau: float
    """From -1 to 1; 0 means no correlation."""
    p: float
    """The two-sided p-value: the probability of such a tau by chance."""


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> KendallTau:
    """Return Kendall's tau-b, which handles ties, with its p-value by the normal approximation.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]).tau, 3)
    0.667
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} numbers make no pairs")
    count = len(first)
    balance = sum(
        _sign(first[i] - first[j]) * _sign(second[i] - second[j])
        for i in range(count)
        for j in range(i)
    )
    pairs = count * (count - 1) // 2
    ties = [_tie_sizes(first), _tie_sizes(second)]
    untied = [pairs - sum(t * (t - 1) // 2 for t in sizes) for sizes in ties]
    if 0 in untied:
        return KendallTau(math.nan, math.nan)
    tau = balance / math.sqrt(untied[0]) / math.sqrt(untied[1])
    return KendallTau(tau, _kendall_p_value(balance, count, *ties))


def _kendall_p_value(balance: int, count: int, first: list[int], second: list[int]) -> float:
    """Return the p-value, with the variance corrected for ties in both rankings."""

    def total(sizes: list[int], weight: int) -> float:
        return sum(t * (t - 1) * (2 * t + weight) for t in sizes)

    def pairs(sizes: list[int]) -> float:
        return sum(t * (t - 1) for t in sizes)

    def triples(sizes: list[int]) -> float:
        return sum(t * (t - 1) * (t - 2) for t in sizes)

    whole = count * (count - 1)
    variance = (whole * (2 * count + 5) - total(first, 5) - total(second, 5)) / 18
    variance += pairs(first) * pairs(second) / (2 * whole)
    if count > 2:
        variance += triples(first) * triples(second) / (9 * whole * (count - 2))
    return math.erfc(abs(balance) / math.sqrt(2 * variance))


def _tie_sizes(numbers: Sequence[float]) -> list[int]:
    """Return how often each number occurs."""
    counts: dict[float, int] = {}
    for number in numbers:
        counts[number] = counts.get(number, 0) + 1
    return list(counts.values())


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
