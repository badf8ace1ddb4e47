"""Criteria for a smaller test: what it has to keep, and whether a run kept it.

Each candidate runs in another process, which sends back only a small summary (`RunSummary`).
Mutants are checked last because they cost most, and the check stops at the first mutant that
survives.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from swarmtest.campaign.hits import HitSender
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.targets import Target
from swarmtest.reducer.criteria import ShellCommand
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage
    from swarmtest.mutate.mutant import Mutant

Keys = frozenset[int]
"""`Target.key` of each target that a test hit."""


@dataclass(frozen=True)
class Keep:
    """What a smaller test has to keep; every criterion that is set must hold.

    >>> Keep(coverage=0.9).needs_coverage
    True
    """

    fault: str | None = None
    """The id of a fault. None: the test must end as the original does: pass, or show its fault."""
    coverage: float | None = None
    """The share of the original's targets to keep: C%-coverage (dissertation, 3.3.2)."""
    targets: frozenset[int] = frozenset()
    """Targets to hit (`Target.key`), independently of `coverage`."""
    share: float = 1.0
    """The share of `targets` that is enough."""
    mutants: tuple[Mutant, ...] = ()
    """Mutants to kill, all of them: N-mutant reduction (dissertation, 3.3.3)."""
    command: str = ""
    """A shell command that must exit with status 0; ``{}`` in it is the name of the test's file."""
    runs: tuple[int, int] = (1, 1)
    """(k, n): the criteria must hold in k of n runs; (2, 5), say, for a flaky fault."""

    def __post_init__(self) -> None:
        for name, share in (("coverage", self.coverage), ("targets", self.share)):
            if share is not None and not 0 < share <= 1:
                raise UserError(
                    f"{share:.0%} of the {name} cannot be kept: ask for more than 0%, up to 100%"
                )
        if not 1 <= self.runs[0] <= self.runs[1]:
            raise UserError(
                f"{self.runs[0]} of {self.runs[1]} runs cannot be required: 1 of 1, 2 of 5, ..."
            )

    @property
    def needs_coverage(self) -> bool:
        """Whether the targets that tests hit have to be observed."""
        return self.coverage is not None or bool(self.targets)

    @property
    def is_command_alone(self) -> bool:
        """Whether the command is the only criterion, so that the test itself need not run."""
        others = self.fault is not None or self.needs_coverage or self.mutants
        return bool(self.command) and not others


class KillCheck(Protocol):
    """Decides repeatedly, for many tests, whether a test kills a given set of mutants."""

    def survivor(self, test: Any) -> Mutant | None:
        """Return the first mutant that a test does not kill; None if it kills all."""


@dataclass(frozen=True)
class RunSummary:
    """What one run showed, as far as the criteria depend on it."""

    verdict: Verdict
    fault: Fault | None = None
    kept: int = 0
    """How many of the wanted targets it hit."""
    survivor: str = ""
    """The id of a mutant that it should have killed and did not."""
    status: int = 0
    """The exit status of the command."""


class HitObserver:
    """Runs tests of a subject and observes which targets they hit."""

    def __init__(self, subject: Subject, coverage: Coverage | None = None) -> None:
        self._subject = subject
        self._coverage = coverage
        self._sender = HitSender()
        if coverage is not None:
            coverage.begin(subject.harness)
            # Keys are computed once, here, and not in every process that runs a test.
            self._sender.know(coverage.catalogue)

    def run(self, test: Any) -> tuple[Result, Keys]:
        """Run a test in this process; return the result and the keys of the targets it hit."""
        subject, coverage = self._subject, self._coverage
        subject.interruptible = False
        if coverage is not None:
            coverage.reset()
        result = subject.replay(test)
        covered = result.covered if coverage is None else (coverage.take(), *result.covered)
        packed_keys = [self._sender.keys(hits) for hits in covered]
        if result.hits:
            packed_keys.append(self._sender.keys_of_names(result.hits))
        keys = frozenset(array.array("Q", b"".join(packed_keys)))
        return result._replace(covered=()), keys

    def targets(self, test: Any) -> list[Target]:
        """Run a test in this process; return the targets that it hit."""
        if self._coverage is not None:
            self._coverage.reset()
        result = self._subject.replay(test)
        watched = () if self._coverage is None else (self._coverage.take(),)
        named = [Target.parse(name) for name in result.hits]
        return named + [t for hits in (*watched, *result.covered) for t in hits.targets()]


class KeepCriterion:
    """A criterion with the facts about the original that it needs, ready to judge candidates.

    `ends` decides whether a fault (or None, for a pass) is the right outcome. `needed` of the
    targets `wanted` must be hit. `file` holds the subject that writes a test as a file for the
    command, and the seconds that the command may take.
    """

    def __init__(
        self,
        watch: HitObserver,
        keep: Keep,
        ends: Callable[[Fault | None], bool],
        wanted: Iterable[int] = (),
        needed: int = 0,
        kills: KillCheck | None = None,
        file: tuple[Subject, float] | None = None,
    ) -> None:
        self._watch = watch
        self._keep = keep
        self._ends = ends
        self._wanted = frozenset(wanted)
        self.needed = needed
        """How many of the wanted targets must be hit."""
        self._kills = kills
        self._file = file

    def observe(self, test: Any) -> RunSummary:
        """Run a test in this process; stop as soon as one criterion does not hold."""
        seen = RunSummary(Verdict.PASSED) if self._keep.is_command_alone else self._run(test)
        if not self._holds_so_far(seen):
            return seen
        if self._keep.command:
            seen = replace(seen, status=self._command_status(test))
        if self._kills is not None and seen.status == 0:
            survivor = self._kills.survivor(test)
            seen = replace(seen, survivor=survivor.id if survivor else "")
        return seen

    def _run(self, test: Any) -> RunSummary:
        result, keys = self._watch.run(test)
        kept = len(self._wanted & keys) if self.needed else 0
        return RunSummary(result.verdict, result.fault, kept)

    def holds(self, seen: RunSummary) -> bool:
        """Return whether what was seen meets all criteria."""
        return self._holds_so_far(seen) and not seen.survivor and seen.status == 0

    def why_not(self, seen: RunSummary) -> str:
        """Return which criterion does not hold, in words."""
        if seen.verdict == Verdict.INVALID:
            return "it is invalid"
        if not self._ends(seen.fault):
            return f"it shows {seen.fault.signature}" if seen.fault else "it passes"
        if seen.kept < self.needed:
            return f"it hits {seen.kept} of {len(self._wanted)} targets, {self.needed} are needed"
        if seen.survivor:
            return f"it does not kill mutant {seen.survivor}"
        return f"`{self._keep.command}` ends with status {seen.status}, not 0"

    def _holds_so_far(self, seen: RunSummary) -> bool:
        valid = seen.verdict != Verdict.INVALID
        return valid and self._ends(seen.fault) and seen.kept >= self.needed

    def _command_status(self, test: Any) -> int:
        assert self._file is not None
        subject, seconds = self._file
        command = ShellCommand(self._keep.command, f"test{subject.suffix}", seconds)
        return command.status([test_content(subject, test)])


def test_content(subject: Subject, test: Any) -> bytes:
    """Return the bytes of a test's file.

    For a test that is not text the printed form differs from the test, so it cannot be used.
    """
    if hasattr(subject, "content"):
        content: bytes = subject.content(test)
        return content
    return subject.code(test).encode()
