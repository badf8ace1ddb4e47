"""What changed in the code since a revision: the changed statements, and renamed files.

Git says which files changed, including renames. Their lines are compared here, with the text of the
revision as compilers read it, so neither git's settings nor line endings matter.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.languages.git import GitError, ask, base_of, described, resolved, top
from swarmtest.languages.line_mapping import hunks
from swarmtest.languages.places import NothingToAimAt, ResolvedTargets, Wanted, united
from swarmtest.languages.python.statements import PythonStatements, code_of
from swarmtest.languages.source import Statements, is_code_file, statements_of
from swarmtest.languages.text_lines import AnyStatements, lines_of

_SUBMODULE = "160000"
_LINK = "120000"
_SECONDS = 10.0
"""The time limit for following a file through a long history; contents can be used instead."""


@dataclass(frozen=True)
class ChangedFile:
    """A file that differs from a revision: its names and contents then and now."""

    path: str
    """The path from the top of the repository, with slashes."""
    status: str
    """Git's letter: A, M, D, R, T, U; ``?`` for a file that is not in git yet."""
    old_path: str = ""
    blob: str = ""
    """The hash of its old content; empty if there was none."""
    mode: str = ""

    @property
    def shown(self) -> str:
        """Return its name on one line, whatever characters it has."""
        return self.path if self.path.isprintable() else ascii(self.path)


def from_diff(rev: str, cwd: str | Path = ".") -> ResolvedTargets:
    """Return the statements that were added or changed since a revision, committed or not.

    Changes are counted from where this branch left `rev` (`git merge-base REV HEAD`), as in a pull
    request: what others changed on ``main`` in the meantime is left out. Files that are not in git
    yet count as added, unless they are ignored. Where lines were only deleted, the statement that
    now follows them is a target.
    """
    why = f"--diff {rev}"
    repository = top(cwd)
    base = base_of(rev, repository)
    files = changed_files(base, repository)
    if not files:
        raise NothingToAimAt(f"{why}: nothing was changed since {described(base, repository)}")
    targets = united(_changed_in(file, repository, why) for file in files)
    if not targets.wanted:
        examples = "; ".join(targets.unusable[:3])
        more = f" and {len(targets.unusable) - 3} more" if len(targets.unusable) > 3 else ""
        raise NothingToAimAt(f"{why}: no changed line can be a target: {examples}{more}")
    return targets


def changed_files(base: str, repository: Path) -> list[ChangedFile]:
    """Return the files in the working tree that differ from a commit, without ignored ones."""
    try:
        raw = ask(
            repository,
            *("diff", "--raw", "-z", "--no-abbrev", "-M", "--no-ext-diff", "--no-textconv"),
            *("--no-color", "--no-relative", "--ignore-submodules=dirty", base, "--"),
        )
        untracked = ask(repository, "ls-files", "--others", "--exclude-standard", "-z")
    except GitError as error:
        raise UserError(f"git: {str(error).splitlines()[0]}") from None
    changed = {file.path: file for file in _parsed(os.fsdecode(raw))}
    for path in filter(None, os.fsdecode(untracked).split("\0")):
        tracked = changed.get(path)
        # A file that was removed from the index but still exists is compared with its old content.
        blob = tracked.blob if tracked else ""
        changed[path] = ChangedFile(path, "M" if blob else "?", path, blob)
    return [changed[path] for path in sorted(changed)]


def _parsed(raw: str) -> Iterator[ChangedFile]:
    """Yield the entries ``:mode mode hash hash STATUS\\0path\\0``, with two paths for renames."""
    fields = iter(raw.split("\0"))
    for head in fields:
        if not head.startswith(":"):
            continue
        old_mode, new_mode, blob, _, status = head[1:].split(" ")
        path = old_path = next(fields)
        if status[0] in "RC":
            path = next(fields)
        mode = old_mode if status == "D" else new_mode
        yield ChangedFile(path, status[0], old_path, blob if blob.strip("0") else "", mode)


def _changed_in(file: ChangedFile, repository: Path, why: str) -> ResolvedTargets:
    """Return the changed statements of one file, or why it has none."""
    path = repository / file.path
    reason = _why_not(file, path)
    if reason:
        return ResolvedTargets(unusable=(f"{file.shown}: {reason}",))
    try:
        now = statements_of(path)
        lines = _changed_lines(file, repository, now)
    except UserError as error:
        return ResolvedTargets(unusable=(str(error),))
    except (OSError, GitError) as error:
        return ResolvedTargets(unusable=(f"{file.shown}: cannot be read ({error})",))
    if not lines:
        what = "renamed" if file.status == "R" else "changed"
        return ResolvedTargets(
            unusable=(f"{file.shown}: {what}, but nothing that is executed was changed",)
        )
    real = str(path.resolve())
    return ResolvedTargets(tuple(Wanted(real, line, why, now.function_at(line)) for line in lines))


def _why_not(file: ChangedFile, path: Path) -> str:
    """Return why a file cannot have target lines; empty if it can."""
    if file.mode == _SUBMODULE or path.is_dir():
        return "a submodule, which is not looked into"
    if file.status == "D":
        return "deleted"
    if file.mode == _LINK or path.is_symlink():
        return "a link"
    if not path.exists():
        return "not there any more"
    if is_code_file(path):
        return "binary" if b"\0" in path.read_bytes() else ""
    return "not code that is watched"


def _changed_lines(file: ChangedFile, repository: Path, now: Statements) -> list[int]:
    """Return the lines where the changed statements begin."""
    if not file.blob:
        return now.lines
    python = isinstance(now, PythonStatements)
    old = _decoded(ask(repository, "cat-file", "blob", file.blob), python)
    read = code_of if python else list
    before: Statements | None = None
    starts: set[int] = set()
    for hunk in hunks(read(lines_of(old)), read(now.texts)):
        changed = now.within(hunk.new)
        starts.update(changed)
        if not changed and hunk.old:
            before = before or _statements_then(old, now, file.old_path)
            starts.update(_after_deletion(before, hunk.old, hunk.new.stop - 1, now))
    return sorted(starts)


def _after_deletion(then: Statements, gone: range, line: int, now: Statements) -> Iterator[int]:
    """Yield the statement that follows deleted ones, in the same function if possible."""
    deleted = then.within(gone)
    if deleted:
        following = now.after(line, then.function_at(deleted[0])) or now.after(line)
        if following is not None:
            yield following


def _statements_then(text: str, now: Statements, path: str) -> Statements:
    if isinstance(now, AnyStatements):
        return type(now)(text)
    try:
        return PythonStatements(text, path)
    except UserError:
        return AnyStatements(text)  # not valid Python, so any line may have been a statement


def _decoded(content: bytes, python: bool) -> str:
    if python:
        try:
            return importlib.util.decode_source(content)
        except (SyntaxError, UnicodeDecodeError):
            pass
    return content.decode(errors="replace")


def earlier_names(place: str | Path) -> tuple[str, ...]:
    """Return the earlier names of a file, the latest first, from the repository's top with slashes.

    Renames that are not committed yet count. Return an empty tuple if there is no git, if it knows
    no other name, or if it takes too long.
    """
    path = Path(place).resolve()
    try:
        repository = top(path.parent)
        now = path.relative_to(repository).as_posix()
        committed = _name_in_head(now, repository)
        log = ask(
            repository,
            *("log", "--follow", "--name-status", "-z", "--format=", "-M", "--diff-filter=R"),
            *("--no-show-signature", "--no-color", "--no-ext-diff", "HEAD", "--", committed),
            seconds=_SECONDS,
        )
    except (GitError, UserError, ValueError):
        return ()
    names = [committed, *_old_names(os.fsdecode(log))]
    return tuple(name for name in dict.fromkeys(names) if name != now)


def _name_in_head(path: str, repository: Path) -> str:
    changed = changed_files(resolved("HEAD", repository), repository)
    renamed = {file.path: file.old_path for file in changed if file.status == "R"}
    return renamed.get(path, path)


def _old_names(log: str) -> list[str]:
    """Return the old names of entries ``R100\\0old\\0new\\0``."""
    fields = [field.strip("\n") for field in log.split("\0")]
    is_rename = (len(field) > 1 and field[0] == "R" and field[1:].isdigit() for field in fields)
    return [fields[i + 1] for i, renamed in enumerate(is_rename) if renamed and i + 2 < len(fields)]
