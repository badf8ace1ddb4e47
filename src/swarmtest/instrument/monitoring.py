"""Lines by `sys.monitoring` (Python 3.12+): for code without source, or when asked for.

The interpreter reports a line once and is then told not to report it again, so a test that runs
long costs nearly nothing; `restart_events` before each test is what it does cost, and that re-arms
the events of every tool in the process. Events are set on the chosen code only.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType
from typing import Any

from swarmtest.errors import UserError
from swarmtest.instrument.scope import shown_path
from swarmtest.instrument.syntax import logical_lines
from swarmtest.targets import Catalogue, Source, Target, content_hash

_TOOL_IDS = (2, 5, 0)
"""1, 3 and 4 are in use by coverage.py, Hypothesis and HypoFuzz."""


def monitoring_is_possible(kinds: tuple[str, ...]) -> bool:
    """Whether this Python can report what is asked for."""
    return hasattr(sys, "monitoring") and kinds == ("line",)


class Monitor:
    """Collects the lines of chosen code objects."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._events: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._seen: set[tuple[str, int]] = set()
        self._numbers: dict[tuple[str, int], int] = {}
        self._tool = self._free_tool()
        line_event = self._events.events.LINE
        seen, disable = self._seen, self._events.DISABLE

        def saw(code: CodeType, line: int) -> Any:
            seen.add((code.co_filename, line))
            return disable

        self._events.register_callback(self._tool, line_event, saw)

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
        """Give the tool's place back."""
        if self._events.get_tool(self._tool) == "swarmtest":
            self._events.free_tool_id(self._tool)

    @property
    def watches(self) -> bool:
        """Whether there is any code to watch."""
        return bool(self._numbers)

    def loader(self, spec: ModuleSpec) -> Loader:
        """A loader that loads a module as ever, and watches its code."""
        assert spec.origin is not None
        if isinstance(spec.loader, SourceFileLoader):
            return _WatchedSource(spec.name, spec.origin, self)
        return _WatchedBytecode(spec.name, spec.origin, self)

    def watch(self, code: CodeType, path: str, text: str) -> None:
        """Report the lines of a module's code, and of all functions in it."""
        source = Source(shown_path(path), text)
        self._catalogue.add_source(source)
        starts = logical_lines(text) if text else {}
        lines = text.splitlines()
        self._watch(code, "", source, starts, lines, outermost=True)

    def _watch(
        self,
        code: CodeType,
        function: str,
        source: Source,
        starts: dict[int, int],
        lines: list[str],
        outermost: bool,
    ) -> None:
        self._events.set_local_events(self._tool, code, self._events.events.LINE)
        for _, _, physical in code.co_lines():
            if not physical or outermost:
                continue  # what runs at import belongs to no test
            line = starts.get(physical, physical)
            content = content_hash(lines[line - 1]) if lines else ""
            name = f"{source.path}:{line}"
            target = Target("line", name, source.path, line, function, content, source.id)
            self._numbers[code.co_filename, physical] = self._catalogue.number(target)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                in_class = outermost and not constant.co_flags & 0x1  # CO_OPTIMIZED: a function
                name = constant.co_qualname
                self._watch(constant, name, source, starts, lines, outermost=in_class)

    def reset(self) -> None:
        """Forget what was seen, and have it reported anew."""
        self._seen.clear()
        self._events.restart_events()

    def take(self) -> tuple[int, ...]:
        """The numbers of the lines that were seen."""
        numbers = self._numbers
        return tuple(sorted({numbers[place] for place in self._seen if place in numbers}))


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
