"""Watch lines with `sys.monitoring` (Python 3.12+), for code without source or on request.

The interpreter reports each line once and is then told not to report it again, so a long test costs
almost nothing extra. The price is `restart_events` before each test, which enables the events of
every tool in the process again. Events are set only on the chosen code.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Source
from swarmtest.coverage.file_probes import ReachedTargets
from swarmtest.coverage.scope import shown_path
from swarmtest.coverage.weaving.syntax import logical_lines
from swarmtest.coverage.weaving.weaver import weave

_TOOL_IDS = (2, 5, 0)
"""The ids to try. Ids 1, 3 and 4 are used by coverage.py, Hypothesis and HypoFuzz."""


class MonitoredFile:
    """One file whose lines the interpreter reports."""

    def __init__(self, source: Source, path: str, code: CodeType) -> None:
        self.source = source
        self.path = path
        self.seen: set[int] = set()
        self._starts = logical_lines(source.text) if source.text else {}
        # If there is source, the targets are the same that weaving would watch.
        self._targets = (
            weave(source.text, path, "", ("line",))[1].targets_in(source)
            if source.text
            else [source.target("line", f"{n}", n, where) for n, where in _lines_of(code).items()]
        )
        self._numbers: dict[int, int] = {}
        self._at_import: set[int] = set()

    def enrol(self, catalogue: Catalogue) -> None:
        """Give the file's targets numbers in a catalogue."""
        catalogue.add_source(self.source)
        for target in self._targets:
            self._numbers[target.line] = number = catalogue.number(target)
            if not target.function:
                self._at_import.add(number)

    def reset(self) -> None:
        """Forget what was executed."""
        self.seen.clear()

    def state(self) -> frozenset[int]:
        """Return the executed lines, as a key for `reached`."""
        return frozenset(self.seen)

    def found(self) -> list[int]:
        """Return no paths or predicates: only lines can be seen."""
        return []

    def reached(self, state: Any) -> ReachedTargets:
        """Return the targets of a state."""
        lines = {self._starts.get(line, line) for line in state}
        numbers = {self._numbers[line] for line in lines if line in self._numbers}
        outside = numbers & self._at_import
        inside = numbers - outside
        return ReachedTargets(
            np.array(sorted(inside), np.uint32), np.array(sorted(outside), np.uint32)
        )


def _lines_of(code: CodeType, function: str = "") -> dict[int, str]:
    """Return the lines of compiled code without source, each with its function."""
    lines: dict[int, str] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = constant.co_qualname if constant.co_flags & inspect.CO_OPTIMIZED else function
            lines |= _lines_of(constant, inner)
    return lines | {line: function for _, _, line in code.co_lines() if line}


class Monitor:
    """Makes the interpreter report the lines of chosen files."""

    def __init__(self, register: Callable[[MonitoredFile], None]) -> None:
        self._register = register
        self._events: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._seen: dict[str, set[int]] = {}
        self._tool = self._free_tool()
        seen, disable = self._seen, self._events.DISABLE

        def record_line(code: CodeType, line: int) -> Any:
            seen[code.co_filename].add(line)
            return disable

        self._events.register_callback(self._tool, self._events.events.LINE, record_line)

    def _free_tool(self) -> int:
        for number in _TOOL_IDS:
            if self._events.get_tool(number) is None:
                self._events.use_tool_id(number, "swarmtest")
                return number
        raise UserError(
            "all places for tools in sys.monitoring are taken (a debugger and a profiler at "
            "once?): end one of them, or use --probes ast"
        )

    def close(self) -> None:
        """Release the tool id."""
        if self._events.get_tool(self._tool) == "swarmtest":
            self._events.free_tool_id(self._tool)

    def loader(self, spec: ModuleSpec) -> Loader:
        """Return a loader that loads a module as usual and watches its code."""
        assert spec.origin is not None
        if isinstance(spec.loader, SourceFileLoader):
            return _WatchedSource(spec.name, spec.origin, self)
        return _WatchedBytecode(spec.name, spec.origin, self)

    def watch(self, code: CodeType, path: str, text: str) -> None:
        """Report the lines of a module's code, and of all functions in it."""
        file = MonitoredFile(Source(shown_path(path), text, path), path, code)
        self._seen[code.co_filename] = file.seen
        self._register(file)
        remaining = [code]
        while remaining:
            current = remaining.pop()
            self._events.set_local_events(self._tool, current, self._events.events.LINE)
            remaining += [inner for inner in current.co_consts if isinstance(inner, CodeType)]

    def restart(self) -> None:
        """Have the interpreter report every line once more."""
        self._events.restart_events()


class _WatchedSource(SourceFileLoader):
    def __init__(self, name: str, path: str, monitor: Monitor) -> None:
        super().__init__(name, path)
        self._monitor = monitor

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        assert code is not None
        text = importlib.util.decode_source(self.get_data(self.path))
        self._monitor.watch(code, self.path, text)
        exec(code, module.__dict__)


class _WatchedBytecode(SourcelessFileLoader):
    def __init__(self, name: str, path: str, monitor: Monitor) -> None:
        super().__init__(name, path)
        self._monitor = monitor

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        assert code is not None
        self._monitor.watch(code, self.path, "")
        exec(code, module.__dict__)
