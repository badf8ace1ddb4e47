"""What all ways of collecting native coverage share, and the way that works in any language.

`LineNumbers` numbers the lines of source files, so that the same line of the same file is the same
target for every way of collecting (fast path, gcov, hit files). `Collector` is the interface: an
environment to run the program in, and hits afterwards.

With `HitFile` the program, or a harness around it, writes its hits. The environment variable
SWARMTEST_HITS names a file, which is empty at the start of every test. Each line that a program
appends is one hit:

    lib/parser.rb:120          a line of a source file (the path has a dot or a slash)
    branch:lib/parser.rb:120-3 any other target: kind:name
    line:Makefile:7            a line of a file whose name has neither dot nor slash

Empty lines and lines that begin with `#` are ignored. With ``coverage="lcov"`` the file holds an
LCOV trace instead: lines with a count above 0 are hit, the others are known but not hit.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits, Source, Target, content_hash
from swarmtest.coverage.interchange.lcov import read_records
from swarmtest.processes.commands import ProcessEnd

_PYTHON = os.path.join(sys.base_prefix, "include", "")
_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/", _PYTHON)
_KIND = re.compile(r"([A-Za-z_][\w-]*):(.+)")
_LINE = re.compile(r"(.+):(\d+)")
_DECLARATION = re.compile(
    r"\s*(?!(?:return|goto|throw|delete|case|co_return|co_yield|co_await)\b)"
    r"(?:[A-Za-z_]\w*[\s*&]+)+[*&\s]*[A-Za-z_]\w*(?:\s*\[[^\]]*\])*"
    r"(?:\s*,\s*[*\s]*\w+(?:\s*\[[^\]]*\])*)*\s*;\s*(?://.*|/\*.*\*/\s*)?$"
)
"""A declaration without a value, in C."""
_MAX_CACHED_HITS = 4096


class LineNumbers:
    """Numbers the lines of watched source files in a catalogue.

    `wanted` are files, directories or patterns; without it every file is watched except the
    system's headers.

    >>> lines = LineNumbers(Catalogue(), wanted=["src"], root="/home/me/project")
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
        """Return the number of a line's target; None if the file is not watched."""
        return self._number("line", f"{line}", path, line, function)

    def branch(self, path: str, line: int, to: int, function: str) -> int | None:
        """Return the number of a branch from one line to another; None if it is not watched."""
        return self._number("branch", f"{line}->{to}", path, line, function)

    def _number(self, kind: str, name: str, path: str, line: int, function: str) -> int | None:
        file = self._file(path)
        if file is None:
            return None
        source, texts = file
        text = texts[line - 1] if 0 < line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return self.catalogue.number(source.target(kind, name, line, function, content))

    def is_declaration(self, path: str, line: int) -> bool:
        """Return whether a line only declares variables: compilers give it a place in the code."""
        file = self._file(path)
        return (
            file is not None
            and 0 < line <= len(file[1])
            and _DECLARATION.match(file[1][line - 1]) is not None
        )

    def matters(self, path: str) -> bool:
        """Return whether the lines of a file are targets."""
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
            path == pattern or path.startswith(pattern + "/") or fnmatch.fnmatch(path, pattern)
            for pattern in self.wanted
        )

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.root, path))


def campaign_wants_branches() -> bool:
    """Return whether the campaign that this process works for has ``--coverage branch``."""
    watch = sys.modules.get("swarmtest.coverage.watch")
    installed = watch.installed_coverage() if watch is not None else None
    return installed is not None and "branch" in installed.options.kinds


class Collected(NamedTuple):
    """The hits of one test, or why there are none.

    >>> Collected(None, "the program was killed").missing
    'the program was killed'
    """

    hits: Hits | None
    missing: str = ""
    """Why coverage is missing (or partial, if there are hits); empty if it is complete."""
    stack: tuple[str, ...] = ()
    """The functions that a signal interrupted, the innermost first, if they are known."""


class Collector(Protocol):
    """Collects coverage test by test, for the process that created it."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that the program needs."""

    @property
    def extra_memory(self) -> int:
        """The address space that the program needs for its coverage."""

    def collect(self, ended: ProcessEnd) -> Collected:
        """Return what the program that has just ended reached, and clear it for the next test."""

    def close(self) -> None:
        """Remove files and release memory."""


class NoCoverage:
    """A collector that collects nothing, for programs that are only run.

    >>> NoCoverage().collect(ProcessEnd(0, False)).missing
    'coverage is off'
    """

    environment: dict[str, str] = {}
    extra_memory = 0

    def collect(self, ended: ProcessEnd) -> Collected:
        """Return no hits, because coverage is off."""
        return Collected(None, "coverage is off")

    def close(self) -> None:
        """Do nothing: there are no files."""


class HitFile:
    """Reads what the program wrote to the file that SWARMTEST_HITS names."""

    extra_memory = 0

    def __init__(self, program: str, lines: LineNumbers, path: Path, *, lcov: bool) -> None:
        self._program = program
        self._lines = lines
        self._path = path
        self._read = self._read_lcov if lcov else self._read_hit_lines
        self._cached: dict[str, Hits] = {}
        path.touch()

    @property
    def environment(self) -> dict[str, str]:
        """The variable that tells the program where to write."""
        return {"SWARMTEST_HITS": str(self._path)}

    def collect(self, ended: ProcessEnd) -> Collected:
        """Return the hits that the program which has just ended wrote."""
        text = self._path.read_text(errors="replace") if self._path.exists() else ""
        if not text:
            how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
            return Collected(None, f"the program ended ({how}) without writing to SWARMTEST_HITS")
        self._path.write_text("")
        partial = ""
        if ended.signal and not text.endswith("\n"):
            # The last line may be incomplete and is not counted.
            text = text[: text.rfind("\n") + 1]
            partial = f"partial: killed by signal {ended.signal} as it wrote"
        if text not in self._cached:
            if len(self._cached) >= _MAX_CACHED_HITS:
                self._cached.clear()
            numbers = [number for number in self._read(text) if number is not None]
            self._cached[text] = Hits.of(self._lines.catalogue, numbers)
        return Collected(self._cached[text], partial)

    def _read_hit_lines(self, text: str) -> Iterator[int | None]:
        for where, hit in _numbered_lines(text):
            kind = _KIND.fullmatch(hit)
            position = _LINE.fullmatch(kind[2] if kind and kind[1] == "line" else hit)
            if kind and not (kind[1] == "line" and position):
                yield self._lines.catalogue.number(Target(kind[1], kind[2]))
            elif position:
                yield self._lines.number(position[1], int(position[2]), "")
            else:
                raise self._error(where, hit, "path/file.ext:LINE or kind:name")

    def _read_lcov(self, text: str) -> Iterator[int | None]:
        name = f"what {self._program} wrote to SWARMTEST_HITS"
        for record in read_records(text, name, lenient=True):
            functions = [(first, function) for function, (first, _) in record.functions.items()]
            for line, count in record.lines.items():
                number = self._lines.number(record.path, line, _function_around(line, functions))
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


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _function_around(line: int, functions: Iterable[tuple[int, str]]) -> str:
    """Return the function that begins last before a line."""
    return max((pair for pair in functions if pair[0] <= line), default=(0, ""))[1]
