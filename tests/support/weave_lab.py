"""A small program, run once as it is under coverage.py and once with probes, to be compared."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import itertools
import json
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import CodeType, FrameType
from typing import Any

from line_tables import compile_program

import coverage
from swarmtest.core.targets import Source, Target
from swarmtest.coverage import file_probes as live
from swarmtest.coverage.file_probes import Traces
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.coverage.weaving.arcs import arc_of
from swarmtest.coverage.weaving.paths import blocks_of
from swarmtest.coverage.weaving.weaver import weave

KINDS = (
    ("line",),
    ("branch",),
    ("line", "branch"),
    ("line", "path"),
    ("line", "predicate"),
    ("line", "block", "branch", "predicate", "path", "prime", "du"),
)
"""Which probes there are depends on the kinds, so each program is tried with several."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What somebody who calls the program can observe."""

    result: str
    places: tuple[Any, ...] = ()
    """Of an exception: function, line and columns of each frame of the program."""


@dataclass(frozen=True)
class Reached:
    """Lines and branches, as coverage.py writes them."""

    lines: frozenset[int]
    branches: frozenset[tuple[int, int]]

    def __or__(self, other: Reached) -> Reached:
        return Reached(self.lines | other.lines, self.branches | other.branches)


def outcome(call: Callable[[], Any], filename: str) -> Outcome:
    """Call, and tell what came of it."""
    try:
        return Outcome(repr(call()))
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
        places = tuple((f.name, f.lineno, f.end_lineno, f.colno, f.end_colno) for f in frames)
        said = [f"{type(e).__name__}: {e}" for e in _chain(error)]
        return Outcome(" <- ".join(said), places)


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


class Plain:
    """The program as it is; `imported` and the calls are watched by coverage.py."""

    def __init__(self, text: str, directory: Path) -> None:
        self.file = directory / f"program_{next(_numbers)}.py"
        self.file.write_text(text)
        self.code = compile_program(text, str(self.file))
        self._one_liners = _definitions_in_one_line(text)
        self.namespace: dict[str, Any] = {"__name__": self.file.stem}
        self.known = Reached(frozenset(), frozenset())
        """Everything that could be reached."""
        _, self.imported = self._watched(lambda: exec(self.code, self.namespace))

    def call(self, given: Any) -> tuple[Outcome, Reached]:
        """Call `run`, and tell what was reached."""
        run = self.namespace["run"]
        return self._watched(lambda: run(given))

    def outcome(self, given: Any) -> Outcome:
        """Call `run` unwatched."""
        return outcome(lambda: self.namespace["run"](given), str(self.file))

    def _watched(self, call: Callable[[], Any]) -> tuple[Outcome, Reached]:
        watcher = coverage.Coverage(
            data_file=None, branch=True, config_file=False, include=[str(self.file)], messages=False
        )
        watcher.set_option("report:exclude_lines", [])
        watcher.set_option("report:partial_branches", [])
        watcher.set_option("run:disable_warnings", ["no-data-collected", "module-not-imported"])
        before = sys.gettrace()
        watcher.start()
        try:
            done = outcome(call, str(self.file))
        finally:
            watcher.stop()
            sys.settrace(before)
        data = watcher.get_data()
        try:
            if str(self.file) not in data.measured_files():
                return done, Reached(frozenset(), frozenset())
            with tempfile.NamedTemporaryFile(dir=self.file.parent) as out:
                watcher.json_report([str(self.file)], outfile=out.name)
                (told,) = json.loads(Path(out.name).read_text())["files"].values()
        finally:
            data.close(force=True)  # or its database is closed whenever garbage is collected
        reached = Reached(frozenset(told["executed_lines"]), self._arcs(told["executed_branches"]))
        missed = Reached(frozenset(told["missing_lines"]), self._arcs(told["missing_branches"]))
        self.known = reached | missed
        return done, reached

    def _arcs(self, told: list[list[int]]) -> frozenset[tuple[int, int]]:
        return frozenset((a, b) for a, b in told if a not in self._one_liners)


def _definitions_in_one_line(text: str) -> set[int]:
    """There coverage.py takes "defines it" and "runs it" for two ways out of a decision."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return {node.lineno for node in nodes if node.lineno == node.body[0].lineno}


class Woven:
    """The same program, imported with probes in it."""

    def __init__(self, text: str, directory: Path, kinds: Sequence[str]) -> None:
        name = f"woven_{next(_numbers)}"
        self.filename = str(directory / f"{name}.py")
        Path(self.filename).write_text(text)
        self._coverage = Coverage(CoverageOptions(kinds=tuple(kinds), cover=(name,)))
        self._module: Any = None
        self._import(name, directory)
        self._coverage.begin()
        targets = self._coverage.catalogue.targets
        self.targets = list(targets)
        self.known = reached_by(targets)
        """Everything that could be reached."""
        self.at_import = reached_by([t for t in targets if not t.function])
        self.imported = reached_by([targets[number] for number in self._coverage.outside])

    def _import(self, name: str, directory: Path) -> None:
        writing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        sys.path.insert(0, str(directory))
        importlib.invalidate_caches()
        try:
            with self._coverage:
                spec = importlib.util.find_spec(name)
                assert spec is not None
                assert spec.loader is not None
                self._module = importlib.util.module_from_spec(spec)
                with contextlib.suppress(Exception):
                    spec.loader.exec_module(self._module)
        finally:
            sys.path.remove(str(directory))
            sys.dont_write_bytecode = writing

    def call(self, given: Any) -> tuple[Outcome, list[Target]]:
        """Call `run`, and tell what was reached."""
        before = set(self._coverage.outside)
        self._coverage.outside.clear()
        self._coverage.reset()
        done = outcome(lambda: self._module.run(given), self.filename)
        hit = self._coverage.take().targets()
        hit += [self._coverage.catalogue.targets[number] for number in self._coverage.outside]
        self._coverage.outside |= before
        return done, hit


class Paths:
    """The same program, with the blocks that each call passed."""

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        key = f"paths {next(_numbers)}"
        code, plan = weave(text, filename, key, ("path",))
        self._functions = plan.functions
        self._cells = live.cells_of(key, len(plan.probes), plan.ways)
        self._traces = Traces(Source(filename, text), plan, [])
        self._namespace: dict[str, Any] = {"__name__": Path(filename).stem}
        exec(code, self._namespace)

    @property
    def functions(self) -> set[str]:
        """The functions that have paths, as name and line."""
        return {f"{f.name}:{f.line}" for f in self._functions if f.outline}

    def spans_of(self, name: str) -> list[tuple[int, int]]:
        """The first and last lines of the blocks of a function, without its entry."""
        (function,) = [f for f in self._functions if f"{f.name}:{f.line}" == name]
        return [block[:2] for block in function.outline[0][1:]]

    def call(self, given: Any) -> list[tuple[str, list[tuple[int, int]]]]:
        """For each way that was taken the function, and its blocks as first and last lines."""
        cells = self._cells
        cells.paths.clear()
        cells.ways[:] = cells.no_ways
        outcome(lambda: self._namespace["run"](given), self.filename)
        found = []
        ways = [self._traces.spelt_way(i) for i, hit in enumerate(cells.ways) if hit and i]
        for path in [*map(self._traces.spelt_path, cells.paths), *ways]:
            function = self._functions[ord(path[0])]
            blocks = blocks_of(function.outline, path[1:])[1:]
            spans = [function.outline[0][block][:2] for block in blocks]
            found.append((f"{function.name}:{function.line}", spans))
        return found


def reached_by(targets: Sequence[Target]) -> Reached:
    """The lines and branches among targets."""
    return Reached(
        frozenset(t.line for t in targets if t.kind == "line"),
        frozenset(arc_of(t) for t in targets if t.kind == "branch"),
    )


def _beginnings(text: str) -> dict[int, int]:
    """For each line of a simple statement the first one."""
    return {
        line: node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and not {"body", "cases"} & set(node._fields)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def traced_lines(text: str, code: CodeType, run: Callable[[], Any]) -> list[tuple[str, list[int]]]:
    """Each call's function and lines, in order: an oracle that shares nothing with coverage.py."""
    calls: list[tuple[str, list[int]]] = []
    beginnings = _beginnings(text)

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != code.co_filename or event != "call":
            return None
        lines: list[int] = []
        calls.append((f"{frame.f_code.co_qualname}:{frame.f_code.co_firstlineno}", lines))

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.append(beginnings.get(frame.f_lineno, frame.f_lineno))
            return on_line

        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        outcome(run, code.co_filename)
    finally:
        sys.settrace(before)
    return calls


def lines_of_finally(text: str) -> set[int]:
    """All lines of all `finally` suites."""
    tries = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Try | ast.TryStar)]
    return {
        line
        for node in tries
        for part in node.finalbody
        for line in range(part.lineno, (part.end_lineno or part.lineno) + 1)
    }


def raising_lines(code: CodeType, run: Callable[[], Any]) -> set[int]:
    """The lines on which exceptions were raised, or through which they passed."""
    found: set[int] = set()

    def on_event(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != code.co_filename:
            return None
        if event == "exception":
            found.add(frame.f_lineno)
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        outcome(run, code.co_filename)
    finally:
        sys.settrace(before)
    return found


def differences(
    text: str, inputs: Sequence[Any], directory: Path, kinds: Sequence[Sequence[str]] = KINDS
) -> list[str]:
    """Everything in which a program with probes differs from the same program without."""
    text = dedent(text).lstrip("\n")
    found: list[str] = []

    def same(what: str, ours: Any, theirs: Any) -> None:
        if ours != theirs:
            if isinstance(ours, frozenset):
                ours, theirs = sorted(ours - theirs), sorted(theirs - ours)
                found.append(f"{what}: only with probes {ours}, only without {theirs}")
            else:
                found.append(f"{what}: with probes {ours}, without {theirs}")

    plain = Plain(text, directory)
    expected = [plain.call(given) for given in inputs]
    one_liners = _definitions_in_one_line(text)
    for chosen in kinds:
        woven = Woven(text, directory, chosen)
        if "line" in chosen:
            same(f"{chosen} all lines", woven.known.lines, plain.known.lines)
            same(f"{chosen} lines at import", woven.imported.lines, plain.imported.lines)
        if "branch" in chosen:
            same(f"{chosen} all branches", woven.known.branches, plain.known.branches)
            same(f"{chosen} branches at import", woven.imported.branches, plain.imported.branches)
        for given, (end, reached) in zip(inputs, expected, strict=True):
            done, hit = woven.call(given)
            case = f"{chosen} run({given!r})"
            same(f"{case} outcome", done, end)
            ours = reached_by(hit)
            if "line" in chosen:
                # What runs at import (the line of a lambda, of a def in one line) is no test's.
                ours_only = ours.lines - woven.at_import.lines
                same(f"{case} lines", ours_only, reached.lines - woven.at_import.lines)
            if "branch" in chosen:
                same(f"{case} branches", ours.branches, reached.branches)
            if "block" in chosen and "line" in chosen:
                found.extend(_wrong_blocks(case, hit, ours.lines, woven, one_liners))
    return found


def _wrong_blocks(
    case: str, hit: list[Target], lines: frozenset[int], woven: Woven, one_liners: set[int]
) -> list[str]:
    """A block is hit if and only if its first line is."""
    found = []
    for target in woven.targets:
        if target.kind == "block":
            first, last = map(int, target.name.rpartition(":")[2].split("-"))
            inside = [n for n in range(first, last + 1) if n in woven.known.lines]
            if inside and inside[0] not in one_liners and (inside[0] in lines) != (target in hit):
                found.append(f"{case} block {first}-{last}: {target in hit}")
    return found
