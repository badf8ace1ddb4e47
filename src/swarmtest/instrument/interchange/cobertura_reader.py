"""Reading Cobertura's XML, ours and others'.

Ours names each branch as a condition of a line (see `cobertura`). Reports of others tell of a
decision only how many of its branches were taken, and coverage.py's which were not: what has no
name is read as unnamed, those taken first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from swarmtest.errors import UserError
from swarmtest.instrument.interchange.summary import Arc, FileCoverage, unnamed


def read_cobertura(text: str | bytes, name: str = "Cobertura") -> list[FileCoverage]:
    """The files of a Cobertura report; classes of one file are put together.

    `name` is what errors call the text: the file that it came from. Paths are as written there:
    relative to one of the report's sources.

    >>> lines = "<lines><line number='1' hits='2'/><line number='2' hits='0'/></lines>"
    >>> package = f"<package><classes><class filename='cart.py'>{lines}</class></classes></package>"
    >>> read_cobertura(f"<coverage><packages>{package}</packages></coverage>")
    [FileCoverage(path='cart.py', lines={1: 2, 2: 0}, branches={}, functions={})]
    >>> read_cobertura("<coverage>", "report.xml")
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: report.xml:1: not whole XML: no element found
    """
    reader = _Reader(name)
    reader.read(text)
    return [
        FileCoverage(path, dict(file.lines), dict(file.branches), file.functions)
        for path, file in reader.files.items()
    ]


@dataclass
class _File:
    lines: Counter[int] = field(default_factory=Counter)
    branches: Counter[Arc] = field(default_factory=Counter)
    functions: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass
class _Line:
    """A line of a class, while its conditions are being read."""

    number: int
    told: Mapping[str, str]
    conditions: dict[int, int] = field(default_factory=dict)

    def branches(self) -> Iterator[tuple[Arc, int]]:
        for to, taken in (self.conditions or self._counted()).items():
            yield (self.number, to), taken

    def _counted(self) -> dict[int, int]:
        share = re.search(r"\(([0-9]{1,5})/([0-9]{1,5})\)", self.told.get("condition-coverage", ""))
        if self.told.get("branch") != "true" or not share:
            return {}
        taken, total = int(share[1]), int(share[2])
        missed = re.findall(r"\b[0-9]{1,9}\b", self.told.get("missing-branches", ""))
        names = [unnamed(number) for number in range(total - len(missed))] + [*map(int, missed)]
        return {to: int(place < taken) for place, to in enumerate(names)}


class _Reader:
    """Collects the files of a report while it is parsed."""

    def __init__(self, name: str) -> None:
        self.files: dict[str, _File] = {}
        self._name = name
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._seen: set[str] = set()
        self._file: _File | None = None
        self._method: str | None = None
        self._line: _Line | None = None

    def read(self, text: str | bytes) -> None:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            what = expat.errors.messages[error.code]
            raise UserError(f"{self._name}:{error.lineno}: not whole XML: {what}") from error
        except (LookupError, ValueError) as error:
            raise UserError(f"{self._name}:1: in an encoding that cannot be read") from error
        if "packages" not in self._seen:
            raise UserError(f"{self._name}: not a Cobertura report: it has no <packages>")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._seen and tag != "coverage":
            raise self._wrong(f"not a Cobertura report: it starts with <{tag}>, not <coverage>")
        self._seen.add(tag)
        if tag == "class":
            path = self._text(tag, attributes, "filename")
            self._file = self.files.setdefault(path, _File())
        elif tag == "method":
            self._method = self._text(tag, attributes, "name")
        elif tag == "line":
            self._start_line(attributes)
        elif tag == "condition" and self._line:
            self._condition(self._line, attributes)

    def _start_line(self, attributes: dict[str, str]) -> None:
        if self._file is None:
            raise self._wrong("a <line> outside of a <class>")
        number = self._number("line", attributes, "number")
        hits = self._number("line", attributes, "hits")
        if self._method is not None:
            self._file.functions.setdefault(self._method, (number, hits))
        else:
            self._file.lines[number] += hits
            self._line = _Line(number, attributes)

    def _condition(self, line: _Line, attributes: dict[str, str]) -> None:
        kind = self._text("condition", attributes, "type")
        if kind in ("line", "exit", "branch"):
            number = self._number("condition", attributes, "number")
            to = {"line": number, "exit": -number, "branch": unnamed(number)}[kind]
            line.conditions[to] = int(attributes.get("coverage") == "100%")

    def _end(self, tag: str) -> None:
        if tag == "class":
            self._file = None
        elif tag == "method":
            self._method = None
        elif tag == "line" and self._line and self._file:
            self._file.branches.update(dict(self._line.branches()))
            self._line = None

    def _text(self, tag: str, attributes: Mapping[str, str], key: str) -> str:
        if key not in attributes:
            raise self._wrong(f"<{tag}> has no {key!r}")
        return attributes[key]

    def _number(self, tag: str, attributes: Mapping[str, str], key: str) -> int:
        text = self._text(tag, attributes, key)
        if not re.fullmatch(r"[0-9]{1,30}", text):
            raise self._wrong(f"<{tag}> has {key}={text!r}, which is not a number from 0 up")
        return int(text)

    def _wrong(self, what: str) -> UserError:
        return UserError(f"{self._name}:{self._parser.CurrentLineNumber}: {what}")
