"""Command subjects made from the text of a TOML file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarmtest.subjects.command.subject import CommandSubject, load_command_subject

Make = Callable[..., CommandSubject]


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Write a TOML file, with other files beside it, and load it."""
    monkeypatch.syspath_prepend(tmp_path)  # put back at the end, with what was imported from it
    monkeypatch.delitem(sys.modules, "judge", raising=False)
    made: list[CommandSubject] = []

    def make(text: str, **files: str) -> CommandSubject:
        for name, content in files.items():
            file = tmp_path / name.replace("_", ".")
            file.write_text(content)
            file.chmod(0o755)
        path = tmp_path / "subject.toml"
        path.write_text(text)
        made.append(load_command_subject(str(path)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def steps(subject: Make) -> Make:
    """A subject whose tests are one line, `hello`, with these steps and oracles."""

    def make(text: str, **files: str) -> CommandSubject:
        return subject(
            """
            [generate]
            command = ["sh", "-c", "echo hello # {seed} {features}"]
            [features]
            a = "-a"
            """
            + text,
            **files,
        )

    return make
