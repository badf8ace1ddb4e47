"""How a program is built from its sources, so that no test runs an old binary.

A `Build` knows the command, the sources and what the command writes. `Build.bring_up_to_date` runs
the command if that is needed: the output is missing or was replaced, the command is another one, or
a source was edited, added or removed since the last build. The state of the sources as they were
built is kept in the cache, by the paths of directory and output, so that a checkout of another
version is built for itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.core.messages.telling_lines import telling_line
from swarmtest.processes.caches import cache_directory, is_usable, make_private, write
from swarmtest.processes.commands import capture

_ENDINGS = ("c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "inc", "def", "y", "l", "S")
C_SOURCES = (*(f"*.{e}" for e in _ENDINGS), "Makefile", "*.mk", "CMakeLists.txt", "meson.build")
"""The names of files that count as sources if none are named."""
_Facts: TypeAlias = dict[str, list[int | str]]
"""Of each file: when it was changed (ns), its size, and the hash of its content."""


@dataclass(frozen=True)
class Build:
    """A command that builds a program, and the files that make it necessary.

    `command` is a line for the shell, or a list of words. `sources` are files, directories or
    patterns in `directory`; by default, all files there that look like C or C++, and makefiles.
    `output` is what the command writes; `Program` and `Library` fill in their own file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "hello.c").write_text("int main(void) { return 0; }")
    ...     build = Build("cp hello.c hello", output="hello", directory=place)
    ...     build.bring_up_to_date(), build.bring_up_to_date()
    (True, False)
    """

    command: str | tuple[str, ...] | list[str]
    sources: tuple[str, ...] | list[str] = ()
    output: str | Path = ""
    directory: str | Path = ""
    seconds: float = 600.0
    """How long it may take."""

    def bring_up_to_date(self) -> bool:
        """Build, unless what is there was built from the sources as they are; say what was done."""
        if not self.output:
            raise UserError("Build: name the file that the command writes: output=")
        try:
            with self._alone():
                built_from = self._record()
                if self._is_fresh(built_from):
                    return False
                self._run()
                return True
        except (OSError, ValueError) as error:  # a command or a source that cannot be used
            raise UserError(f"build: {self.line}: {error}") from None

    @property
    def line(self) -> str:
        """The command as one would type it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    @property
    def _place(self) -> Path:
        return Path(self.directory or ".").resolve()

    @property
    def _file(self) -> Path:
        """What the command writes."""
        return self._place / self.output

    @property
    def _stamp(self) -> Path:
        name = hashlib.blake2b(str(self._file).encode(), digest_size=12).hexdigest()
        return cache_directory("builds", f"{name}.json")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process builds the same file."""
        try:
            unsafe = make_private(self._stamp.parent)
            lock = None if unsafe else open(f"{self._stamp}.lock", "w")  # noqa: SIM115
        except OSError:
            lock = None
        try:
            if lock is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            if lock is not None:
                lock.close()

    def _record(self) -> Mapping[str, object]:
        try:
            data = json.loads(self._stamp.read_text()) if is_usable(self._stamp) else {}
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _is_fresh(self, record: Mapping[str, object]) -> bool:
        before = record.get("sources")
        if record.get("command") != self.line or not isinstance(before, dict):
            return False
        if not self._file.exists() or record.get("output") != _times(self._file):
            return False
        names = self._names()
        return names == list(before) and not any(
            _has_changed(self._place / name, facts) for name, facts in before.items()
        )

    def _names(self) -> list[str]:
        """Return the paths of the sources, from the directory."""
        found = {path for path in self._found() if path != self._file}
        return sorted(os.path.relpath(path, self._place) for path in found)

    def _found(self) -> Iterator[Path]:
        if not self.sources:
            yield from _files_below(self._place, C_SOURCES)
            return
        for source in self.sources:
            path = self._place / source
            if path.is_dir():
                yield from _files_below(path, ("*",))
            elif path.is_file():
                yield path
            else:
                try:
                    matching = [p for p in self._place.glob(source) if p.is_file()]
                except (ValueError, NotImplementedError) as error:
                    raise UserError(f"build: the source {source!r}: {error}") from None
                if not matching:
                    raise UserError(f"build: no file in {self._place} is a source {source!r}")
                yield from matching

    def _run(self) -> None:
        names = self._names()
        if not names:
            raise UserError(f"build: {self._place} has no C sources: name them with sources")
        before = {name: _facts(self._place / name) for name in names}
        print(f"swarmtest: building {self.output}: {self.line}", file=sys.stderr)
        words = ["sh", "-c", self.command] if isinstance(self.command, str) else [*self.command]
        # The command may say `swarmtest cc`, which is beside the interpreter that runs this.
        own = os.path.dirname(sys.executable)
        environment = os.environ | {"PATH": f"{os.environ.get('PATH', os.defpath)}:{own}"}
        ended = capture(words, self.seconds, directory=self._place, environment=environment)
        if ended.status is None:
            raise UserError(f"build: {self.line} did not end in {self.seconds:g} s")
        if ended.status:
            errors, output = (t.decode(errors="replace") for t in (ended.stderr, ended.stdout))
            why = telling_line(errors, output) or "it said nothing"
            raise UserError(f"build: {self.line} ended with {ended.status}: {why}")
        if not self._file.exists():
            raise UserError(f"build: {self.line} did not write {self.output}")
        # A source that the command itself has written counts as it is now.
        after = {name: before.get(name) or _facts(self._place / name) for name in self._names()}
        record = {"command": self.line, "output": _times(self._file), "sources": after}
        with contextlib.suppress(OSError):  # then it is built again, which is only slower
            write(self._stamp, json.dumps(record))


def _files_below(directory: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Yield the files below a directory that match, without hidden directories.

    Links that lead nowhere, such as an editor's locks, and pipes are no sources.
    """
    wanted = [*patterns]
    for place, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in files:
            path = Path(place, name)
            if any(path.match(pattern) for pattern in wanted) and path.is_file():
                yield path


def _times(file: Path) -> list[int]:
    known = file.stat()
    return [known.st_mtime_ns, known.st_size]


def _facts(file: Path) -> list[int | str]:
    times = _times(file)  # before the content: an edit in between is seen next time
    return [*times, hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()]


def _has_changed(file: Path, facts: list[int | str]) -> bool:
    """Return whether a file is not as it was; one that was only touched has not changed."""
    return _times(file) != facts[:2] and _facts(file)[1:] != facts[1:]


def up_to_date(build: Build | str | None, output: str, directory: str = "") -> None:
    """Build a file if it is not up to date; without a build, nothing happens.

    >>> up_to_date(None, "prog")
    """
    if build is None:
        return
    made = Build(build) if isinstance(build, str) else build
    where = made.directory or directory
    Build(
        made.command, made.sources, made.output or os.path.abspath(output), where, made.seconds
    ).bring_up_to_date()
