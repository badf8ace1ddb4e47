"""What ``swarmtest`` alone says: what is in this directory, and what could be done with it.

Files are read as text and as syntax trees, and nothing is imported: a command that only looks
around must not run the code that it finds.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural, printable_line, typed_word

_MACHINE_BASES = {"Machine": "machine", "RuleBasedStateMachine": "Hypothesis machine"}
_MAX_FILES = 400
_MAX_BYTES = 1_000_000
_MAX_SUGGESTED = 4
_SKIPPED = frozenset({"node_modules", "site-packages", "build", "dist", "venv", "__pycache__"})


class NextStep(NamedTuple):
    """A command that makes sense here, and why."""

    command: str
    reason: str


def next_steps(directory: Path) -> list[NextStep]:
    """Return commands that make sense in a directory, the most useful first.

    >>> import tempfile
    >>> directory = Path(tempfile.mkdtemp())
    >>> _ = (directory / "stack.py").write_text("class Stack(Machine): pass")
    >>> next_steps(directory)[0]
    NextStep(command='swarmtest run stack.py', reason='test the machine Stack')
    """
    return [*_about_store(), *_about_files(directory)]


def steps_text(steps: list[NextStep]) -> str:
    """Return next steps as lines for the terminal, the commands in one column."""
    width = max(len(step.command) for step in steps)
    return "\n".join(f"  {printable_line(step.command):{width}}  {step.reason}" for step in steps)


def _about_store() -> Iterator[NextStep]:
    """Yield what can be done with the newest campaign of the usual store."""
    from swarmtest.store import open_store

    try:
        with open_store(None, must_exist=True, read_only=True) as store:
            campaigns = store.campaigns()
            if not campaigns:
                return
            newest = campaigns[-1]
            faults = store.faults(newest.id)
    except UserError:
        return
    subject = printable_line(newest.subject)
    if faults:
        yield NextStep("swarmtest faults", f"{plural(len(faults), 'fault')} of {subject}")
        yield NextStep(f"swarmtest why {typed_word(faults[0].id)}", "explain the first of them")
    yield NextStep("swarmtest show", f"campaign {newest.id}, the newest of {len(campaigns)}")
    yield NextStep("swarmtest resume", "continue it")
    yield NextStep("swarmtest report", "write all about it to report.html")


def _about_files(directory: Path) -> Iterator[NextStep]:
    """Yield what can be tested in a directory."""
    found = 0
    for file in _files(directory):
        for name, kind in _machines(file) if file.suffix == ".py" else _settings(file):
            path = file.relative_to(directory)
            yield NextStep(f"swarmtest run {path}", f"test the {kind}{name and f' {name}'}")
            found += 1
            break
        if found == _MAX_SUGGESTED:
            return


def _files(directory: Path) -> Iterator[Path]:
    """Yield Python and TOML files below a directory, those near the top first."""
    seen = 0
    for here, folders, names in os.walk(directory):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        for name in sorted(names):
            if name.endswith((".py", ".toml")):
                seen += 1
                if seen > _MAX_FILES:
                    return
                yield Path(here, name)


def _machines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of each machine that a Python file defines."""
    text = _text(file)
    if not any(base in text for base in _MACHINE_BASES):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if isinstance(node, ast.ClassDef) and name in _MACHINE_BASES:
                yield node.name, _MACHINE_BASES[name]


def _settings(file: Path) -> Iterator[tuple[str, str]]:
    """Yield one entry if a TOML file says how to test a program."""
    import tomllib

    try:
        data = tomllib.loads(_text(file))
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    if "generate" in data or "generator" in data:
        yield "", "program that it describes"


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace") if file.stat().st_size <= _MAX_BYTES else ""
    except OSError:
        return ""
