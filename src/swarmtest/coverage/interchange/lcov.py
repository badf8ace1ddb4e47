"""LCOV tracefiles, the text format that genhtml, Codecov, editors and many others read.

A record is what one test (`TN`) hit in one file; the counts of a file are the sums over its
records. So if tests are written, a file has one record per test that hit it, with counts of 1, and
a record without a name with the rest, zeros included. The sum of the records gives the file's
counts, and the named records give each test's hits. A test that hit nothing has no record.

The format does not say where a branch goes; it has only a number or, since LCOV 2, a text. We write
coverage.py's text, ``jump to line 7``, and ``leave the code at line 3``. Branches with any other
text or with a number (gcov, llvm-cov) are read as unnamed, numbered in their order on the line.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.formats import (
    Arc,
    FileCoverage,
    TestCoverage,
    in_order,
    number_of,
    one_line,
    unnamed,
)

FORMS = {
    "FN": "FN:<first line>,[<last line>,]<function>",
    "FNDA": "FNDA:<count>,<function of an FN line>",
    "FNL": "FNL:<number>,<first line>[,<last line>]",
    "FNA": "FNA:<number of an FNL line>,<count>,<function>",
    "DA": "DA:<line>,<count>[,<checksum>]",
    "BRDA": "BRDA:<line>,<block>,<branch>,<count or ->",
}
TOTALS_AND_EXTRAS = frozenset({"LF", "LH", "FNF", "FNH", "BRF", "BRH", "VER", "MCDC", "MCF", "MCH"})
"""Kinds of lines that are known but not needed."""
END = "end_of_record"


def write_lcov(files: Iterable[FileCoverage], tests: Iterable[TestCoverage] = ()) -> str:
    """Return files as a tracefile; with tests, each test's hits under its own name.

    >>> print(write_lcov([FileCoverage("cart.py", {1: 2, 2: 0}, {(1, 2): 0}, {"add": (1, 2)})]))
    TN:
    SF:cart.py
    FN:1,add
    FNDA:2,add
    FNF:1
    FNH:1
    BRDA:1,0,jump to line 2,0
    BRF:1
    BRH:0
    DA:1,2
    DA:2,0
    LF:2
    LH:1
    end_of_record
    <BLANKLINE>
    """
    tests = list(tests)
    records: list[tuple[str, FileCoverage]] = [("", file) for file in _without_tests(files, tests)]
    for test in tests:
        for path, (lines, arcs) in test.files.items():
            ones = FileCoverage(path, dict.fromkeys(lines, 1), dict.fromkeys(arcs, 1), {})
            records.append((test.name, ones))
    return "".join(f"{line}\n" for name, file in records for line in _record_lines(name, file))


def read_lcov(text: str, name: str = "LCOV") -> list[FileCoverage]:
    """Return the files of a tracefile, with the counts of all its tests added up.

    `name` is the name of the text in error messages: the file that it came from.

    >>> read_lcov("SF:cart.py\\nDA:1,2\\nend_of_record\\n")
    [FileCoverage(path='cart.py', lines={1: 2}, branches={}, functions={})]
    >>> read_lcov("SF:cart.py\\nDA:one\\n", "cov.info")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: cov.info:2: 'DA:one' should be DA:<line>,<count>[,<checksum>]
    """
    sums: dict[str, LcovRecord] = {}
    for record in read_records(text, name):
        total = sums.setdefault(record.path, LcovRecord("", record.path))
        total.lines.update(record.lines)
        total.branches.update(record.branches)
        for function, (line, count) in record.functions.items():
            first, before = total.functions.get(function, (line, 0))
            total.functions[function] = (first, before + count)
    return [
        FileCoverage(path, dict(total.lines), dict(total.branches), total.functions)
        for path, total in sums.items()
    ]


def read_lcov_tests(text: str, name: str = "LCOV") -> list[TestCoverage]:
    """Return what each test of a tracefile hit; "" is the name of records without one.

    >>> read_lcov_tests("TN:trial 7\\nSF:cart.py\\nDA:1,2\\nDA:2,0\\nend_of_record\\n")
    [TestCoverage(name='trial 7', files={'cart.py': (frozenset({1}), frozenset())})]
    """
    tests: dict[str, dict[str, tuple[frozenset[int], frozenset[Arc]]]] = {}
    for record in read_records(text, name):
        lines = {line for line, count in record.lines.items() if count}
        arcs = {arc for arc, count in record.branches.items() if count}
        if lines or arcs:
            files = tests.setdefault(record.test, {})
            more_lines, more_arcs = files.get(record.path, ((), ()))
            files[record.path] = (
                frozenset(lines.union(more_lines)),
                frozenset(arcs.union(more_arcs)),
            )
    return [TestCoverage(test, files) for test, files in tests.items()]


def _without_tests(
    files: Iterable[FileCoverage], tests: list[TestCoverage]
) -> Iterator[FileCoverage]:
    """Yield the files with the hits of the tests subtracted."""
    lines: dict[str, Counter[int]] = defaultdict(Counter)
    arcs: dict[str, Counter[Arc]] = defaultdict(Counter)
    for test in tests:
        for path, (test_lines, test_arcs) in test.files.items():
            lines[path].update(test_lines)
            arcs[path].update(test_arcs)
    for file in files:
        yield FileCoverage(
            file.path,
            {line: max(0, n - lines[file.path][line]) for line, n in file.lines.items()},
            {arc: max(0, n - arcs[file.path][arc]) for arc, n in file.branches.items()},
            file.functions,
        )


def _record_lines(test: str, file: FileCoverage) -> Iterator[str]:
    yield f"TN:{one_line(test)}"
    yield f"SF:{one_line(file.path)}"
    for function, (line, count) in file.functions.items():
        yield f"FN:{line},{one_line(function)}"
        yield f"FNDA:{count},{one_line(function)}"
    yield from _totals("FN", [count for _, count in file.functions.values()])
    run = {line for line, count in file.lines.items() if count}
    for (line, to), count in in_order(file.branches):
        yield f"BRDA:{line},0,{_destination(to)},{count if count or line in run else '-'}"
    yield from _totals("BR", file.branches.values())
    for line, count in sorted(file.lines.items()):
        yield f"DA:{line},{count}"
    yield from _totals("L", file.lines.values())
    yield END


def _totals(kind: str, counts: Iterable[int]) -> Iterator[str]:
    hit = [count > 0 for count in counts]
    if hit or kind == "L":
        yield f"{kind}F:{len(hit)}"
        yield f"{kind}H:{sum(hit)}"


def _destination(to: int) -> str:
    number = number_of(to)
    if number is not None:
        return str(number)
    return f"jump to line {to}" if to > 0 else f"leave the code at line {-to}"


@dataclass
class LcovRecord:
    """What one test hit in one file."""

    test: str
    path: str
    lines: Counter[int] = field(default_factory=Counter)
    branches: Counter[Arc] = field(default_factory=Counter)
    functions: dict[str, tuple[int, int]] = field(default_factory=dict)
    function_lines: dict[int, int] = field(default_factory=dict)
    """The first lines of functions, by the numbers in FNL lines."""


@dataclass
class _Branches:
    """Numbers for the branches of a file whose destinations are unknown."""

    numbers: dict[int, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))

    def arc(self, line: int, block: str, branch: str) -> Arc:
        jump = re.fullmatch(r"jump to line ([0-9]{1,9})", branch)
        if jump:
            return line, int(jump[1])
        leave = re.fullmatch(r"leave the code at line ([0-9]{1,9})", branch)
        if leave or branch == "exit the module":
            return line, -int(leave[1]) if leave else -1
        on_line = self.numbers[line]
        return line, unnamed(on_line.setdefault(f"{block},{branch}", len(on_line)))


def read_records(text: str, name: str, *, lenient: bool = False) -> Iterator[LcovRecord]:
    """Yield the records of a tracefile.

    If `lenient`, a record may lack its end, as in a file whose writer was killed, and only the
    lines that count other lines have to be right.
    """
    test = ""
    record: LcovRecord | None = None
    branches: dict[str, _Branches] = defaultdict(_Branches)
    lines = text.split("\n")
    for number, line in enumerate((line.rstrip("\r") for line in lines), start=1):
        kind, _, rest = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if kind == "TN":
            test = rest
        elif kind == "SF" and (record is None or lenient):
            if record is not None:
                yield record
            record = LcovRecord(test, rest)
        elif record is None or not (kind in FORMS or kind in TOTALS_AND_EXTRAS or line == END):
            if kind == "DA" or not lenient:
                raise UserError(f"{name}:{number}: {_shown(line)} is not {_expected(record)}")
        elif line == END:
            yield record
            record = None
        elif kind in FORMS:
            try:
                _add_line(record, kind, rest, branches[record.path])
            except (ValueError, KeyError) as error:
                if kind == "DA" or not lenient:
                    wrong = f"{name}:{number}: {_shown(line)} should be {FORMS[kind]}"
                    raise UserError(wrong) from error
    if record is not None:
        if not lenient:
            raise UserError(f"{name}:{len(lines)}: ends within the record of {record.path}")
        yield record


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else f"{line[:57]}...")


def _expected(record: LcovRecord | None) -> str:
    if record is None:
        return "LCOV: a file's record starts with SF:<path>"
    return f"a line of the record of {record.path}: known are {', '.join(FORMS)} and {END}"


def _add_line(record: LcovRecord, kind: str, rest: str, branches: _Branches) -> None:
    """Add a line to its record; raise ValueError or KeyError if it is malformed."""
    if kind == "DA":
        line, count, *_ = rest.split(",")
        record.lines[_number(line)] += _number(count)
    elif kind == "BRDA":
        line, block, branch, *more, taken = rest.split(",")
        times = 0 if taken == "-" else _number(taken)
        arc = branches.arc(_number(line), block, ",".join([branch, *more]))
        if not _is_excluded(block):
            record.branches[arc] += times
    else:
        _add_function(record, kind, rest)


def _add_function(record: LcovRecord, kind: str, rest: str) -> None:
    first, tail = rest.split(",", 1)
    number = _number(first)
    if kind == "FN":
        last_line = re.match(r"[0-9]+,(?=.)", tail)
        record.functions.setdefault(tail[last_line.end() if last_line else 0 :], (number, 0))
    elif kind == "FNDA":
        line, count = record.functions[tail]
        record.functions[tail] = (line, count + number)
    elif kind == "FNL":
        record.function_lines[number] = _number(tail.split(",")[0])
    else:
        calls, function = tail.split(",", 1)
        record.functions[function] = (record.function_lines[number], _number(calls))


def _is_excluded(block: str) -> bool:
    """Return whether a branch is excluded from LCOV's counts, which a U in its block says."""
    match = re.fullmatch(r"[ef]?(U?)[0-9]+", block)
    if not match:
        raise ValueError(block)
    return bool(match[1])


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,30}", text):
        raise ValueError(text)
    return int(text)
