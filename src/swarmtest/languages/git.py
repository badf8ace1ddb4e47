"""Run git independently of the user's settings, and leave nothing behind in the repository.

Only plumbing commands whose output does not depend on settings are used, with names ended by NUL,
without locks and hooks. Variables that git sets for hooks are removed: they would point to another
index or repository.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean

_KEPT_VARIABLES = (
    "GIT_CONFIG",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_SSH",
    "GIT_ASKPASS",
)
_SECONDS = 120.0
_MOST_NAMES = 12
_SETTINGS = tuple(
    word
    for setting in ("quotePath", "fsmonitor", "splitIndex", "untrackedCache")
    for word in ("-c", f"core.{setting}=false")
)
"""Without these, git might quote names, start a daemon, or write to the index."""
_NO_GIT = "git is not installed: apt-get install git, or name lines with --line"


class GitError(Exception):
    """Git failed; the message is what it printed."""


def ask(cwd: str | Path, *words: str, seconds: float = _SECONDS, index: str = "") -> bytes:
    """Return what a git command prints; `index` is used instead of the repository's own."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    settings = list(_SETTINGS)
    if index:
        environment["GIT_INDEX_FILE"] = index
        settings += ["-c", "core.sparseCheckout=false"]
    try:
        done = subprocess.run(
            ["git", *settings, *words],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except FileNotFoundError:
        if not Path(cwd).is_dir():
            raise UserError(f"there is no directory {cwd}") from None
        raise UserError(_NO_GIT) from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {words[0]} took longer than {seconds:g} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise GitError(said or f"git {words[0]} ended with {done.returncode}")
    return done.stdout


def ask_text(cwd: str | Path, *words: str) -> str:
    """Return what a git command prints, as text without the last line ending."""
    return os.fsdecode(ask(cwd, *words)).rstrip("\n")


def top(cwd: str | Path = ".") -> Path:
    """Return the top of the repository's working tree, with links resolved."""
    try:
        return Path(ask_text(cwd, "rev-parse", "--show-toplevel")).resolve()
    except GitError as error:
        raise UserError(_why_no_top(str(error), Path(cwd).resolve())) from None


def _why_no_top(said: str, cwd: Path) -> str:
    if "dubious ownership" in said:
        owned = re.search(r"repository at '(.*)'", said)
        where = owned[1] if owned else cwd
        return (
            f"git does not trust {where}, which belongs to another user: "
            f"git config --global --add safe.directory {where}"
        )
    if "work tree" in said:
        return f"{cwd} has no working tree (a bare repository): there is no code to test in it"
    if "not a git repository" in said:
        return f"{cwd} is in no git repository: go to the project, or name lines with --line"
    return f"git: {_first_line(said)}"


def resolved(rev: str, cwd: str | Path = ".") -> str:
    """Return the full hash of the commit that a revision names."""
    directory = top(cwd)
    try:
        if not rev or rev.startswith("-") or "\0" in rev:
            raise GitError("it is no name")
        return ask_text(directory, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
    except GitError:
        raise UserError(_why_unknown(rev, directory)) from None


def _why_unknown(rev: str, directory: Path) -> str:
    names = _branches_and_tags(directory)
    if not names and not _has_commits(directory):
        return f"the repository {directory} has no commits yet: name lines with --line"
    message = f"git knows no revision {rev!r}"
    elsewhere = [name for name in names if name.endswith(f"/{rev}")] if rev else []
    if elsewhere:
        return f"{message}; did you mean {elsewhere[0]!r}?"
    if is_shallow(directory):
        return f"{message}, and this clone is shallow: {_DEEPEN}"
    near = difflib.get_close_matches(rev, names, n=1)
    return message + did_you_mean(rev, near or names[:_MOST_NAMES])


_DEEPEN = (
    "fetch the whole history (git fetch --unshallow; in GitHub Actions: "
    "actions/checkout with fetch-depth: 0)"
)


def _branches_and_tags(directory: Path) -> list[str]:
    form = "--format=%(refname:short)"
    names = ask_text(directory, "for-each-ref", "--sort=-creatordate", form)
    return [name for name in names.splitlines() if not name.endswith("/HEAD")]


def _has_commits(directory: Path) -> bool:
    try:
        ask(directory, "rev-parse", "--verify", "--quiet", "HEAD")
    except GitError:
        return False
    return True


def is_shallow(cwd: str | Path = ".") -> bool:
    """Return whether the clone lacks old history."""
    return ask_text(cwd, "rev-parse", "--is-shallow-repository") == "true"


def base_of(rev: str, cwd: str | Path = ".") -> str:
    """Return the hash of the commit that changes are counted from.

    If `rev` is a branch with newer commits, that is the commit where this branch left it (the merge
    base), as in a pull request: what others changed in the meantime does not count. ``main`` and
    ``main...`` both mean that; ``main..`` means the branch as it is now.
    """
    directory = top(cwd)
    name, exact = _compared_revision(rev)
    commit = resolved(name, directory)
    if exact:
        return commit
    head = resolved("HEAD", directory)
    try:
        return ask_text(directory, "merge-base", commit, head).splitlines()[0]
    except GitError:
        if is_shallow(directory):
            why = f"this clone is shallow and does not reach where {name} and HEAD parted"
            raise UserError(f"{why}: {_DEEPEN}") from None
        raise UserError(
            f"{name} and HEAD have no commit in common: write {name}.. to compare them all the same"
        ) from None


def _compared_revision(rev: str) -> tuple[str, bool]:
    """Return the revision in ``REV``, ``REV...`` or ``REV..``, and whether it is meant exactly."""
    mark = "..." if "..." in rev else ".."
    name, dots, other = rev.partition(mark)
    if dots and other not in ("", "HEAD"):
        raise UserError(
            f"--diff {rev}: what is tested is the working tree, so name one revision to compare "
            f"it with: --diff {name or 'HEAD'}"
        )
    return (name or "HEAD") if dots else rev, dots == ".."


def is_ancestor(commit: str, of: str, cwd: str | Path = ".") -> bool:
    """Return whether one commit comes before another in history; False if one is not there."""
    try:
        ask(cwd, "merge-base", "--is-ancestor", commit, of)
    except (GitError, UserError):
        return False
    return True


def described(rev: str, cwd: str | Path = ".") -> str:
    """Return a commit in short for people to read: ``1a2b3c4 Round prices``."""
    commit = resolved(rev, cwd)
    return ask_text(cwd, "log", "-1", "--no-show-signature", "--no-color", "--format=%h %s", commit)


@contextmanager
def checkout_of(rev: str, cwd: str | Path = ".") -> Iterator[Path]:
    """Provide a temporary directory with the files of a revision, and remove it afterwards.

    The files are written from a separate index. The repository is not changed, so even a process
    that is killed leaves nothing in it (as a worktree would). Submodules are left out.
    """
    commit = resolved(rev, cwd)
    repository = top(cwd)
    with tempfile.TemporaryDirectory(
        prefix="swarmtest-base-", ignore_cleanup_errors=True
    ) as directory:
        tree = Path(directory).resolve() / "tree"
        tree.mkdir()
        index = str(tree.parent / "index")
        try:
            ask(repository, "read-tree", commit, index=index)
            ask(
                repository,
                *("checkout-index", "--all", "--force", f"--prefix={tree}/"),
                index=index,
                seconds=600,
            )
        except GitError as error:
            raise UserError(f"git cannot check out {rev}: {_first_line(str(error))}") from None
        yield tree


def _first_line(output: str) -> str:
    first = output.splitlines()[0] if output else "it said nothing"
    return first.removeprefix("fatal: ").removeprefix("error: ")
