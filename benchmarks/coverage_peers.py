"""Other tools, made to tell per test what was executed: each at its best settings.

Each function imports `red_black` under one tool, in a process that nothing else watches. Where a
tool has no public way to tell tests apart, we reach into it: emptying its set of lines before a
test and copying it afterwards is the cheapest way that there is. Turning its records into lines and
pairs of lines (`decode`) is not part of the price, though it is part of ours.
"""

from __future__ import annotations

import dis
import importlib.util
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

Place = int | tuple[int, int]
"""A line, or a pair of them: where a decision stands and where it went."""
Arcs = frozenset[tuple[int, int]]
TREE = "red_black"


@dataclass(frozen=True)
class Watched:
    """The tree under a technique."""

    module: ModuleType
    reset: Callable[[], object]
    """Called before each test."""
    take: Callable[[], Any]
    """Called after each test; its answer is what `decode` reads."""
    decode: Callable[[Any], Set[Place]]


def import_tree() -> ModuleType:
    """The tree's module, as whoever watches imports sees it now."""
    return importlib.import_module(TREE)


def _tree_spec() -> Any:
    return importlib.util.find_spec(TREE)


def branch_arcs(path: Path) -> Arcs:
    """What coverage.py calls a branch in a file: all of them, taken or not."""
    import coverage

    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        measured = coverage.Coverage(
            data_file=None, branch=True, config_file=False, include=[str(path)]
        )
        measured.start()
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "measured"})
        measured.stop()
        measured.json_report([str(path)], outfile=str(report))
        (found,) = json.loads(report.read_text())["files"].values()
    return frozenset(map(tuple, found["executed_branches"] + found["missing_branches"]))


# coverage.py


def _start_coverage(core: str, branch: bool) -> Any:
    """A running `coverage.Coverage` that sees the tree and keeps its data in memory."""
    os.environ["COVERAGE_CORE"] = core
    import coverage

    measured = coverage.Coverage(
        data_file=None, branch=branch, config_file=False, include=["*/red_black.py"]
    )
    measured.start()
    return measured


def coverage_contexts(branch: bool, arcs: Arcs) -> Watched:
    """coverage.py by its public way: a context per test, read from its database afterwards.

    (To start, stop, read and erase around each test takes several times as long.)
    """
    measured = _start_coverage("ctrace", branch)
    module = import_tree()
    labels = map(str, itertools.count())
    label = ""

    def reset() -> None:
        nonlocal label
        label = next(labels)
        measured.switch_context(label)

    def decode(asked: str) -> Set[Place]:
        data = measured.get_data()
        data.set_query_context(asked)
        assert module.__file__ is not None
        if branch:
            return arcs.intersection(data.arcs(module.__file__) or ())
        return set(data.lines(module.__file__) or ())

    return Watched(module, reset, lambda: label, decode)


def coverage_collector(core: str, branch: bool, arcs: Arcs) -> Watched:
    """coverage.py by a private way: the set in which its tracer collects."""
    measured = _start_coverage(core, branch)
    module = import_tree()
    (seen,) = measured._collector.data.values()
    packed = measured._collector.core.packed_arcs

    def decode(found: set[Any]) -> Set[Place]:
        if not branch:
            return found
        return arcs & ({_unpacked(arc) for arc in found} if packed else found)

    return Watched(module, _restarting(seen) if core == "sysmon" else seen.clear, seen.copy, decode)


def _unpacked(arc: int) -> tuple[int, int]:
    """The C tracer keeps two lines in one integer, with their signs above them."""
    start, end = arc & 0xFFFFFFF, arc >> 28 & 0xFFFFFFF
    return (-start if arc >> 56 & 1 else start), (-end if arc >> 57 & 1 else end)


def _restarting(seen: set[Any]) -> Callable[[], None]:
    """Emptying a set, and having everything reported anew."""
    restart = sys.monitoring.restart_events  # type: ignore[attr-defined,unused-ignore]

    def reset() -> None:
        seen.clear()
        restart()

    return reset


# SlipCover


def slipcover_sets(branch: bool, arcs: Arcs) -> Watched:
    """SlipCover by a private way: the set of what is newly seen.

    Before Python 3.12 its probes must not be removed (a threshold of -2), as they could not be put
    back for the next test; since then it disables events, and they have to be restarted.
    """
    from slipcover.importer import FileMatcher, ImportManager
    from slipcover.slipcover import Slipcover

    tool = Slipcover(branch=branch, d_miss_threshold=-2)
    with ImportManager(tool, FileMatcher(sources=[_tree_spec().origin])):
        module = import_tree()
    seen = tool.newly_seen[module.__file__]
    exits = {start: (start, end) for start, end in arcs if end < 0}

    def decode(found: set[Any]) -> Set[Place]:
        if not branch:
            return found
        pairs = {place for place in found if isinstance(place, tuple)}
        return {
            exits.get(start, (start, end)) if end == 0 else (start, end) for start, end in pairs
        }

    restarted = sys.version_info >= (3, 12)
    return Watched(module, _restarting(seen) if restarted else seen.clear, seen.copy, decode)


# Bare sys.monitoring


def _import_with_events(
    callbacks: dict[int, Callable[..., Any]],
) -> tuple[ModuleType, list[CodeType]]:
    """The tree with events set on its own code only, and that code."""
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = monitoring.COVERAGE_ID
    monitoring.use_tool_id(tool, "bare")
    for event, callback in callbacks.items():
        monitoring.register_callback(tool, event, callback)
    spec = _tree_spec()
    module = importlib.util.module_from_spec(spec)
    code = spec.loader.get_code(spec.name)
    codes = list(_with_inner(code))
    for one in codes:
        monitoring.set_local_events(tool, one, sum(callbacks))
    exec(code, module.__dict__)
    return module, codes


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def monitoring_lines(_arcs: Arcs) -> Watched:
    """The interpreter's own line events, each reported once per test."""
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    seen: set[int] = set()
    add, disable = seen.add, monitoring.DISABLE

    def saw(code: CodeType, line: int) -> Any:
        add(line)
        return disable

    module, _ = _import_with_events({monitoring.events.LINE: saw})
    return Watched(module, _restarting(seen), seen.copy, lambda found: found)


def monitoring_branches(arcs: Arcs) -> Watched:
    """The interpreter's own branch events.

    Python 3.14 reports the two ways of a branch apart. Before that they can only be disabled
    together, so that is done when both have been seen.
    """
    events = sys.monitoring.events  # type: ignore[attr-defined,unused-ignore]
    disable = sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]
    seen: set[tuple[int, int, int]] = set()
    first: dict[tuple[int, int], int] = {}

    def saw_one_way(code: CodeType, offset: int, to: int) -> Any:
        seen.add((id(code), offset, to))
        return disable

    def saw_either_way(code: CodeType, offset: int, to: int) -> Any:
        place = id(code), offset
        if first.setdefault(place, to) == to:
            return None
        seen.add((*place, to))
        return disable

    if hasattr(events, "BRANCH_LEFT") and hasattr(events, "BRANCH_RIGHT"):
        callbacks = {events.BRANCH_LEFT: saw_one_way, events.BRANCH_RIGHT: saw_one_way}
    else:
        callbacks = {events.BRANCH: saw_either_way}
    module, codes = _import_with_events(callbacks)
    by_id = {id(code): code for code in codes}
    restart = _restarting(seen)

    def reset() -> None:
        first.clear()
        restart()

    def decode(found: tuple[dict[tuple[int, int], int], set[tuple[int, int, int]]]) -> Set[Place]:
        branches = {(*place, to) for place, to in found[0].items()} | found[1]
        return arcs & {_arc(by_id[code], offset, to) for code, offset, to in branches}

    return Watched(module, reset, lambda: (first.copy(), seen.copy()), decode)


def _arc(code: CodeType, offset: int, to: int) -> tuple[int, int] | None:
    """The lines of a branch; None when another branch of the same line comes first."""
    instructions = {one.offset: one for one in dis.get_instructions(code)}
    lines = {place: line for start, end, line in code.co_lines() for place in range(start, end, 2)}
    start = lines[offset] or 0
    while True:
        one, line = instructions[to], lines[to]
        if line is not None and line != start:
            return start, line
        if one.opname.startswith("RETURN"):
            return start, -code.co_firstlineno
        if one.opname.startswith("JUMP"):
            to = one.argval
        elif one.opcode in dis.hasjrel:
            return None
        else:
            to = min(later for later in instructions if later > to)
