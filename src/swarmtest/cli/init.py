"""``swarmtest init``: a commented TOML file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from swarmtest.errors import UserError
from swarmtest.subjects.command.template_files import (
    template_names,
    template_purpose,
    template_text,
)


@click.command()
@click.argument("template", required=False)
@click.option("-o", "--output", metavar="FILE", help="[default: TEMPLATE.toml]")
def init(template: str | None, output: str | None) -> None:
    """Write a commented TOML file that tests a program with a generator of tests.

    Without TEMPLATE, list the templates. A file that is there already is not overwritten.
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
        raise UserError(f"{path} is there already: name another file with -o") from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"{path} is written; next: swarmtest check {path}, swarmtest run {path}")
