"""``swarmtest learn``: record the values with which a package is called."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.learn import recorder
from swarmtest.processes.commands import capture
from swarmtest.subjects.learned_values import SUFFIX, written
from swarmtest.ui.help import HelpfulCommand

STDERR = 2
"""The descriptor to which the command writes: the values are our only output."""


@click.command(cls=HelpfulCommand, context_settings={"ignore_unknown_options": True})
@click.argument("package")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", metavar="FILE", help="Where to write.  [default: PACKAGE.values]")
def learn(package: str, words: tuple[str, ...], output: str | None) -> int:
    """Record the values with which methods of a package are called while a command runs.

    \b
    swarmtest learn shop -- pytest tests           writes shop.values
    swarmtest learn shop -- python examples.py
    swarmtest run shop.cart:Cart --api             draws from shop.values

    Any command that starts Python will do. Values are kept if they can be written as literals. The
    file can be edited; a file in the current directory is used by --api, and another one with
    --values FILE. Methods that are written in C are not seen.
    """
    if not words:
        raise UserError(f"say what to run: swarmtest learn {package} -- pytest")
    package = package.partition(":")[0]
    if not all(part.isidentifier() for part in package.split(".")):
        raise UserError(f"{package!r} is not the name of a package")
    values, status = recorded(package, words)
    if not any(parameters for methods in values.values() for parameters in methods.values()):
        raise UserError(
            f"no method of {package} was called with a value that can be written down (the command "
            f"ended with status {status})"
        )
    path = Path(output or f"{package}{SUFFIX}")
    try:
        path.write_text(written(values, package, shlex.join(words)), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    count = sum(len(texts) for methods in values.values() for texts in methods.values())
    note = f"; the command ended with status {status}" if status else ""
    click.echo(f"{path}: {plural(count, 'value')} of {plural(len(values), 'method')}{note}")
    return 0


def recorded(package: str, words: tuple[str, ...]) -> tuple[dict[str, dict[str, list[str]]], int]:
    """Run a command; return the values that were recorded, and its exit status."""
    with tempfile.TemporaryDirectory() as place:
        code, results = Path(place, "code"), Path(place, "results")
        code.mkdir()
        results.mkdir()
        shutil.copy(recorder.__file__, code / "sitecustomize.py")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(code), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            recorder.PACKAGE: package,
            recorder.PLACE: str(results),
        }
        sys.stderr.flush()
        try:
            # Straight to the terminal: tests take minutes, and a daemon would keep a pipe open.
            ended = capture(words, environment=environment, output_to=STDERR)
        except OSError as error:
            raise UserError(f"cannot run {words[0]!r}: {error.strerror}") from None
        return merged(results), ended.status or 0


def merged(results: Path) -> dict[str, dict[str, list[str]]]:
    """Return the values of all processes, each once.

    A process that was killed while it wrote has left a part of a file, which is passed over.
    """
    merged: dict[str, dict[str, list[str]]] = {}
    for path in sorted(results.glob(f"*{recorder.COMPLETE}")):
        for method, parameters in json.loads(path.read_text(encoding="utf-8")).items():
            for name, texts in parameters.items():
                kept = merged.setdefault(method, {}).setdefault(name, [])
                kept += [text for text in texts if text not in kept]
                del kept[recorder.MOST_VALUES :]
    return merged
