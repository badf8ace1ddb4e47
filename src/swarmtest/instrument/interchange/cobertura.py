"""Writing Cobertura's XML (coverage-04.dtd), which Jenkins, GitLab, Codecov and Azure read.

A directory is a package and a file is a class, as `coverage xml` has it; a function is a method
with one line, its first, whose hits are the function's. A branch is a condition: its type says
what its number means (`line`: goes there; `exit`: leaves the code that starts there; `branch`: only
its number is known) and its coverage is 0% or 100%. The format has no room for a branch's count:
one that was taken is read back as 1.
"""

from __future__ import annotations

import posixpath
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Mapping

from swarmtest.instrument.interchange.cobertura_reader import read_cobertura
from swarmtest.instrument.interchange.summary import FileCoverage, in_order, number_of, one_line

__all__ = ["read_cobertura", "write_cobertura"]

HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">
"""


def write_cobertura(
    files: Iterable[FileCoverage], *, sources: Iterable[str] = (), timestamp: int | None = None
) -> str:
    """Files as a Cobertura report.

    `sources` are the directories that relative paths are seen from. `timestamp` is in milliseconds
    since 1970, now unless given: Codecov refuses reports that are older than twelve hours.

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
    """The lines, also those that only have branches (as in a macro that llvm-cov expands)."""
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
    """The share that was hit. Only all is 1, and only none is 0, however large the rest."""
    hit = sum(count > 0 for count in counts)
    if hit in (0, len(counts)):
        return "1" if hit == len(counts) else "0"
    return f"{min(max(hit / len(counts), 0.0001), 0.9999):.4g}"
