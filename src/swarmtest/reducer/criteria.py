"""When a smaller test is still good enough, for those who can run one.

A criterion is anything that takes parts and answers yes or no. Those here know nothing of subjects:
they are given functions that run the parts. A criterion may have `reason(parts)`, which says why
the original does not meet it.

Coverage and mutants are those of the dissertation's chapter 3: C%-coverage keeps a share of what
the original reached, N-mutant keeps N of the mutants that it killed, always the same ones.
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


class Criterion(Protocol):
    """Whether parts are still interesting; cheap answers come early (see `Repeated`)."""

    def __call__(self, parts: Sequence[Any], /) -> bool:
        """Whether these parts are interesting."""


class Repeated:
    """A criterion that does not hold every time: it is to hold in `k` of `n` runs.

    No more runs are made than it takes to know.

    >>> rolls = iter([True, False, True, False])
    >>> Repeated(lambda parts: next(rolls), k=2, n=4)([])
    True
    >>> next(rolls)
    False
    """

    def __init__(self, criterion: Callable[[Sequence[Any]], bool], k: int, n: int) -> None:
        if not 1 <= k <= n:
            raise UserError(f"{k} of {n} runs cannot be asked for; k is from 1 to n")
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
        """In how many of `n` runs the criterion holds: how flaky it is."""
        return sum(bool(self._criterion(parts)) for _ in range(self.n))

    def told(self, met: int) -> str:
        """Why as many are not enough."""
        return f"{met} of {self.n} runs met it, {self.k} are needed"


class CoverageKept:
    """At least a share of what the original reached is reached: C%-coverage.

    `reached` may give the targets as they are met; it is not asked for more than are needed.

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
        # 0.07 * 100 is more than 7 in floating point: nobody means eight of them.
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
        """Why it is not met."""
        met = len(self._original & frozenset(self._reached(parts)))
        return f"it reaches {met} of {len(self._original)} targets now, {self.needed} are needed"


class TargetsKept(CoverageKept):
    """All of these targets are reached, whatever else is.

    >>> TargetsKept(lambda parts: parts, wanted={1, 2})([1, 2, 3])
    True
    """

    def __init__(
        self,
        reached: Callable[[Sequence[Any]], Iterable[Target]],
        wanted: Collection[Target],
    ) -> None:
        if not wanted:
            raise UserError("no targets are given that the smaller test is to keep")
        super().__init__(reached, wanted)


class MutantsKept:
    """All of these mutants are killed: N-mutant reduction.

    `kills` tells of one mutant; the first survivor is the answer. The last mutant that survived is
    tried first: what a candidate loses, the next one often loses too.

    >>> MutantsKept(lambda parts, mutant: mutant in parts, wanted=[3, 5])([3, 4])
    False
    """

    def __init__(
        self, kills: Callable[[Sequence[Any], Target], bool], wanted: Iterable[Target]
    ) -> None:
        self._kills = kills
        self._wanted = list(dict.fromkeys(wanted))
        if not self._wanted:
            raise UserError("no mutants are given that the smaller test is to kill")

    def __call__(self, parts: Sequence[Any], /) -> bool:
        for mutant in list(self._wanted):
            if not self._kills(parts, mutant):
                self._wanted.remove(mutant)
                self._wanted.insert(0, mutant)
                return False
        return True

    def reason(self, parts: Sequence[Any]) -> str:
        """Why it is not met."""
        killed = sum(self._kills(parts, mutant) for mutant in self._wanted)
        return f"it kills {killed} of the {len(self._wanted)} mutants"


def first_to_add(
    reached: Sequence[Collection[Target]], original: Collection[Target], share: float = 1.0
) -> tuple[int, ...]:
    """The parts that first reached something, as many as it takes for a share: a good beginning.

    `reached`: what has been reached after each part. Where the share is below 1, parts that add
    much come before parts that add little. Their indices are in order.

    >>> first_to_add([{1}, {1}, {1, 2, 3}, {1, 2, 3, 4}], {1, 2, 3, 4}, share=0.75)
    (0, 2)
    """
    wanted = frozenset(original)
    known: set[Target] = set()
    gains: list[tuple[int, int]] = []
    for part, met in enumerate(reached):
        new = (wanted & frozenset(met)) - known
        known |= new
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


# -------------------------------------------------------------------------------------------------
# A shell command as a criterion, as creduce and its kin take one: exit status 0 is interesting.

TOOK_TOO_LONG = 124
"""What ``timeout`` answers."""
_ENDS_AT_ONCE = {126: "cannot be run", 127: "was not found"}


class ShellCommand:
    """Interesting is what lets a command end with status 0.

    The parts are written, joined, to a file of the given name in a directory of its own; the
    command runs there, with the file's name as its last argument if it says ``{}`` nowhere. One
    that takes longer than `seconds` is ended with all its children, and not interesting.

    >>> ShellCommand("grep -q needle", name="hay.txt")([b"hay ", b"needle"])
    True
    """

    def __init__(self, command: str, name: str = "test", seconds: float = 10.0) -> None:
        if not command.strip():
            raise UserError("the command that tells what is interesting is empty")
        if name in ("", "..") or Path(name).name != name:
            raise UserError(f"{name!r} is no name for the file; one without a directory is needed")
        file = f"'{name}'" if "'" not in name else f'"{name}"'
        self._command = command.replace("{}", file) if "{}" in command else f"{command} {file}"
        self._name = name
        self._seconds = seconds

    def __call__(self, parts: Sequence[bytes | str], /) -> bool:
        return self.status(parts) == 0

    def reason(self, parts: Sequence[bytes | str]) -> str:
        """Why it is not met."""
        status = self.status(parts)
        if status == TOOK_TOO_LONG:
            return f"`{self._command}` takes more than {self._seconds:g} s"
        if status in _ENDS_AT_ONCE:
            return f"`{self._command}` {_ENDS_AT_ONCE[status]}"
        return f"`{self._command}` ends with status {status}, not 0"

    def status(self, parts: Sequence[bytes | str]) -> int:
        """How the command ended; `TOOK_TOO_LONG` if it had to be ended."""
        content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
        with tempfile.TemporaryDirectory(prefix="swarmtest-") as directory:
            (Path(directory) / self._name).write_bytes(content)
            words = ["/bin/sh", "-c", self._command]
            ended = capture(words, self._seconds, directory=directory, keep_output=False)
        return TOOK_TOO_LONG if ended.status is None else ended.status


# -------------------------------------------------------------------------------------------------
# How good a reduction is: the metrics of the dissertation's section 3.4, and chance to compare.
#
# All are shares from 0 to 1; higher is better.


def size_reduction_rate(before: int, after: int) -> float:
    """SRR: the share of the parts that are gone.

    >>> size_reduction_rate(200, 50)
    0.75
    """
    return (before - after) / before if before else 0.0


def preservation_rate(original: Collection[Hashable], reduced: Collection[Hashable]) -> float:
    """CPR and MPR: the share of what the original reached (or killed) that still is.

    >>> preservation_rate({1, 2, 3, 4}, {1, 2, 3, 9})
    0.75
    """
    whole = frozenset(original)
    return len(whole & frozenset(reduced)) / len(whole) if whole else 1.0


def randomly_reduced(parts: Sequence[Part], size: int, rng: random.Random) -> tuple[Part, ...]:
    """As many parts as asked for, any of them, in their order: what a reduction is compared with.

    >>> len(randomly_reduced(range(100), 10, random.Random(1)))
    10
    """
    kept = sorted(rng.sample(range(len(parts)), size))
    return tuple(parts[i] for i in kept)


@dataclass(frozen=True)
class Kendall:
    """How two rankings agree."""

    tau: float
    """From -1 to 1; 0 is no relation."""
    p: float
    """How likely as much is by chance, either way."""


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> Kendall:
    """Kendall's tau-b, which takes ties into account, with the normal approximation of its p-value.

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
        return Kendall(math.nan, math.nan)
    tau = balance / math.sqrt(untied[0]) / math.sqrt(untied[1])
    return Kendall(tau, _p_value(balance, count, *ties))


def _p_value(balance: int, count: int, first: list[int], second: list[int]) -> float:
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
    counted: dict[float, int] = {}
    for number in numbers:
        counted[number] = counted.get(number, 0) + 1
    return list(counted.values())


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
