"""``swarmtest check``: is a subject fit to be tested?"""

from __future__ import annotations

from collections.abc import Sequence

import click

from swarmtest.campaign import Campaign
from swarmtest.errors import UserError
from swarmtest.report.terminal import plural
from swarmtest.space import Space
from swarmtest.subjects.loading import SubjectReference, is_grammar_file


@click.command()
@click.argument("path", metavar="PATH[::NAME]")
@click.option("--api", is_flag=True, help="PATH is MODULE:CLASS: its public methods.")
@click.option("--quick", is_flag=True, help="Run no test, and do not try each feature.")
@click.option("--start", metavar="RULE", default="", help="The rule a grammar file starts from.")
def check(path: str, api: bool, quick: bool, start: str) -> int:
    """Say what is wrong with a subject before a campaign is run.

    A TOML file is read and its commands are looked up. Its generator is tried with everything on,
    and with each feature off, to see whether it takes its words. Then a test is run through all
    steps; if none of a few is valid, you see which step rejects them, and why. A grammar (.lark,
    .g4) is read, and what in it can never be used is told. Machines are loaded, and their
    constraints checked.

    Exit status: 0 nothing is wrong, 2 something is.
    """
    if is_grammar_file(path):
        from swarmtest.subjects.grammar import load_grammar

        generator = load_grammar(path, start=start)
        _refuse(generator.grammar.notes)
        space = Space(generator.features, generator.constraints)
    else:
        subject = SubjectReference(path, api).load()
        _refuse(subject.check(thorough=not quick))
        Campaign(subject, "coin", 1, store=":memory:", workers=0).rehearse()
        path, space = subject.name, subject.space
    unknown = " so far; no test was run" if quick else ""
    click.echo(f"{path}: {_described(space)}: nothing wrong{unknown}")
    return 0


def _refuse(problems: Sequence[str]) -> None:
    for problem in problems[:-1]:
        click.echo(f"swarmtest: {problem}", err=True)
    if problems:
        raise UserError(problems[-1])


def _described(space: Space) -> str:
    words = [plural(len(space.features), "feature")]
    if space.settings:
        words.append(plural(len(space.settings), "setting"))
    if space.clauses:
        words.append(plural(len(space.clauses), "constraint"))
    return ", ".join(words)
