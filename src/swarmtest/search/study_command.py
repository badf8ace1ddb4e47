"""The subcommands of ``swarmtest search`` that study recorded explorations.

Best sequences, correlations, roles of values, pictures and exports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

import click

from swarmtest.core.errors import UserError
from swarmtest.search.exploration import Exploration, best_sequence, random_sequence
from swarmtest.search.export import FORMATS, collapsed, export_exploration
from swarmtest.search.pictures import collapsed_svg, growth_svg
from swarmtest.search.value_statistics import UNIFORM_ENGINES, correlations, value_roles
from swarmtest.search.views import (
    collapsed_text,
    correlations_text,
    point_text,
    sequence_text,
    shoulders_text,
    value_roles_text,
)
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import campaign_argument, existing_store, latest_campaign, store_option
from swarmtest.ui.terminal.text import json_text

Command = TypeVar("Command", bound=Callable[..., Any])

_ENDINGS = {"csv": "csv", "parquet": "parquet", "dat": "gnuplot", "gnuplot": "gnuplot"}


# What these commands share with those that search.


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def load_exploration(campaign: int | None, store: str | None, kind: str = "") -> Exploration:
    """Return the exploration of a campaign; only its targets of one kind, if a kind is given."""
    with existing_store(store) as opened:
        exploration = Exploration.load(opened, latest_campaign(opened, campaign))
    return exploration.of_kind(kind) if kind else exploration


def title_of(exploration: Exploration) -> str:
    """Return a line that says what is studied."""
    numbers = ", ".join(map(str, exploration.campaigns))
    runs = sum(map(len, exploration.runs.values()))
    which = "campaign" if len(exploration.campaigns) == 1 else "campaigns"
    return (
        f"{which} {numbers}: {exploration.name}, {len(exploration.points):,} points, {runs:,} runs"
    )


# The commands.


@click.command("best-sequence", cls=HelpfulCommand)
@campaign_argument
@click.option("--kind", default="", metavar="KIND", help="Only targets of this kind.")
@click.option("--most", type=int, metavar="N", help="Stop after N points.")
@click.option(
    "--random",
    "orders",
    type=int,
    default=100,
    show_default=True,
    metavar="K",
    help="Compare with K random orders; 0 compares with none.",
)
@store_option
@json_option
def best_sequence_of(campaign: int | None, store: str | None, **options: Any) -> int:
    """Show a few points that together reach everything that all points reached.

    Each point is the one that adds most to those before it (greedy).

    \b
    swarmtest search best-sequence 1
    swarmtest search best-sequence 1 --kind pair --most 5
    """
    exploration = load_exploration(campaign, store, options["kind"])
    if not exploration.targets:
        raise UserError("no run reached a target: a sequence needs tests that report their hits")
    sequence = best_sequence(exploration, options["most"])
    others = [random_sequence(exploration, seed) for seed in range(options["orders"])]
    if options["as_json"]:
        steps = [
            {"point": s.point.to_json(), "new": s.new, "reached": s.reached, "runs": s.runs}
            for s in sequence.steps
        ]
        random = [len(other.steps) for other in others]
        click.echo(json_text({"total": sequence.total, "steps": steps, "random": random}))
    else:
        whole = not options["most"]
        click.echo(sequence_text(sequence, others if whole else [], title_of(exploration)))
    return 0


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="hits, hits.KIND, failed, seconds or a measure of the test. May be repeated.  "
    "[default: all]",
)
@store_option
@json_option
def correlate(campaign: int | None, store: str | None, **options: Any) -> int:
    """Show how strongly each dimension is related to each measure.

    \b
    swarmtest search correlate
    swarmtest search correlate 1 --measure hits --measure failed
    """
    exploration = load_exploration(campaign, store)
    results = correlations(exploration, options["measures"])
    if options["as_json"]:
        click.echo(json_text([vars(correlation) for correlation in results]))
    else:
        click.echo(correlations_text(results, title_of(exploration)))
    return 0


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="KIND:NAME",
    help="Only for this target. May be repeated.  [default: all faults]",
)
@store_option
@json_option
def roles(campaign: int | None, store: str | None, **options: Any) -> int:
    """Show which values of which dimensions trigger or suppress a fault.

    For each value: the share of the points with the fault that have it, and the share by chance.

    \b
    swarmtest search roles 1
    swarmtest search roles 1 --target "event:sold out"
    """
    exploration = load_exploration(campaign, store)
    results = value_roles(exploration, options["targets"])
    if options["as_json"]:
        click.echo(json_text([vars(role) for role in results]))
    elif not results:
        click.echo(f"{title_of(exploration)}\nno fault was found; --target names another target")
    else:
        click.echo(value_roles_text(results, title_of(exploration)))
        choosy = [name for name in exploration.engines if name not in UNIFORM_ENGINES]
        if choosy:
            click.echo(f"{', '.join(choosy)} preferred some points: chance is the share of visited")
    return 0


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "-o", "--output", metavar="FILE.svg", help="The file to write.  [default: draw in the terminal]"
)
@click.option(
    "--measure", default="hits", show_default=True, metavar="NAME", help="What is plotted."
)
@click.option("--kind", default="", metavar="KIND", help="Only targets of this kind.")
@click.option(
    "--by",
    default="",
    metavar="NAME,...",
    help="The dimensions that change most slowly along the line.  [default: those that "
    "explain most]",
)
@click.option(
    "--growth",
    "grown",
    is_flag=True,
    help="Plot how the number of targets reached grew with the "
    "runs of the best sequence and of a random one.",
)
@click.option(
    "--point",
    "points",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="With --growth: plot the points with these values instead. May be repeated.",
)
@click.option(
    "--shoulders",
    type=int,
    default=0,
    metavar="N",
    help="With --growth: mark series of at least N runs that reach nothing new.",
)
@store_option
def plot(campaign: int | None, store: str | None, output: str | None, **options: Any) -> int:
    """Draw an explored space: all its dimensions along one line.

    Points are ordered by the dimension that explains most, then by the next, so that dimensions
    that matter show as hills.

    \b
    swarmtest search plot 1
    swarmtest search plot 1 -o space.svg --measure failed --by noise,frequency
    swarmtest search plot 1 -o growth.svg --growth --shoulders 10
    swarmtest search plot 1 -o growth.svg --growth --point noise=none --point noise=sleep
    """
    exploration = load_exploration(campaign, store, options["kind"])
    title = title_of(exploration)
    if options["grown"]:
        if output is None:
            raise UserError("--growth draws a file: name it with -o FILE.svg")
        curves = _curves(exploration, options["points"])
        label = f"targets of kind {options['kind']}" if options["kind"] else "targets reached"
        _write(output, growth_svg(curves, title, label, options["shoulders"]))
        if options["shoulders"]:
            click.echo(shoulders_text(*curves[0], options["shoulders"]))
        return 0
    by = [name.strip() for name in options["by"].split(",") if name.strip()]
    line = collapsed(exploration, options["measure"], by)
    if output is None:
        click.echo(collapsed_text(line, title))
    else:
        _write(output, collapsed_svg(line, title))
    return 0


def _curves(exploration: Exploration, wanted: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """Return the curves to draw: of the points asked for, or of the best and a random sequence."""
    if not wanted:
        best = best_sequence(exploration).points
        chance = random_sequence(exploration, 0).points
        return [
            (f"best sequence ({len(best)} points)", exploration.growth(best)),
            (f"random sequence ({len(chance)} points)", exploration.growth(chance)),
        ]
    curves = []
    for text in wanted:
        pairs = [piece.partition("=") for piece in text.split(",")]
        points = [
            point
            for point in exploration.points
            if all(point_text({"": point[name.strip()]})[1:] == value for name, _, value in pairs)
        ]
        if not points:
            raise UserError(f"--point {text}: no explored point has these values")
        curves.append((text, exploration.growth(points)))
    return curves


def _write(output: str, content: str) -> None:
    try:
        with click.open_file(output, "w", encoding="utf-8") as out:
            out.write(content + "\n")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    help="Format of the file.  [default: by the file's name: .csv, .parquet, .dat for gnuplot]",
)
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    metavar="FILE",
    default="-",
    help="The file to write.  [default: standard output]",
)
@click.option("--measure", default="", metavar="NAME", help="For gnuplot: only this measure.")
@store_option
def export(
    campaign: int | None, kind: str | None, output: str, measure: str, store: str | None
) -> int:
    """Export an exploration, one row per run (gnuplot: per point).

    \b
    swarmtest search export 1 -o space.csv
    swarmtest search export 1 -o space.dat     plot 'space.dat' using 1:8 with lines
    """
    ending = output.rpartition(".")[2].lower()
    if kind is None and output != "-" and ending not in _ENDINGS:
        raise UserError(
            f"{output}: the name does not say the format: end it in .csv, .parquet or .dat, "
            "or pass --format"
        )
    exploration = load_exploration(campaign, store)
    try:
        with click.open_file(output, "wb") as out:
            format = kind or _ENDINGS.get(ending, "csv")
            export_exploration(exploration, format, cast(BinaryIO, out), measure)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    return 0
