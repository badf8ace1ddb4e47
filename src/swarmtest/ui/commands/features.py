"""``swarmtest features`` and ``swarmtest strategies``: what a campaign can vary, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import describe_strategies
from swarmtest.subjects.loading import SubjectReference, is_grammar_file
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import screen_width
from swarmtest.ui.terminal.tables import fitted, indented_lines, wrapped
from swarmtest.ui.terminal.text import json_text

_MAX_NAMES = 2
"""The most names in a cell; the others are counted."""


@click.command(cls=HelpfulCommand)
@click.argument("path", shell_complete=completion.files)
@click.option(
    "--api", is_flag=True, help="PATH is MODULE:CLASS; list the public methods of the class."
)
@click.option("--start", metavar="RULE", default="", help="The start rule of a grammar.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def features(path: str, api: bool, start: str, as_json: bool) -> None:
    """List the features of a subject, and which of them depend on others.

    PATH is what `swarmtest run` takes, or a grammar file. For a grammar, each feature is listed
    with the features it stands within (it cannot be reached without them), the features it brings
    along (every text with it also has them), the number of features it enables (they cannot appear
    without it), and the number of ways to it (features that lead to it directly). A feature with
    many ways is rarely absent because one of them was left out.

    \b
    swarmtest features stack.py
    swarmtest features examples/sql.lark
    """
    subject, space, generator = _load(path, api, start)
    if generator is None:
        data: dict[str, Any] = {"subject": subject, "space": space.to_json()}
        click.echo(json_text(data) if as_json else _plain_text(space))
        return
    from swarmtest.subjects.grammar.feature_constraints import implications

    entries = implications(generator.graph)
    if as_json:
        listed = [entry.to_json() for entry in entries]
        data = {"subject": subject, "space": space.to_json(), "implications": listed}
        click.echo(json_text(data))
        return
    rows = [
        (
            entry.feature,
            _names(entry.within),
            _names(entry.brings),
            str(len(entry.enables)),
            _ways(entry.ways),
        )
        for entry in entries
    ]
    head = ("feature", "only within", "brings along", "enables", "ways to it")
    click.echo(_table(head, rows, "   rr", cut=(1, 2, 0)))
    click.echo()
    click.echo(wrapped(_summary(entries, len(space.constraints)), screen_width()))
    for note in generator.grammar.notes:
        click.echo(note)


def _load(path: str, api: bool, start: str) -> tuple[str, Space, Any]:
    """Return the subject's name, its space, and its generator if it has a grammar."""
    if is_grammar_file(path):
        from swarmtest.subjects.grammar.generator import load_grammar

        generator = load_grammar(path, start)
        return path, Space(generator.features, generator.constraints), generator
    if start:
        raise UserError(f"--start is for grammar files (.lark, .g4), not for {path}")
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
    lines += [f"setting {setting.name}: {_values(setting.values)}" for setting in space.settings]
    lines += [f"constraint: {constraint}" for constraint in space.constraints]
    return "\n".join(lines)


def _table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    cut: tuple[int, ...] = (),
) -> str:
    """Return a table without its empty columns."""
    used = [
        column for column in range(len(head)) if column == 0 or any(row[column] for row in rows)
    ]
    return fitted(
        tuple(head[column] for column in used),
        [tuple(row[column] for column in used) for row in rows],
        right="".join(right.ljust(len(head))[column] for column in used),
        width=screen_width(),
        cut=[used.index(column) for column in cut if column in used],
    )


def _values(values: Any) -> str:
    if isinstance(values, range):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))


def _names(names: tuple[str, ...]) -> str:
    """Return the last names, which are the nearest, and the number of the others."""
    shown = ", ".join(names[-_MAX_NAMES:])
    more = len(names) - _MAX_NAMES
    return shown if more <= 0 else f"{shown} +{more}"


def _ways(ways: tuple[str, ...]) -> str:
    return ways[0] if len(ways) == 1 and ways[0] == "start" else str(len(ways))


def _summary(entries: Any, constraints: int) -> str:
    one_way = sum(len(entry.ways) == 1 for entry in entries)
    most = max(entries, key=lambda entry: len(entry.ways))
    return (
        f"{plural(len(entries), 'feature')}, {plural(constraints, 'constraint')}; {one_way} can be "
        f"reached in one way only, and {most.feature} in {len(most.ways)}"
    )


@click.command(cls=HelpfulCommand)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def strategies(as_json: bool) -> None:
    """List the strategies, with their parameters and their purpose.

    \b
    swarmtest strategies
    swarmtest run stack.py --strategy coin:p=0.3    use one, with a parameter
    """
    if as_json:
        for name, parameters, doc in describe_strategies():
            click.echo(json_text({"name": name, "parameters": [*parameters], "purpose": doc}))
        return
    for name, parameters, doc in describe_strategies():
        click.echo(f"{name}{':' if parameters else ''}{','.join(parameters)}")
        click.echo("\n".join(indented_lines(f"    {doc}", screen_width())))
    for line in _STRATEGY_NOTES:
        click.echo("\n".join(indented_lines(line, screen_width())))


_STRATEGY_NOTES = (
    "",
    "Parameters are shown at their defaults: --strategy coin:p=0.3,n=100",
    "A mixture combines strategies by shares: mixture:all-on=0.1,coin(p=0.3)=0.9",
    "",
    "Your own: MODULE:CLASS or FILE.py:CLASS with a method ask(space, trial, rng).",
)
