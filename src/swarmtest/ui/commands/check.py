"""``swarmtest check``, ``init`` and ``cc``: preparing a subject before the first campaign."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.campaign import Campaign
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.space import Space
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.subjects.command.check import template_names, template_purpose, template_text
from swarmtest.subjects.loading import SubjectReference, is_grammar_file
from swarmtest.subjects.subject import Subject

_TESTS = 5
"""The tests of a machine that `check` runs."""


@click.command()
@click.argument("path", metavar="PATH[::NAME]")
@click.option(
    "--api", is_flag=True, help="PATH is MODULE:CLASS; check the public methods of the class."
)
@click.option(
    "--quick", is_flag=True, help="Only read the subject: run no test, and do not try each feature."
)
@click.option("--start", metavar="RULE", default="", help="The start rule of a grammar.")
def check(path: str, api: bool, quick: bool, start: str) -> int:
    """Check a subject before you run a campaign.

    For a TOML file: find its commands, run its generator with all features on and with each feature
    off, and run a test through all steps. If no test is valid, say which step rejects them, and
    why. For a grammar (.lark, .g4): report parts that can never be used. For a machine: load it,
    check its constraints, and run a few tests to try its guards.

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
        if not quick and subject.part == "step":
            _try_actions(subject)
        path, space = subject.name, subject.space
    unknown = " so far; no test was run" if quick else ""
    click.echo(f"{path}: {_size_in_words(space)}: nothing wrong{unknown}")
    return 0


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


@click.command()
@click.argument("template", required=False)
@click.option("-o", "--output", metavar="FILE", help="The file to write.  [default: TEMPLATE.toml]")
def init(template: str | None, output: str | None) -> None:
    """Write a commented TOML file for testing a program with a test generator.

    Without TEMPLATE, list the templates. An existing file is not overwritten.
    """
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


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Compile C or C++ with coverage for swarmtest.",
)
@click.argument("words", metavar="COMPILER [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def cc(words: tuple[str, ...]) -> None:
    """Compile C or C++ so that a test's coverage is collected through shared memory.

    COMPILER is gcc, clang, g++, clang++, or a path. It runs with the given arguments, with -g and
    the flags for coverage, and when it links, with swarmtest's runtime. The macro SWARMTEST is
    defined.

    \b
    swarmtest cc gcc -O1 -o prog prog.c
    swarmtest cc clang++ -O2 -c part.cc
    CC="swarmtest cc gcc" ./configure && make
    make CC="swarmtest cc clang"
    swarmtest cc gcc -shared -fPIC -o libpart.so part.c

    With gcc, tail calls are not optimised (-fno-optimize-sibling-calls), because they would hide
    blocks. The program also runs without swarmtest, a little more slowly than usual.
    """
    command = compiler_command(words)
    sys.stdout.flush()
    os.execvp(command[0], command)
