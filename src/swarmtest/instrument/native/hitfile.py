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

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.collector import Collected
from swarmtest.instrument.native.places import Lines
from swarmtest.instrument.native.process import Ended
from swarmtest.targets import Hits, Target

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
