"""Cobertura's XML format (coverage-04.dtd), which Jenkins, GitLab, Codecov and Azure read.

As in `coverage xml`, a directory is a package and a file is a class. A function is a method with
one line, its first, whose hits are the function's. A branch is a condition. Its type says what its
number means (`line`: goes to that line; `exit`: leaves the code that starts there; `branch`: only
the number is known), and its coverage is 0% or 100%. The format cannot hold the count of a branch:
one that was taken is read back as 1.

Reports of other tools only say how many branches of a decision were taken, and coverage.py's also
which were not. Branches whose destinations are unknown are read as unnamed, those taken first.
"""

from __future__ import annotations

import posixpath
import re
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.formats import (
    Arc,
    FileCoverage,
    in_order,
    number_of,
    one_line,
    unnamed,
)

HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">
"""


def write_cobertura(
    files: Iterable[FileCoverage], *, sources: Iterable[str] = (), timestamp: int | None = None
) -> str:
    """Return files as a Cobertura report.

    `sources` are the directories to which relative paths refer. `timestamp` is in milliseconds
    since 1970, by default the current time: Codecov refuses reports older than twelve hours.

    >>> cart = FileCoverage("shop/cart.py", {1: 2, 2: 0}, {(1, 2): 0, (1, -1): 2}, {})
    >>> for line in write_cobertura([cart]).splitlines()[7:14]:
    ...     print(line.strip())
    <class name="cart.py" filename="shop/cart.py" line-rate="0.5" branch-rate="0.5" complexity="0">
    <methods />
    <lines>
    <line number="1" hits="2" branch="true" condition-coverage="50% (1/2)">
    <conditions>
    <condition number="2" type="line" coverage="0%" />
    <condition number="1" type="exit" coverage="100%" />
    """
    packages: dict[str, list[FileCoverage]] = defaultdict(list)
    for file in files:
        packages[posixpath.dirname(file.path) or "."].append(file)
    everything = [file for package in packages.values() for file in package]
    when = int(time.time() * 1000) if timestamp is None else timestamp
    top = ET.Element("coverage", _totals(everything) | {"timestamp": str(when)})
    roots = ET.SubElement(top, "sources")
    for source in sources:
        ET.SubElement(roots, "source").text = one_line(source)
    below = ET.SubElement(top, "packages")
    for directory in sorted(packages):
        below.append(_package(directory, packages[directory]))
    ET.indent(top)
    return HEADER + ET.tostring(top, encoding="unicode") + "\n"


def _package(directory: str, files: list[FileCoverage]) -> ET.Element:
    package = ET.Element(
        "package", {"name": one_line(directory.strip("/").replace("/", "."))} | _rates(files)
    )
    classes = ET.SubElement(package, "classes")
    classes.extend(_class(file) for file in files)
    return package


def _class(file: FileCoverage) -> ET.Element:
    path = one_line(file.path)
    names = {"name": posixpath.basename(path), "filename": path}
    top = ET.Element("class", names | _rates([file]))
    methods = ET.SubElement(top, "methods")
    for function, (line, count) in file.functions.items():
        rates = _rates([FileCoverage("", {line: count}, {}, {})])
        method = ET.SubElement(
            methods, "method", {"name": one_line(function), "signature": ""} | rates
        )
        lines = ET.SubElement(method, "lines")
        ET.SubElement(lines, "line", number=str(line), hits=str(count))
    lines = ET.SubElement(top, "lines")
    decisions: dict[int, dict[int, int]] = defaultdict(dict)
    for (start, to), count in in_order(file.branches):
        decisions[start][to] = count
    for line, count in sorted(_with_decisions(file).items()):
        lines.append(_line(line, count, decisions[line]))
    return top


def _with_decisions(file: FileCoverage) -> dict[int, int]:
    """Return the lines, also those with branches only (as in a macro that llvm-cov expands)."""
    lines: dict[int, int] = {}
    for (line, _), count in file.branches.items():
        lines[line] = max(count, lines.get(line, 0))
    return lines | dict(file.lines)


def _line(line: int, count: int, branches: Mapping[int, int]) -> ET.Element:
    top = ET.Element("line", number=str(line), hits=str(count))
    if branches:
        taken, total = sum(n > 0 for n in branches.values()), len(branches)
        top.set("branch", "true")
        top.set("condition-coverage", f"{100 * taken // total}% ({taken}/{total})")
        conditions = ET.SubElement(top, "conditions")
        for to, n in branches.items():
            kind, number = _condition(to)
            coverage = "100%" if n else "0%"
            ET.SubElement(conditions, "condition", number=number, type=kind, coverage=coverage)
    return top


def _condition(to: int) -> tuple[str, str]:
    number = number_of(to)
    if number is not None:
        return "branch", str(number)
    return ("line", str(to)) if to > 0 else ("exit", str(-to))


def _totals(files: list[FileCoverage]) -> dict[str, str]:
    lines = [count > 0 for file in files for count in file.lines.values()]
    branches = [count > 0 for file in files for count in file.branches.values()]
    return _rates(files) | {
        "lines-covered": str(sum(lines)),
        "lines-valid": str(len(lines)),
        "branches-covered": str(sum(branches)),
        "branches-valid": str(len(branches)),
        "version": "swarmtest",
    }


def _rates(files: list[FileCoverage]) -> dict[str, str]:
    return {
        "line-rate": _rate([count for file in files for count in file.lines.values()]),
        "branch-rate": _rate([count for file in files for count in file.branches.values()]),
        "complexity": "0",
    }


def _rate(counts: list[int]) -> str:
    """Return the share that was hit, rounded, but 1 only if all were hit and 0 only if none."""
    hit = sum(count > 0 for count in counts)
    if hit in (0, len(counts)):
        return "1" if hit == len(counts) else "0"
    return f"{min(max(hit / len(counts), 0.0001), 0.9999):.4g}"


# Reading.


def read_cobertura(text: str | bytes, name: str = "Cobertura") -> list[FileCoverage]:
    """Return the files of a Cobertura report; classes of one file are merged.

    `name` is the name of the text in error messages: the file that it came from. Paths are as in
    the report: relative to one of its sources.

    >>> lines = "<lines><line number='1' hits='2'/><line number='2' hits='0'/></lines>"
    >>> package = f"<package><classes><class filename='cart.py'>{lines}</class></classes></package>"
    >>> read_cobertura(f"<coverage><packages>{package}</packages></coverage>")
    [FileCoverage(path='cart.py', lines={1: 2, 2: 0}, branches={}, functions={})]
    >>> read_cobertura("<coverage>", "report.xml")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: report.xml:1: not well-formed XML: no element found
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
    attributes: Mapping[str, str]
    conditions: dict[int, int] = field(default_factory=dict)

    def branches(self) -> Iterator[tuple[Arc, int]]:
        for to, taken in (self.conditions or self._counted_branches()).items():
            yield (self.number, to), taken

    def _counted_branches(self) -> dict[int, int]:
        """Return the branches of a line without conditions, from how many were taken."""
        coverage = self.attributes.get("condition-coverage", "")
        share = re.search(r"\(([0-9]{1,5})/([0-9]{1,5})\)", coverage)
        if self.attributes.get("branch") != "true" or not share:
            return {}
        taken, total = int(share[1]), int(share[2])
        missed = re.findall(r"\b[0-9]{1,9}\b", self.attributes.get("missing-branches", ""))
        names = [unnamed(number) for number in range(total - len(missed))] + [*map(int, missed)]
        return {to: int(position < taken) for position, to in enumerate(names)}


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
            raise UserError(f"{self._name}:{error.lineno}: not well-formed XML: {what}") from error
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
