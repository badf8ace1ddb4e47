"""Coverage of programs in any language: the program, or a harness around it, writes its hits.

The environment variable SWARMTEST_HITS names a file, empty at the start of every test. Each line
that a program appends is one hit:

    lib/parser.rb:120          a line of a source file (the path has a dot or a slash)
    branch:lib/parser.rb:120-3 any other target: kind:name
    line:Makefile:7            a line of a file whose name has neither dot nor slash

Empty lines, and lines that begin with `#`, do not count. With ``coverage="lcov"`` the file holds an
LCOV trace instead: lines with a count above 0 are hit, the others are known and not hit.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits, Source, Target, content_hash
from swarmtest.processes.commands import Ended

# -------------------------------------------------------------------------------------------------
# Lines of source files as targets: which files matter, how they are named, what they hold.
#
# All ways of native coverage (fast path, gcov, hit files) number their lines here, so that the
# same
# line of the same file is the same target whoever reported it.

_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")


class Lines:
    """Numbers lines of the source files that matter in a catalogue.

    Without `wanted` every file matters but for the system's headers.

    >>> lines = Lines(Catalogue(), wanted=["src"], root="/home/me/project")
    >>> lines.number("/home/me/project/src/a.c", 12, "main")
    0
    >>> lines.catalogue.targets[0].name
    'src/a.c:12'
    >>> lines.number("/usr/include/stdio.h", 3, "") is None
    True
    """

    def __init__(
        self, catalogue: Catalogue, wanted: Iterable[str | Path] | None = None, root: str = ""
    ) -> None:
        self.catalogue = catalogue
        self.root = root or os.getcwd()
        self.wanted = None if wanted is None else [self._absolute(str(path)) for path in wanted]
        self._files: dict[str, tuple[Source, list[str]] | None] = {}

    def number(self, path: str, line: int, function: str) -> int | None:
        """The target's number; None when the file does not matter."""
        file = self._file(path)
        if file is None:
            return None
        source, texts = file
        text = texts[line - 1] if 0 < line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return self.catalogue.number(source.target("line", f"{line}", line, function, content))

    def matters(self, path: str) -> bool:
        """Whether lines of a file are targets."""
        return self._file(path) is not None

    def _file(self, path: str) -> tuple[Source, list[str]] | None:
        if path not in self._files:
            self._files[path] = self._read(self._absolute(path))
        return self._files[path]

    def _read(self, path: str) -> tuple[Source, list[str]] | None:
        if not self._is_wanted(path):
            return None
        try:
            text = Path(path).read_text(errors="replace")
        except OSError:
            text = ""
        inside = path.startswith(self.root.rstrip("/") + "/")
        shown = os.path.relpath(path, self.root) if inside else path
        source = Source(shown, text, path)
        self.catalogue.add_source(source)
        return source, text.splitlines()

    def _is_wanted(self, path: str) -> bool:
        if self.wanted is None:
            return not path.startswith(_SYSTEM)
        return any(
            path == one or path.startswith(one + "/") or fnmatch.fnmatch(path, one)
            for one in self.wanted
        )

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.root, path))


# -------------------------------------------------------------------------------------------------
# What every way of collecting coverage offers: an environment to run in, and hits afterwards.


class Collected(NamedTuple):
    """The hits of one test; or why there are none.

    >>> Collected(None, "the program was killed").missing
    'the program was killed'
    """

    hits: Hits | None
    missing: str = ""
    """Why coverage is missing or, beside hits, why it is not all; empty when it is all there."""


class Collector(Protocol):
    """Collects coverage test by test, for the process that made it."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the program has to see."""

    @property
    def extra_memory(self) -> int:
        """Address space that the program needs for its coverage."""

    def collect(self, ended: Ended) -> Collected:
        """What the program which has just ended reached; the next test starts from nothing."""

    def close(self) -> None:
        """Remove what was made."""


class NoCoverage:
    """Runs are run, nothing is collected.

    >>> NoCoverage().collect(Ended(0, False))
    Collected(hits=None, missing='coverage is off')
    """

    environment: dict[str, str] = {}
    extra_memory = 0

    def collect(self, ended: Ended) -> Collected:
        """Nothing, and why."""
        return Collected(None, "coverage is off")

    def close(self) -> None:
        """Nothing was made."""


# -------------------------------------------------------------------------------------------------

_KIND = re.compile(r"([A-Za-z_][\w-]*):(.+)")
_LINE = re.compile(r"(.+):(\d+)")
_REMEMBERED = 4096


class HitFile:
    """Reads what the program wrote into the file that SWARMTEST_HITS names."""

    extra_memory = 0

    def __init__(self, program: str, lines: Lines, path: Path, *, lcov: bool) -> None:
        self._program = program
        self._lines = lines
        self._path = path
        self._read = self._lcov if lcov else self._one_per_line
        self._known: dict[str, Hits] = {}
        path.touch()

    @property
    def environment(self) -> dict[str, str]:
        """What tells the program where to write."""
        return {"SWARMTEST_HITS": str(self._path)}

    def collect(self, ended: Ended) -> Collected:
        """The hits that the program which has just ended wrote."""
        text = self._path.read_text(errors="replace") if self._path.exists() else ""
        if not text:
            how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
            return Collected(None, f"the program ended ({how}) without writing to SWARMTEST_HITS")
        self._path.write_text("")
        partial = ""
        if ended.signal and not text.endswith("\n"):
            text = text[: text.rfind("\n") + 1]
            partial = f"partial: killed by signal {ended.signal} as it wrote"
        if text not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            numbers = [number for number in self._read(text) if number is not None]
            self._known[text] = Hits.of(self._lines.catalogue, numbers)
        return Collected(self._known[text], partial)

    def _one_per_line(self, text: str) -> Iterator[int | None]:
        for where, hit in _content(text):
            kind = _KIND.fullmatch(hit)
            place = _LINE.fullmatch(kind[2] if kind and kind[1] == "line" else hit)
            if kind and not (kind[1] == "line" and place):
                yield self._lines.catalogue.number(Target(kind[1], kind[2]))
            elif place:
                yield self._lines.number(place[1], int(place[2]), "")
            else:
                raise self._error(where, hit, "path/file.ext:LINE or kind:name")

    def _lcov(self, text: str) -> Iterator[int | None]:
        file = ""
        functions: list[tuple[int, str]] = []
        for where, record in _content(text):
            key, _, value = record.partition(":")
            if key == "SF":
                file, functions = value, []
            elif key == "FN" and re.match(r"\d+,", value):
                parts = value.split(",")
                functions.append((int(parts[0]), parts[-1]))
            elif key == "DA":
                if not file or not re.match(r"\d+,\d+", value):
                    raise self._error(where, record, "DA:LINE,COUNT after SF:FILE")
                line, count = map(int, value.split(",")[:2])
                number = self._lines.number(file, line, _around(line, functions))
                if count:
                    yield number

    def _error(self, where: int, text: str, right: str) -> UserError:
        return UserError(
            f"line {where} of what {self._program} wrote to SWARMTEST_HITS is {text[:60]!r}, "
            f"not {right}"
        )

    def close(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def _content(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _around(line: int, functions: Iterable[tuple[int, str]]) -> str:
    """The function that begins last before a line."""
    return max((pair for pair in functions if pair[0] <= line), default=(0, ""))[1]
