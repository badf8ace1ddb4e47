"""What the code of a subject is now: the commit, and the files as they were last saved.

To look is cheap: files of git and of the program are asked for their time and size, and git itself
is asked only if one of its files has changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.languages.git import GitError, ask, ask_text, described, top

_SUFFIXES = (".py", ".pyx", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".toml", ".lark", ".g4")
"""The files that are looked at: code, and what describes how it is tested."""
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "dist-packages"}
_MOST_NAMES = 3

Stamp = tuple[int, int, int]
"""The time of the last change, the size and the inode of a file."""


@dataclass(frozen=True)
class CodeState:
    """The code at one moment."""

    commit: str
    """The whole hash of the commit that is checked out; empty if there is none."""
    files: dict[str, Stamp]
    """The stamps of the files of the program, by path."""

    def saved_since(self, earlier: CodeState) -> list[str]:
        """Return the files that were saved, added or removed since an earlier moment."""
        paths = self.files.keys() | earlier.files.keys()
        return sorted(p for p in paths if self.files.get(p) != earlier.files.get(p))


class WatchedCode:
    """The repository and the files that a subject's code is in."""

    def __init__(self, directory: str | Path) -> None:
        """Watch the repository that a directory is in, or the directory if it is in none."""
        self._directory = Path(directory).resolve()
        self.is_repository = True
        try:
            self.top = top(self._directory)
            git = ask_text(self._directory, "rev-parse", "--absolute-git-dir")
            common = ask_text(self._directory, "rev-parse", "--git-common-dir")
        except (UserError, GitError):
            self.is_repository = False
            self.top = self._directory
            return
        self._git = Path(git)
        self._common = (self._directory / common).resolve()
        self._head: tuple[dict[str, Stamp], str] = ({}, "")

    def look(self) -> CodeState:
        """Return the state of the code now."""
        return CodeState(self._commit(), _stamps(self._files()))

    def is_clean(self) -> bool:
        """Return whether no file of the repository was changed since the commit."""
        if not self.is_repository:
            return False
        try:
            ask(self.top, "diff-index", "--quiet", "HEAD", "--")
        except (UserError, GitError):
            return False
        return True

    def moved_on(self, state: CodeState, *, on_save: bool) -> bool:
        """Return whether there is a new commit, or, with `on_save`, a file was saved."""
        if self._commit() != state.commit:
            return True
        return on_save and self.look().files != state.files

    def describe(self, commit: str) -> str:
        """Return a commit for people, like ``1a2b3c4 Round prices``."""
        try:
            return described(commit, self.top)
        except (UserError, GitError):
            return commit[:12]

    def has_commit(self, commit: str) -> bool:
        """Return whether the repository has a commit, of which the hash may be shortened."""
        try:
            ask(self.top, "cat-file", "-e", f"{commit}^{{commit}}")
        except (UserError, GitError):
            return False
        return True

    def _commit(self) -> str:
        if not self.is_repository:
            return ""
        stamps = _stamps(self._files_of_git())
        if stamps != self._head[0]:
            try:
                commit = ask_text(self.top, "rev-parse", "--verify", "--quiet", "HEAD")
            except GitError:
                commit = ""
            self._head = (stamps, commit)
        return self._head[1]

    def _files_of_git(self) -> list[str]:
        """Return the files that change with the commit that is checked out."""
        head = self._git / "HEAD"
        files = [head, self._git / "logs" / "HEAD", self._common / "packed-refs"]
        try:
            text = head.read_text()
        except OSError:
            text = ""
        if text.startswith("ref: "):
            files.append(self._common / text.removeprefix("ref: ").strip())
        return list(map(str, files))

    def _files(self) -> list[str]:
        """Return the files of the program, below the subject's directory or its repository."""
        files: list[str] = []
        for directory, folders, names in os.walk(self.top):
            folders[:] = [f for f in folders if not f.startswith(".") and f not in _SKIPPED]
            files += [os.path.join(directory, n) for n in names if n.endswith(_SUFFIXES)]
        return files


def _stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    stamps = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        stamps[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return stamps


def names_of(paths: list[str], directory: Path) -> str:
    """Return the names of some files, of many only the first.

    >>> names_of(["/w/a.py", "/w/b.py"], Path("/w"))
    'a.py, b.py'
    """
    shown = ", ".join(os.path.relpath(path, directory) for path in paths[:_MOST_NAMES])
    more = len(paths) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
