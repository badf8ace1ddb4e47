"""Reduce a test that is named as on the command line, and resume a reduction that was stopped.

`reduce_named_test` finds the test in a store or in a file, reads what the smaller test has to keep,
reduces it, and measures how much was kept. With a state file (`ReductionState`) it notes every
answer, and the same call continues where an earlier one stopped.

What to keep is written as text: ``fault``, ``coverage=90``, ``mutants=8``. `parse_keep_option`
reads one such text, and `KeepOptions` turns all of them into a `Keep` for the test.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.campaign.campaign_subject import scoped_to_subject
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.targets import Target
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.kill_matrix import minimal_mutants, minimal_tests
from swarmtest.mutate.killing import MutantKiller, NativeMutantKiller, chosen_mutants, drawn_killing
from swarmtest.processes.fork_pool import IsolatedRun, run_isolated, wait_for_any
from swarmtest.processes.perturbation import perturbed_memory
from swarmtest.reduce.candidate_oracle import Answers
from swarmtest.reduce.keep_criteria import HitObserver, Keep
from swarmtest.reduce.named_tests import NamedTest, named_test, seconds_of
from swarmtest.reduce.quality import PlainFile, Quality, quality_of
from swarmtest.reduce.reduction import Reduced, reduce_test
from swarmtest.store import open_store
from swarmtest.store.blocks import unpacked
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import named_fault

DRAWN_MUTANTS = 200
"""How many mutants are drawn if some are to be kept and no number is given."""


@dataclass(frozen=True)
class ReductionProgress:
    """How far the reduction of a test is."""

    runs: int
    """How many candidates were run."""
    size: int
    """How many parts the smallest test so far has."""
    part: str
    """What a part is called: "step", "line"."""


@dataclass(frozen=True)
class NamedReduction:
    """The result of reducing a test that was named."""

    named: NamedTest
    """The original test, with the subject that runs it."""
    reduced: Reduced
    quality: Quality | None
    """How much was kept; None if only a command decides what is interesting."""


def reduce_named_test(
    name: str,
    keep: Sequence[str] = (),
    *,
    store: str | None = None,
    state: str | Path | None = None,
    budget: float = 60.0,
    runs: tuple[int, int] = (1, 1),
    coverage: CoverageOptions | str | None = "line",
    mutants: int | None = None,
    seed: int = 0,
    parts: str = "lines",
    timeout: float | None = None,
    workers: int | None = None,
    progress: Callable[[ReductionProgress], None] | None = None,
) -> NamedReduction:
    """Reduce the test named ``3#17``, the smallest test of a fault, or the test in a file.

    `keep` has the texts of ``--keep``, such as ``coverage=90``; a failing test keeps its fault by
    default. `budget` is the time of the whole reduction in seconds, after which the smallest test
    so far is the result. With a `state` file, the same call later continues from there. `runs` is
    (k, n) if the criteria must hold in k of n runs. `coverage` says what to watch in Python code,
    `mutants` how many mutants to draw, `parts` how to divide a plain file, and `timeout` how long
    one run may take. `progress` is called after every candidate. Modules that this process has
    imported before cannot be watched any more.

    >>> from pathlib import Path
    >>> from swarmtest import Campaign
    >>> lines = ["from swarmtest import Machine, action", "class Bell(Machine):", "    n = 0"]
    >>> lines += ["    @action", "    def up(self): self.n += 1; assert self.n < 3"]
    >>> lines += ["    @action", "    def look(self): pass"]
    >>> _ = Path("bell.py").write_text("\\n".join(lines))
    >>> outcome = Campaign("bell.py", "coin", 9, store="bell.db", workers=0).run()
    >>> result = reduce_named_test(outcome.faults[0].id, store="bell.db", coverage=None)
    >>> result.reduced.size
    3
    """
    options = [parse_keep_option(text) for text in keep]
    with contextlib.ExitStack() as stack:
        named, watching = _find_test(name, options, store, coverage, parts, timeout, stack)
        subject = named.subject
        seconds = seconds_of(subject, timeout)
        only_command = bool(options) and {option.kind for option in options} == {"command"}
        fault = None if only_command else _fault_of(named, name, seconds, bool(options))
        options = options or [KeepOption("fault")]
        wanted = KeepOptions(options, named, seconds, seed)
        killing = None
        sample = mutants or (DRAWN_MUTANTS if wanted.needs_mutants else 0)
        minimal = wanted.minimal_mutants(store)
        if sample:
            killing = drawn_killing(
                subject, sample=sample, seed=seed, seconds=seconds, first=minimal
            )
            stack.callback(killing.close)
        criteria = replace(wanted.keep(fault, watching, killing, store), runs=runs)
        stack.enter_context(perturbed_memory(lambda: _shows(named, fault, seconds)))
        with ReductionState(state, name, criteria) as known:
            reduced = reduce_test(
                subject,
                named.data,
                criteria,
                coverage=watching if criteria.needs_coverage else None,
                kills=killing.among(criteria.mutants) if killing and criteria.mutants else None,
                seconds=seconds,
                budget=budget,
                workers=workers,
                on_run=_reporter(progress, subject.part),
                answers=known.answers,
            )
        quality = None
        if not only_command:
            quality = quality_of(
                subject,
                named.data,
                reduced,
                coverage=watching,
                kills=killing,
                seconds=seconds,
                seed=seed,
            )
        return NamedReduction(named, reduced, quality)


def _reporter(
    progress: Callable[[ReductionProgress], None] | None, part: str
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda runs, size: progress(ReductionProgress(runs, size, part))


def _find_test(
    name: str,
    options: Sequence[KeepOption],
    store: str | None,
    coverage: CoverageOptions | str | None,
    parts: str,
    timeout: float | None,
    stack: contextlib.ExitStack,
) -> tuple[NamedTest, Coverage | None]:
    """Return the test, and the coverage that observes it if that can be done from Python.

    Coverage watches imports until `stack` is closed.
    """
    watching: list[Coverage] = []

    def watch(reference: SubjectReference) -> None:
        if coverage is not None and not reference.text.endswith(".toml"):
            wanted = (
                CoverageOptions(parse_kinds(coverage)) if isinstance(coverage, str) else coverage
            )
            watching.append(stack.enter_context(Coverage(scoped_to_subject(wanted, reference))))

    if any(option.kind == "command" for option in options) and _is_plain_file(name):
        plain = PlainFile(name, parts)
        return NamedTest(plain, plain.test(Path(name).read_bytes()), None), None
    if parts != "lines":
        raise UserError(
            f"--parts {parts} is for a plain file, together with --keep command=...: the parts of "
            f"{name} are known"
        )
    named = named_test(name, store, timeout, watch)
    return named, watching[0] if watching else None


def _is_plain_file(name: str) -> bool:
    """Return whether a file exists and is not a test that swarmtest saved."""
    path = Path(name)
    if not path.is_file():
        return False
    try:
        data = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return True
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return not (isinstance(data, dict) and "format" in data and "subject" in data)


def _fault_of(named: NamedTest, name: str, seconds: float, has_criterion: bool) -> str | None:
    """Return the fault of a test: the recorded one, or for a test from a file, that of a run."""
    if named.fault:
        return named.fault
    if named.fault == "":
        if has_criterion:
            return None
        raise UserError(f"{name} passed: say what to keep, like --keep coverage=90")
    result = run_isolated(lambda: named.subject.replay(named.data), seconds, quiet=True)
    if result.verdict == Verdict.INVALID:
        raise UserError(f"{name} is invalid: {result.missing}")
    if result.fault is None and not has_criterion:
        raise UserError(f"{name} passes: say what to keep, like --keep coverage=90")
    return named_fault(named.subject, result.fault).id if result.fault else None


def _shows(named: NamedTest, fault: str | None, seconds: float) -> bool:
    """Return whether a test shows its fault; without a fault nothing can be told apart."""
    if fault is None:
        return False
    result = run_isolated(lambda: named.subject.replay(named.data), seconds, quiet=True)
    shown = result.fault
    return shown is not None and named_fault(named.subject, shown).is_called(fault)


class ReductionState:
    """The answers of a reduction, in a file from which the same reduction resumes.

    Entering it reads the file if there is one, and leaving it writes the answers.
    """

    def __init__(self, path: str | Path | None, test: str, keep: Keep) -> None:
        self._path = Path(path) if path else None
        self._about = f"{test} {keep.fault} {keep.coverage} {sorted(keep.targets)} {keep.command} "
        self._about += " ".join(sorted(mutant.id for mutant in keep.mutants)) + f" {keep.runs}"
        self.answers: Answers = {}

    def __enter__(self) -> ReductionState:
        if self._path is not None and self._path.exists():
            try:
                data = json.loads(self._path.read_text())
                about, answers = data["about"], data["answers"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                raise UserError(f"{self._path} is not a state that `reduce` wrote") from None
            if about != self._about:
                raise UserError(
                    f"{self._path} is of another reduction (another test, or another --keep): "
                    "delete it, or name another file"
                )
            self.answers = dict(answers)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._path is not None and self.answers:
            try:
                data = {"about": self._about, "answers": self.answers}
                self._path.write_text(json.dumps(data))
            except OSError as error:
                raise UserError(f"cannot write {self._path}: {error.strerror}") from None


# What to keep, written as text.

KEEP_KINDS = ("fault", "coverage", "targets", "mutants", "minimal-mutants", "command")


@dataclass(frozen=True)
class KeepOption:
    """One ``--keep`` option: the kind of criterion and its value.

    >>> parse_keep_option("coverage=90")
    KeepOption(kind='coverage', value='90')
    """

    kind: str
    value: str = ""


def parse_keep_option(text: str) -> KeepOption:
    """Parse the text of one ``--keep`` option."""
    kind, equals, value = text.partition("=")
    if kind not in KEEP_KINDS:
        raise UserError(
            f"--keep {text}: choose from {', '.join(KEEP_KINDS)}{did_you_mean(kind, KEEP_KINDS)}"
        )
    if kind in ("targets", "command") and not value:
        raise UserError(f"--keep {kind}=... needs to say which")
    if equals and not value:
        raise UserError(f"--keep {text}: nothing follows the =")
    return KeepOption(kind, value)


def parse_runs(text: str) -> tuple[int, int]:
    """Parse the ``K/N`` of ``--runs``.

    >>> parse_runs("2/5")
    (2, 5)
    """
    words = text.split("/")
    if len(words) != 2 or not all(word.strip().isdigit() for word in words):
        raise UserError(f"--runs {text}: write K/N, like 2/5 for two of five runs")
    k, n = map(int, words)
    if not 1 <= k <= n:
        raise UserError(f"--runs {text}: K is from 1 to N")
    return k, n


class KeepOptions:
    """All ``--keep`` options of one reduction, for the test that is to be reduced."""

    def __init__(
        self, options: Sequence[KeepOption], named: NamedTest, seconds: float, seed: int
    ) -> None:
        self._options = options
        self._named = named
        self._seconds = seconds
        self._seed = seed

    def keep(
        self,
        fault: str | None,
        coverage: Coverage | None,
        killing: MutantKiller | NativeMutantKiller | None,
        store: str | None,
    ) -> Keep:
        """Return the criteria of all options.

        `fault` is the fault that the test shows; `killing` runs the mutants that were drawn.
        """
        keep = Keep()
        for option in self._options:
            match option.kind:
                case "fault":
                    keep = replace(keep, fault=option.value or self._shown(fault))
                case "coverage":
                    keep = replace(keep, coverage=_share(option))
                case "targets":
                    keys = self._targets(option.value, coverage)
                    keep = replace(keep, targets=keep.targets | keys)
                case "mutants" | "minimal-mutants":
                    assert killing is not None
                    mutants = self._mutants(option, killing, store)
                    keep = replace(keep, mutants=(*keep.mutants, *mutants))
                case "command":
                    keep = replace(keep, command=option.value)
        return keep

    @property
    def needs_mutants(self) -> bool:
        """Whether mutants are to be kept."""
        return any("mutants" in option.kind for option in self._options)

    def minimal_mutants(self, store: str | None) -> list[str]:
        """Return the ids of the campaign's minimal mutants, if ``--keep`` asks for any."""
        if not any(option.kind == "minimal-mutants" for option in self._options):
            return []
        if self._named.campaign is None:
            raise UserError("--keep minimal-mutants: name a test of a campaign, like 3#17")
        with open_store(store, must_exist=True, read_only=True) as opened:
            return minimal_ids(opened, self._named.campaign)

    def _shown(self, fault: str | None) -> str:
        if not fault:
            raise UserError("the test passes, so it has no fault to keep: --keep coverage=90, ...")
        return fault

    def _targets(self, pattern: str, coverage: Coverage | None) -> frozenset[int]:
        hit = targets_hit(self._named, coverage, self._seconds)
        matching = [t for t in hit if fnmatch.fnmatchcase(str(t), pattern) or t.name == pattern]
        if not matching:
            near = did_you_mean(pattern, [*map(str, hit)]) if len(hit) < 20_000 else ""
            raise UserError(f"--keep targets={pattern}: the test hits no such target{near[:200]}")
        return frozenset(target.key for target in matching)

    def _mutants(
        self, option: KeepOption, killing: MutantKiller | NativeMutantKiller, store: str | None
    ) -> Any:
        count = _count(option)
        minimal = self.minimal_mutants(store) if option.kind == "minimal-mutants" else None
        return chosen_mutants(killing.killed(self._named.data), count, self._seed, minimal)


def targets_hit(named: NamedTest, coverage: Coverage | None, seconds: float) -> list[Target]:
    """Run a test in its own process and return the targets that it hits."""
    watch = HitObserver(named.subject, coverage)
    run = IsolatedRun(lambda: watch.targets(named.data), seconds, quiet=True)
    wait_for_any([run])
    outcome = run.outcome()
    if isinstance(outcome, Fault):
        raise UserError("the test ends its process, so what it hits is not known")
    return outcome


def minimal_ids(store: Store, campaign: int) -> list[str]:
    """Return the ids of the minimal mutants by a campaign's recorded kills (section 3.5.1.3)."""
    hit = store.hit_summary(campaign).targets.tolist()
    mutants = {id: t for id, t in store.targets(hit).items() if t.kind == "mutant"}
    if not mutants:
        raise UserError(
            f"campaign {campaign} has no mutants yet: `swarmtest mutate --campaign {campaign}` "
            "first"
        )
    killed = _recorded_kills(store, campaign, [*mutants])
    minimal = minimal_mutants(killed, minimal_tests(killed)[0])
    ids = [target.name.rpartition(" ")[2] for target in mutants.values()]
    return [ids[i] for i in minimal]


def _recorded_kills(store: Store, campaign: int, mutants: list[int]) -> npt.NDArray[np.bool_]:
    """Return which of the tests that kill any mutant (columns) kill each of the mutants (rows)."""
    parts = [np.zeros((len(mutants), 0), bool)]
    for block in store.blocks(campaign):
        hits = block.hits
        here = np.isin(mutants, hits.targets)
        if here.any():
            classes = hits.classes[np.searchsorted(hits.targets, np.array(mutants)[here])]
            killed = np.zeros((len(mutants), block.size), bool)
            killed[here] = unpacked(hits.class_bits(classes), block.size)
            parts.append(killed[:, killed.any(axis=0)])
    return np.concatenate(parts, axis=1)


def _share(option: KeepOption) -> float:
    text = option.value.removesuffix("%") or "100"
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"--keep coverage={option.value}: a percentage, like 90") from None
    if not 0 < percent <= 100:
        raise UserError(f"--keep coverage={option.value}: above 0, up to 100 (percent)")
    return percent / 100


def _count(option: KeepOption) -> int:
    if not (option.value or "1").isdigit() or option.value == "0":
        raise UserError(f"--keep {option.kind}={option.value}: how many, at least 1")
    return int(option.value or "1")
