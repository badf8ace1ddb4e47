"""``swarmtest reduce``: make a test small."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import click

from swarmtest.campaign.asking import Answers
from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.isolated import run_isolated
from swarmtest.campaign.kept import Keep
from swarmtest.campaign.reducing import Reduced, reduce_test
from swarmtest.campaign.reduction_quality import Quality, quality_of
from swarmtest.campaign.subject_of_campaign import placed
from swarmtest.cli.kept_options import Wish, Wishes, parse_runs, parse_wish
from swarmtest.cli.named_tests import NamedTest, named_test, save_test, seconds_of
from swarmtest.cli.options import store_option
from swarmtest.cli.run_options import timeout_option, workers_option
from swarmtest.errors import UserError
from swarmtest.instrument.kinds import parse_kinds
from swarmtest.instrument.options import CoverageOptions
from swarmtest.instrument.watch import Coverage
from swarmtest.mutation.chosen import drawn_killing
from swarmtest.report.quantities import json_text
from swarmtest.report.terminal import plural
from swarmtest.result import Verdict
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.plain_file import PARTS, PlainFile
from swarmtest.subjects.subject import Subject

_MUTANTS = 200


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
    named, coverage = _named(test, wishes, options)
    subject = named.subject
    seconds = seconds_of(subject, options["timeout"])
    alone = bool(wishes) and {wish.kind for wish in wishes} == {"command"}
    fault = None if alone else _fault(named, test, seconds, bool(wishes))
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
    _tell(named, reduced, quality, options)
    return 130 if reduced.interrupted else 0


def _named(
    test: str, wishes: list[Wish], options: dict[str, Any]
) -> tuple[NamedTest, Coverage | None]:
    """The test; and what sees its coverage, if that can be seen from Python."""
    watching: list[Coverage] = []

    def watch(reference: SubjectReference) -> None:
        if options["coverage"] != "none" and not reference.text.endswith(".toml"):
            wanted = CoverageOptions(parse_kinds(options["coverage"]), tuple(options["cover"]))
            watching.append(Coverage(placed(wanted, reference)).install())

    if any(wish.kind == "command" for wish in wishes) and _is_plain(test):
        plain = PlainFile(test, options["parts"])
        data = plain.test(Path(test).read_bytes())
        return NamedTest(cast(Subject, plain), data, None), None
    named = named_test(test, options["store"], options["timeout"], watch)
    return named, watching[0] if watching else None


def _is_plain(name: str) -> bool:
    """Whether a file is not one of ours: then it is a test as it is."""
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


def _fault(named: NamedTest, test: str, seconds: float, wished: bool) -> str | None:
    """The fault that a test shows: as recorded, or when it is run, because a file does not say."""
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
    from dataclasses import replace

    return replace(keep, runs=parse_runs(text))


class _State:
    """What is known of a reduction, in a file that the same command goes on with."""

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


def _tell(
    named: NamedTest, reduced: Reduced, quality: Quality | None, options: dict[str, Any]
) -> None:
    whole = reduced.test | {key: named.data[key] for key in ("reference",) if key in named.data}
    if options["output"] is not None:
        save_test(Path(options["output"]), named, whole)
    if options["as_json"]:
        click.echo(json_text(_data(whole, reduced, quality)))
        return
    click.echo(named.subject.code(reduced.test).rstrip())
    click.echo(f"\n{_summary(reduced, named.subject.part, options['state'])}")
    if quality is not None and quality.cpr is not None:
        click.echo(str(quality))
    if reduced.fault is not None:
        click.echo(f"fault {reduced.fault.id}: {reduced.fault.signature}")


def _data(whole: Any, reduced: Reduced, quality: Quality | None) -> dict[str, Any]:
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
