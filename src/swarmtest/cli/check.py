"""``swarmtest check``: is a subject fit to be tested?"""

from __future__ import annotations

import click

from swarmtest.campaign import Campaign
from swarmtest.errors import UserError
from swarmtest.report.terminal import plural
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject


@click.command()
@click.argument("path", metavar="PATH[::NAME]")
@click.option("--api", is_flag=True, help="PATH is MODULE:CLASS: its public methods.")
@click.option("--quick", is_flag=True, help="Do not try the generator with each feature.")
def check(path: str, api: bool, quick: bool) -> int:
    """Say what is wrong with a subject before any test is run.

    A TOML file is read and its commands are looked up; then its generator is tried with everything
    on, and with each feature off, to see whether it takes its words. Of Python files and grammars,
    machines are loaded and their constraints checked.

    Exit status: 0 nothing is wrong, 2 something is.
    """
    subject = SubjectReference(path, api).load()
    problems = subject.check(thorough=not quick)
    for problem in problems[:-1]:
        click.echo(f"swarmtest: {problem}", err=True)
    if problems:
        raise UserError(problems[-1])
    Campaign(subject, "coin", 1, store=":memory:", workers=0).rehearse()
    click.echo(f"{subject.name}: {_described(subject)}: nothing wrong")
    return 0


def _described(subject: Subject) -> str:
    space = subject.space
    words = [plural(len(space.features), "feature")]
    if space.settings:
        words.append(plural(len(space.settings), "setting"))
    if space.clauses:
        words.append(plural(len(space.clauses), "constraint"))
    return ", ".join(words)
