"""Real git repositories for tests, independent of the settings of whoever runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="git is not installed: apt-get install git"
)


class Repository:
    """A repository with a working tree, on the branch `main`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
        names = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in _WHO}
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *words],
            cwd=self.place,
            env=kept | names | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
        return file

    def commit(self, message: str = "a change") -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


_WHO = ("NAME", "EMAIL")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty repository; the current directory is its top."""
    made = Repository(tmp_path / "project")
    monkeypatch.chdir(made.place)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return made
