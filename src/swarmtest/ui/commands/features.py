"""``swarmtest features``: what can be turned on and off, and what that means for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import describe_strategies
from swarmtest.subjects.loading import SubjectReference, is_grammar_file
from swarmtest.ui.options import screen_width
from swarmtest.ui.terminal.tables import fitted, plural, wrapped
from swarmtest.ui.terminal.text import json_text

_SHOWN = 2
"""Names that a cell shows before it counts the rest."""


@click.command()
@click.argument("path")
@click.option("--api", is_flag=True, help="PATH is MODULE:CLASS: its public methods.")
@click.option("--start", metavar="RULE", default="", help="The rule a grammar file starts from.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def features(path: str, api: bool, start: str, as_json: bool) -> None:
    """The features of a subject, and which of them mean others.

    PATH is what `swarmtest run` takes, or a grammar file. For a grammar, each feature is listed
    with the features that it stands within (it cannot be reached without them), that it brings
    along (every text that has it has them, too), with how many it enables (they cannot appear
    without it), and with the number of features that lead to it directly. A feature with many ways
    is seldom left out by leaving out one of them.

    \b
    swarmtest features stack.py
    swarmtest features examples/sql.lark
    """
    subject, space, generator = _loaded(path, api, start)
    if generator is None:
        data: dict[str, Any] = {"subject": subject, "space": space.to_json()}
        click.echo(json_text(data) if as_json else _plain_text(space))
        return
    from swarmtest.subjects.grammar.feature_constraints import implications

    found = implications(generator.graph)
    if as_json:
        listed = [one.to_json() for one in found]
        data = {"subject": subject, "space": space.to_json(), "implications": listed}
        click.echo(json_text(data))
        return
    rows = [
        (
            one.feature,
            _names(one.within),
            _names(one.brings),
            str(len(one.enables)),
            _ways(one.ways),
        )
        for one in found
    ]
    head = ("feature", "only within", "brings along", "enables", "ways to it")
    click.echo(_table(head, rows, "   rr", cut=(1, 2, 0)))
    click.echo()
    click.echo(wrapped(_summary(found, len(space.constraints)), screen_width()))
    for note in generator.grammar.notes:
        click.echo(note)


def _loaded(path: str, api: bool, start: str) -> tuple[str, Space, Any]:
    """The subject's name, its space, and the generator if it has a grammar."""
    if is_grammar_file(path):
        from swarmtest.subjects.grammar.generator import load_grammar

        generator = load_grammar(path, start)
        return path, Space(generator.features, generator.constraints), generator
    if start:
        raise UserError(f"--start is for grammar files (.lark, .g4), and {path} is none")
    subject: Any = SubjectReference(path, api).load()
    return subject.name, subject.space, _generator_of(subject)


def _generator_of(subject: Any) -> Any:
    generator = getattr(subject, "generator", None)
    return generator if hasattr(generator, "graph") else None


def _plain_text(space: Space) -> str:
    rows = [
        (
            feature.name,
            feature.group or "",
            "" if feature.rate is None else f"{feature.rate:g}",
            ", ".join(feature.requires),
            ", ".join(feature.excludes),
            "always" if feature.mandatory else "",
        )
        for feature in space.features
    ]
    head = ("feature", "group", "rate", "requires", "excludes", "mandatory")
    lines = [_table(head, rows, cut=(0,))]
    lines += [f"setting {s.name}: {_values(s.values)}" for s in space.settings]
    lines += [f"constraint: {constraint}" for constraint in space.constraints]
    return "\n".join(lines)


def _table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    cut: tuple[int, ...] = (),
) -> str:
    """A table without the columns that say nothing."""
    used = [c for c in range(len(head)) if c == 0 or any(row[c] for row in rows)]
    return fitted(
        tuple(head[c] for c in used),
        [tuple(row[c] for c in used) for row in rows],
        right="".join(right.ljust(len(head))[c] for c in used),
        width=screen_width(),
        cut=[used.index(c) for c in cut if c in used],
    )


def _values(values: Any) -> str:
    if isinstance(values, range):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))


def _names(names: tuple[str, ...]) -> str:
    """The last names, which are the nearest, and how many there are besides."""
    shown = ", ".join(names[-_SHOWN:])
    more = len(names) - _SHOWN
    return shown if more <= 0 else f"{shown} +{more}"


def _ways(ways: tuple[str, ...]) -> str:
    return ways[0] if len(ways) == 1 and ways[0] == "start" else str(len(ways))


def _summary(found: Any, constraints: int) -> str:
    one_way = sum(len(one.ways) == 1 for one in found)
    most = max(found, key=lambda one: len(one.ways))
    return (
        f"{plural(len(found), 'feature')}, {plural(constraints, 'constraint')}; {one_way} can be "
        f"reached in one way only, and {most.feature} in {len(most.ways)}"
    )


# -------------------------------------------------------------------------------------------------
# ``swarmtest strategies``: the strategies and their parameters.


@click.command()
def strategies() -> None:
    """List the strategies, with their parameters and what they are for."""
    for name, parameters, doc in describe_strategies():
        click.echo(f"{name}{':' if parameters else ''}{','.join(parameters)}")
        click.echo(f"    {doc}")
    click.echo("\nParameters are shown at their defaults: --strategy coin:p=0.3,n=100")
    click.echo("A mixture gives each of several its share: mixture:default=0.1,coin(p=0.3)=0.9")
    click.echo("\nYour own: MODULE:CLASS or FILE.py:CLASS with a method ask(space, trial, rng).")
