"""C programs that tests write, and the TOML files that run them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.subjects.command.subject import CommandSubject, load_command_subject

needs_gcc = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("make")),
    reason="needs gcc and make: apt-get install gcc make",
)

RUN = 'run = "{here}/prog {test}"'


def written(
    place: Path,
    files: Mapping[str, str],
    *,
    build: str = "gcc -O1 -o prog prog.c",
    mutate: str = "",
    steps: str = RUN,
) -> CommandSubject:
    """A subject that gives a text to a program of these files."""
    for name, text in files.items():
        (place / name).write_text(textwrap.dedent(text))
    table = f'[mutate]\nbuild = "{build}"\n{mutate}\n' if build else ""
    (place / "prog.toml").write_text(
        '[generate]\ncommand = "echo {seed} {features}"\n[features]\na = "a"\n'
        f'[[steps]]\nname = "prog"\n{steps}\nexpect = "any"\n{table}'
    )
    return load_command_subject(str(place / "prog.toml"))


def given(text: str) -> dict[str, Any]:
    return {"format": "swarmtest command test 1", "subject": "prog.toml", "text": text}


def given_all(*texts: str) -> dict[str, Any]:
    return {text: given(text) for text in texts}


def outcomes(matrix: KillMatrix) -> dict[str, list[int]]:
    """For each mutant, by the line that it makes, what became of it under each test."""
    return {
        mutant.after.strip(): row.tolist()
        for mutant, row in zip(matrix.mutants, matrix.outcomes, strict=True)
    }
