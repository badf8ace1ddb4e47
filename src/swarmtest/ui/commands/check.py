"""``swarmtest check`` and ``init``: preparing a subject before the first campaign."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.campaign import Campaign
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.subjects.command.check import template_names, template_purpose, template_text
from swarmtest.subjects.generated import GeneratorSubject
from swarmtest.subjects.loading import SubjectReference, is_grammar_file
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import screen_width
from swarmtest.ui.terminal.tables import indented_lines, screen_table
from swarmtest.ui.terminal.text import json_text

_TESTS = 5
"""The tests of a machine that `check` runs."""
_REJECTED = ("method", "rejected", "calls")


@click.command(cls=HelpfulCommand)
@click.argument("path", metavar="PATH[::NAME]", shell_complete=completion.files)
@click.option(
    "--api", is_flag=True, help="PATH is MODULE:CLASS; check the public methods of the class."
)
@click.option(
    "--quick", is_flag=True, help="Only read the subject: run no test, and do not try each feature."
)
@click.option("--start", metavar="RULE", default="", help="The start rule of a grammar.")
@click.option("--json", "as_json", is_flag=True, help="Print what is there as one JSON object.")
def check(path: str, api: bool, quick: bool, start: str, as_json: bool) -> int:
    """Check a subject before you run a campaign.

    \b
    swarmtest check stack.py
    swarmtest check csmith-gcc.toml

    For a TOML file: find its commands, run its generator with all features on and with each feature
    off, and run a test through all steps. If no test is valid, say which step rejects them, and
    why. For a grammar (.lark, .g4): report parts that can never be used. For a machine: load it,
    check its constraints, and run a few tests to try its guards. For a generator function: generate
    a few tests and run them.

    Exit status: 0 nothing is wrong, 2 something is.
    """
    if is_grammar_file(path):
        from swarmtest.subjects.grammar.generator import load_grammar

        generator = load_grammar(path, start=start)
        _raise_problems(generator.grammar.notes)
        space = Space(generator.features, generator.constraints)
    else:
        if start:
            raise UserError(f"--start is for grammar files (.lark, .g4), not for {path}")
        subject = SubjectReference(path, api).load()
        _raise_problems(subject.check(thorough=not quick))
        Campaign(subject, "coin", 1, store=":memory:", workers=0).rehearse()
        if not quick and isinstance(subject, GeneratorSubject):
            _try_generator(subject)
        elif not quick and subject.part == "step":
            _try_actions(subject)
        path, space = subject.name, subject.space
    rows = []
    if api and not quick:
        from swarmtest.subjects.api_trial_calls import rejection_rows, trial_calls

        rows = rejection_rows(trial_calls(cast(MachineSubject, subject)))
    if as_json:
        click.echo(json_text(_plain(path, space, rows)))
        return 0
    unknown = " so far; no test was run" if quick else ""
    line = f"{path}: {_size_in_words(space)}: nothing wrong{unknown}"
    click.echo("\n".join(indented_lines(line, screen_width())))
    if rows:
        click.echo("\n" + screen_table(_REJECTED, rows, " rr", screen_width()))
    return 0


def _plain(path: str, space: Space, rejected: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    """Return what was found about a subject as JSON data."""
    return {
        "subject": path,
        "features": list(space.feature_names),
        "settings": [setting.name for setting in space.settings],
        "constraints": len(space.clauses),
        "rejected": [dict(zip(_REJECTED, row, strict=True)) for row in rejected],
    }


def _try_actions(subject: Subject) -> None:
    """Run a few tests; raise `UserError` for a mistake in the machine, or if no action runs."""
    steps = 0
    for seed in range(_TESTS):
        result = run_isolated(
            functools.partial(subject.execute, subject.space.default(), seed),
            Limits().seconds_of(subject),
            quiet=True,
        )
        if result.fault is not None:
            return  # that is for `run` to find
        steps += result.steps
    if not steps:
        raise UserError(
            f"no action ran in {_TESTS} tests: at the start, no guard is true (when=), or every "
            "pool is empty"
        )


def _try_generator(subject: GeneratorSubject) -> None:
    """Run a few tests; raise `UserError` for a mistake in the generator or the program's settings.

    The first run of a program finds that it has no coverage, or that no file matches ``sources``.
    """
    reasons = set()
    for seed in range(_TESTS):
        result = run_isolated(
            functools.partial(subject.execute, subject.space.default(), seed),
            Limits().seconds_of(subject),
            quiet=True,
        )
        if result.verdict is not Verdict.INVALID:
            return  # a fault is for `run` to find
        reasons.add(result.missing)
    raise UserError(
        f"no test was generated in {_TESTS} attempts with all features on: "
        f"{'; '.join(sorted(filter(None, reasons))) or 'the generator raises NoTest'}"
    )


def _raise_problems(problems: Sequence[str]) -> None:
    """Print all problems but the last, and raise `UserError` for that, if there are any."""
    for problem in problems[:-1]:
        click.echo(f"swarmtest: {problem}", err=True)
    if problems:
        raise UserError(problems[-1])


def _size_in_words(space: Space) -> str:
    words = [plural(len(space.features), "feature")]
    if space.settings:
        words.append(plural(len(space.settings), "setting"))
    if space.clauses:
        words.append(plural(len(space.clauses), "constraint"))
    return ", ".join(words)


def _init_machine(reference: str, output: str | None) -> None:
    """Write the machine that is derived from a class, as a file to edit."""
    from swarmtest.languages.user_objects import load_object, split_reference
    from swarmtest.subjects.api_source import machine_source
    from swarmtest.subjects.loading import examining

    cls = load_object(reference, "class")
    if not isinstance(cls, type):
        raise UserError(f"{reference} is not a class")
    module, _ = split_reference(reference)
    with examining(reference):
        text = machine_source(cls, Path(module).stem if module.endswith(".py") else module)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with open(output, "x") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{output} exists already: name another file with -o") from None
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None
    click.echo(f"{output} is written; next: swarmtest run {output}")


@click.command(cls=HelpfulCommand)
@click.argument("template", required=False)
@click.option("-o", "--output", metavar="FILE", help="The file to write.  [default: TEMPLATE.toml]")
@click.option(
    "--api",
    metavar="MODULE:CLASS",
    help="Print the machine that --api derives from a class, as a file to edit.",
)
def init(template: str | None, output: str | None, api: str | None) -> None:
    """Write a file to begin with: for a program with a test generator, or for a class.

    \b
    swarmtest init                               the templates
    swarmtest init csmith-gcc                    write csmith-gcc.toml
    swarmtest init --api shop.cart:Cart > m.py   a machine for a class

    Without TEMPLATE, list the templates. An existing file is not overwritten.
    """
    if api is not None:
        if template is not None:
            raise UserError("init: name a template, or --api MODULE:CLASS, not both")
        _init_machine(api, output)
        return
    if template is None:
        names = template_names()
        width = max(map(len, names))
        for name in names:
            click.echo(f"{name:{width}}  {template_purpose(name)}")
        click.echo("\nstart from one with: swarmtest init TEMPLATE")
        return
    text = template_text(template)
    path = Path(output or f"{template}.toml")
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} exists already: name another file with -o") from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"{path} is written; next: swarmtest check {path}, swarmtest run {path}")
