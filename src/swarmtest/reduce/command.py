"""``swarmtest reduce``: shrink a test while it keeps what ``--keep`` asks for.

The first half parses ``--keep`` and ``--runs`` and turns them into criteria for the given test; the
second half is the command itself, its resumable state and its output.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.campaign_subject import scoped_to_subject
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.targets import Target
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.kill_matrix import minimal_mutants, minimal_tests
from swarmtest.mutate.killing import Killing, NativeKilling, chosen_mutants, drawn_killing
from swarmtest.processes.fork_pool import IsolatedRun, run_isolated, wait_for_any
from swarmtest.reduce.candidate_oracle import Answers
from swarmtest.reduce.keep_criteria import Keep, Watch
from swarmtest.reduce.named_tests import NamedTest, named_test, save_test, saved_data, seconds_of
from swarmtest.reduce.quality import PARTS, PlainFile, Quality, quality_of
from swarmtest.reduce.reduction import Reduced, reduce_test
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.ui.options import existing_store, store_option
from swarmtest.ui.run_options import timeout_option, workers_option
from swarmtest.ui.terminal.tables import plural
from swarmtest.ui.terminal.text import json_text

# What ``--keep`` can say.

KINDS = ("fault", "coverage", "targets", "mutants", "minimal-mutants", "command")


@dataclass(frozen=True)
class Wish:
    """One ``--keep`` option: the kind of criterion and its value.

    >>> parse_wish("coverage=90")
    Wish(kind='coverage', value='90')
    """

    kind: str
    value: str = ""


def parse_wish(text: str) -> Wish:
    """Parse the text of one ``--keep`` option."""
    kind, equals, value = text.partition("=")
    if kind not in KINDS:
        raise UserError(f"--keep {text}: choose from {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    if kind in ("targets", "command") and not value:
        raise UserError(f"--keep {kind}=... needs to say which")
    if equals and not value:
        raise UserError(f"--keep {text}: nothing follows the =")
    return Wish(kind, value)


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


class Wishes:
    """All ``--keep`` options of one command, for the test that it names."""

    def __init__(self, wishes: Sequence[Wish], named: NamedTest, seconds: float, seed: int) -> None:
        self._wishes = wishes
        self._named = named
        self._seconds = seconds
        self._seed = seed

    def keep(
        self,
        fault: str | None,
        coverage: Coverage | None,
        killing: Killing | NativeKilling | None,
        store: str | None,
    ) -> Keep:
        """Return the criteria of all options.

        `fault` is the fault that the test shows; `killing` runs the mutants that were drawn.
        """
        keep = Keep()
        for wish in self._wishes:
            match wish.kind:
                case "fault":
                    keep = replace(keep, fault=wish.value or self._shown(fault))
                case "coverage":
                    keep = replace(keep, coverage=_share(wish))
                case "targets":
                    keys = self._targets(wish.value, coverage)
                    keep = replace(keep, targets=keep.targets | keys)
                case "mutants" | "minimal-mutants":
                    assert killing is not None
                    mutants = self._mutants(wish, killing, store)
                    keep = replace(keep, mutants=(*keep.mutants, *mutants))
                case "command":
                    keep = replace(keep, command=wish.value)
        return keep

    def hard(self, store: str | None) -> list[str]:
        """Return the ids of the campaign's minimal mutants, if ``--keep`` asks for any."""
        if not any(wish.kind == "minimal-mutants" for wish in self._wishes):
            return []
        if self._named.campaign is None:
            raise UserError("--keep minimal-mutants: name a test of a campaign, like 3#17")
        with existing_store(store) as opened:
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

    def _mutants(self, wish: Wish, killing: Killing | NativeKilling, store: str | None) -> Any:
        count = _count(wish)
        hard = self.hard(store) if wish.kind == "minimal-mutants" else None
        return chosen_mutants(killing.killed(self._named.data), count, self._seed, hard)


def targets_hit(named: NamedTest, coverage: Coverage | None, seconds: float) -> list[Target]:
    """Run a test in its own process and return the targets that it hits."""
    watch = Watch(named.subject, coverage)
    run = IsolatedRun(lambda: watch.targets(named.data), seconds, quiet=True)
    wait_for_any([run])
    outcome = run.outcome()
    if isinstance(outcome, Fault):
        raise UserError("the test ends its process, so what it hits is not known")
    return outcome


def minimal_ids(store: Store, campaign: int) -> list[str]:
    """Return the ids of the minimal mutants by a campaign's recorded kills (section 3.5.1.3)."""
    import numpy as np
    from pyroaring import BitMap

    rows = [BitMap.deserialize(t.hits) for t in store.trials(campaign) if t.hits]
    hit = BitMap.union(*rows) if rows else BitMap()
    mutants = {id: t for id, t in store.targets(hit).items() if t.kind == "mutant"}
    if not mutants:
        raise UserError(
            f"campaign {campaign} has no mutants yet: `swarmtest mutate --campaign {campaign}` "
            "first"
        )
    killed = np.array([[id in row for row in rows] for id in mutants], bool)
    minimal = minimal_mutants(killed, minimal_tests(killed)[0])
    ids = [target.name.rpartition(" ")[2] for target in mutants.values()]
    return [ids[i] for i in minimal]


def _share(wish: Wish) -> float:
    text = wish.value.removesuffix("%") or "100"
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"--keep coverage={wish.value}: a percentage, like 90") from None
    if not 0 < percent <= 100:
        raise UserError(f"--keep coverage={wish.value}: above 0, up to 100 (percent)")
    return percent / 100


def _count(wish: Wish) -> int:
    if not (wish.value or "1").isdigit() or wish.value == "0":
        raise UserError(f"--keep {wish.kind}={wish.value}: how many, at least 1")
    return int(wish.value or "1")


# The command.

_MUTANTS = 200
"""How many mutants are drawn if some are to be kept and ``--mutants`` is not given."""


@click.command()
@click.argument("test", metavar="CAMPAIGN#TRIAL | FAULT | FILE")
@click.option(
    "-k",
    "--keep",
    "wishes",
    multiple=True,
    metavar="WHAT",
    help="What the smaller test has to keep; see above. May be repeated: then all of it.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the result as JSON; as code if named so (.py)."
)
@click.option(
    "--time",
    "budget",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Then the smallest test so far is the result.",
)
@click.option(
    "--runs", default="1/1", metavar="K/N", help="A flaky test: it has to keep it in K of N runs."
)
@click.option(
    "--state", metavar="FILE", help="Note what is known here: the same command goes on with it."
)
@click.option(
    "--coverage",
    default="line",
    show_default=True,
    metavar="KINDS",
    help="What counts as coverage of Python code: line, branch, ...; none: do not look.",
)
@click.option("--cover", multiple=True, metavar="NAME", help="The modules or paths that count.")
@click.option(
    "--mutants",
    type=int,
    metavar="N",
    help=f"Draw N mutants, and tell how many are still killed.  [default: {_MUTANTS} if some are "
    "to be kept, else none]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn at random.")
@click.option(
    "--parts",
    default="lines",
    show_default=True,
    metavar="KIND",
    help=f"Of a plain file: {', '.join(PARTS)}.",
)
@timeout_option
@workers_option
@click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@store_option
def reduce(test: str, **options: Any) -> int:
    """Make a test smaller while it keeps what it is to keep, and print it.

    \b
    swarmtest reduce 3#17                       a failing test keeps its fault
    swarmtest reduce 4ee18053 -o small.json     the shortest test of a fault
    swarmtest reduce 3#5 --keep coverage=90     90% of what it covers
    swarmtest reduce 3#5 --keep mutants=8       eight mutants that it kills
    swarmtest reduce bug.c --keep 'command=./still-crashes.sh {}'

    \b
    --keep says what to keep:
      fault              the same fault (the same signature, not any failure); unless you say
                         otherwise, what a failing test keeps
      coverage=C         C percent of the targets that the test hits (100 unless given)
      targets=NAME       these targets, like line:cart.py:12; * is any text
      mutants=N          N of the mutants that it kills, drawn at random
      minimal-mutants=N  N of those that `swarmtest mutate` found to be hard to kill
      command=COMMAND    a shell command ends with status 0; {} is the test as a file

    A test that keeps coverage or mutants goes on to end as it does: to pass, or to show its fault.
    """
    wishes = [parse_wish(text) for text in options["wishes"]]
    named, coverage = _named_test_and_coverage(test, wishes, options)
    subject = named.subject
    seconds = seconds_of(subject, options["timeout"])
    alone = bool(wishes) and {wish.kind for wish in wishes} == {"command"}
    fault = None if alone else _fault_of(named, test, seconds, bool(wishes))
    wishes = wishes or [Wish("fault")]
    wants_mutants = any("mutants" in wish.kind for wish in wishes)
    sample = options["mutants"] or (_MUTANTS if wants_mutants else 0)
    asked = Wishes(wishes, named, seconds, options["seed"])
    hard = asked.hard(options["store"])
    killing = (
        drawn_killing(subject, sample=sample, seed=options["seed"], seconds=seconds, first=hard)
        if sample
        else None
    )
    try:
        keep = asked.keep(fault, coverage, killing, options["store"])
        keep = _with_runs(keep, options["runs"])
        with _State(options["state"], test, keep) as state:
            reduced = reduce_test(
                subject,
                named.data,
                keep,
                coverage=coverage if keep.needs_coverage else None,
                kills=killing.among(keep.mutants) if killing and keep.mutants else None,
                seconds=seconds,
                budget=parse_seconds(options["budget"]),
                workers=options["workers"],
                on_run=_progress(subject.part, options),
                answers=state.answers,
            )
        _clear_line(options)
        quality = None
        if not alone:
            quality = quality_of(
                subject,
                named.data,
                reduced,
                coverage=coverage,
                kills=killing,
                seconds=seconds,
                seed=options["seed"],
            )
    finally:
        if killing is not None:
            killing.close()
    _print_result(named, reduced, quality, options)
    return 130 if reduced.interrupted else 0


def _named_test_and_coverage(
    test: str, wishes: list[Wish], options: dict[str, Any]
) -> tuple[NamedTest, Coverage | None]:
    """Return the test, and the coverage that observes it if that can be done from Python."""
    watching: list[Coverage] = []

    def watch(reference: SubjectReference) -> None:
        if options["coverage"] != "none" and not reference.text.endswith(".toml"):
            wanted = CoverageOptions(parse_kinds(options["coverage"]), tuple(options["cover"]))
            watching.append(Coverage(scoped_to_subject(wanted, reference)).install())

    if any(wish.kind == "command" for wish in wishes) and _is_plain(test):
        plain = PlainFile(test, options["parts"])
        data = plain.test(Path(test).read_bytes())
        return NamedTest(plain, data, None), None
    named = named_test(test, options["store"], options["timeout"], watch)
    return named, watching[0] if watching else None


def _is_plain(name: str) -> bool:
    """Return whether a file exists and is not a test that swarmtest saved."""
    path = Path(name)
    if not path.is_file():
        return False
    try:
        data = json.loads(path.read_text())
    except ValueError:
        return True
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return not (isinstance(data, dict) and "format" in data and "subject" in data)


def _fault_of(named: NamedTest, test: str, seconds: float, wished: bool) -> str | None:
    """Return the fault of a test: the recorded one, or for a test from a file, that of a run."""
    if named.fault:
        return named.fault
    if named.fault == "":
        if wished:
            return None
        raise UserError(f"{test} passed: say what it is to keep, like --keep coverage=90")
    result = run_isolated(lambda: named.subject.replay(named.data), seconds)
    if result.verdict == Verdict.INVALID:
        raise UserError(f"{test} is invalid: {result.missing}")
    if result.fault is None and not wished:
        raise UserError(f"{test} passes: say what it is to keep, like --keep coverage=90")
    return result.fault.id if result.fault else None


def _with_runs(keep: Keep, text: str) -> Keep:
    return replace(keep, runs=parse_runs(text))


class _State:
    """The answers of a reduction, in a file from which the same command resumes."""

    def __init__(self, path: str | None, test: str, keep: Keep) -> None:
        self._path = Path(path) if path else None
        self._about = f"{test} {keep.fault} {keep.coverage} {sorted(keep.targets)} {keep.command} "
        self._about += " ".join(sorted(mutant.id for mutant in keep.mutants)) + f" {keep.runs}"
        self.answers: Answers = {}

    def __enter__(self) -> _State:
        if self._path is not None and self._path.exists():
            try:
                data = json.loads(self._path.read_text())
                about, answers = data["about"], data["answers"]
            except (OSError, ValueError, KeyError, TypeError):
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


def _progress(part: str, options: dict[str, Any]) -> Any:
    if options["quiet"] or options["as_json"] or not sys.stderr.isatty():
        return None

    def show(runs: int, size: int) -> None:
        click.echo(f"\r{plural(runs, 'run')}, {plural(size, part)} left  ", nl=False, err=True)

    return show


def _clear_line(options: dict[str, Any]) -> None:
    if not options["quiet"] and sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)


def _print_result(
    named: NamedTest, reduced: Reduced, quality: Quality | None, options: dict[str, Any]
) -> None:
    if options["output"] is not None:
        save_test(Path(options["output"]), named, reduced.test)
    if options["as_json"]:
        click.echo(json_text(_as_json_data(saved_data(named, reduced.test), reduced, quality)))
        return
    click.echo(named.subject.code(reduced.test).rstrip())
    click.echo(f"\n{_summary(reduced, named.subject.part, options['state'])}")
    if quality is not None and quality.cpr is not None:
        click.echo(str(quality))
    if reduced.fault is not None:
        click.echo(f"fault {reduced.fault.id}: {reduced.fault.signature}")


def _as_json_data(whole: Any, reduced: Reduced, quality: Quality | None) -> dict[str, Any]:
    fault = reduced.fault
    return {
        "test": whole,
        "before": reduced.before,
        "size": reduced.size,
        "runs": reduced.runs,
        "seconds": reduced.seconds,
        "complete": reduced.complete,
        "fault": {"id": fault.id, "signature": fault.signature} if fault else None,
        "rates": vars(quality) if quality else {"srr": reduced.srr},
    }


def _summary(reduced: Reduced, part: str, state: str | None) -> str:
    if reduced.complete:
        end = "nothing more can go"
    else:
        why = "interrupted" if reduced.interrupted else "the time was up"
        end = f"{why}; " + ("the same command goes on" if state else "--time gives it more")
    return (
        f"from {plural(reduced.before, part)} to {reduced.size:,}, in {plural(reduced.runs, 'run')}"
        f"; {end}"
    )
