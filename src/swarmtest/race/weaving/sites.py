"""Sites: the places in a program where threads may meet, each with a small number.

A probe passes its site's number. Numbers are valid in one process only; schedules and signatures,
which are kept, name sites by their text.

In code without source, `LineReporter` makes the interpreter report lines (`sys.monitoring`, Python
3.12 and later). Each line is a site that is passed before the line is executed. What the line
touches is not known, so such sites are never among the shared ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourcelessFileLoader
from types import CodeType, ModuleType
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import shown_path
from swarmtest.race.primitives.policy import current


@dataclass(frozen=True, slots=True)
class Site:
    """One access in the source.

    >>> str(Site("shop.py", 12, 8, "Shop.sell", "write", "attribute", "self.seats", "seats"))
    'shop.py:12 Shop.sell: write self.seats'
    """

    path: str
    """The file, as a person would name it."""
    line: int
    column: int
    function: str
    """The function's qualified name; empty for the module itself."""
    kind: str
    """``read``, ``write``, or ``call`` (of a method of the object, which may do either)."""
    what: str
    """``attribute``, ``subscript``, ``global`` or ``closure``."""
    variable: str
    """The variable as written in the source: ``self.seats``, ``seats[]``, ``total``."""
    name: str
    """The bare name of the attribute or variable; empty for a subscript."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function or '<module>'}: {self.kind} {self.variable}"

    @property
    def text(self) -> str:
        """The name of the site in a schedule, which does not change with edits above it."""
        return f"{self.path} {self.function or '<module>'} {self.kind} {self.variable}"


class Sites:
    """All sites woven in this process; a file that is woven again keeps its sites."""

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def number(self, site: Site) -> int:
        """Return the number of a site.

        >>> sites = Sites()
        >>> sites.number(Site("a.py", 1, 0, "f", "read", "global", "x", "x"))
        0
        """
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self._sites)
            self._sites.append(site)
        return number

    def __getitem__(self, number: int) -> Site:
        return self._sites[number]

    def __len__(self) -> int:
        return len(self._sites)


SITES = Sites()


# Lines of code without source.

LINE = "line"
_TOOL_IDS = (5, 2, 0)
_TOOL_NAME = "swarmtest threads"


def lines_are_possible() -> bool:
    """Return whether this interpreter can report lines."""
    return hasattr(sys, "monitoring")


class LineReporter:
    """A tool of `sys.monitoring` that reports the lines of chosen code to the current policy."""

    def __init__(self) -> None:
        self._events: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._sites: dict[tuple[CodeType, int], int] = {}
        self._tool = self._free_tool()
        self._events.register_callback(self._tool, self._events.events.LINE, self._on_line)

    def _free_tool(self) -> int:
        for number in _TOOL_IDS:
            if self._events.get_tool(number) is None:
                self._events.use_tool_id(number, _TOOL_NAME)
                return number
        raise UserError(
            "all places for tools in sys.monitoring are taken (a debugger and a profiler at "
            "once?): end one of them, to see threads in code without source"
        )

    def close(self) -> None:
        """Release the tool id."""
        self._events.free_tool_id(self._tool)

    def loader(
        self, spec: ModuleSpec, quiet: Callable[[], AbstractContextManager[None]]
    ) -> SourcelessFileLoader:
        """Return a loader that loads a module as usual and watches its code."""
        assert spec.origin is not None
        return _LineReportingLoader(spec.name, spec.origin, self, quiet)

    def watch(self, code: CodeType) -> None:
        """Report the lines of the functions in a module's code."""
        path = shown_path(code.co_filename)
        pending = [const for const in code.co_consts if isinstance(const, CodeType)]
        while pending:
            function = pending.pop()
            pending += [const for const in function.co_consts if isinstance(const, CodeType)]
            for line in sorted({line for _, _, line in function.co_lines() if line}):
                site = Site(path, line, 0, function.co_qualname, LINE, LINE, str(line), "")
                self._sites[function, line] = SITES.number(site)
            self._events.set_local_events(self._tool, function, self._events.events.LINE)

    def _on_line(self, code: CodeType, line: int) -> None:
        policy = current.policy
        if policy is not None and (site := self._sites.get((code, line))) is not None:
            policy.access(site)


class _LineReportingLoader(SourcelessFileLoader):
    def __init__(
        self,
        name: str,
        path: str,
        lines: LineReporter,
        quiet: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__(name, path)
        self._lines = lines
        self._quiet = quiet

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        assert code is not None
        self._lines.watch(code)
        with self._quiet():
            exec(code, module.__dict__)
