"""Switch points in code without probes: the lines of the standard library and of other packages.

A dictionary that `copy.deepcopy` or `json.dumps` walks through, a dataclass that is compared, a
context manager of the library: the program calls code that has no probes, and there a thread may be
switched as well. In a run with library lines, the interpreter reports the lines of such code
(`sys.settrace`), and each line is a switch point. That is slow, so a campaign does it in some runs
only.

The parts of the library that the primitives are made of are left out, and so is everything that an
import executes: the importing thread holds locks that are not controlled.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from swarmtest.coverage.scope import shown_path
from swarmtest.race.primitives.frames import is_library, is_own
from swarmtest.race.primitives.policy import PROBE
from swarmtest.race.weaving.sites import LINE, SITES, Site

if TYPE_CHECKING:
    from swarmtest.race.control.control import ControlPolicy

_EXCLUDED_MODULES = (
    *("threading", "queue", "_weakrefset", "weakref", "concurrent", "asyncio", "selectors"),
    *("multiprocessing", "socket", "subprocess", "importlib", "_pytest", "pytest", "pluggy"),
    *("traceback", "linecache", "warnings", "_threading_local", "contextvars", "gc", "site"),
)
"""Modules in which threads wait, or hold locks that are not controlled."""
_IMPORTS = ("_find_and_load", "_gcd_import")

Trace = Callable[[FrameType, str, Any], Any]


class LibraryLines:
    """What the interpreter calls at each line of code without probes."""

    def __init__(self, control: ControlPolicy) -> None:
        self._control = control
        self._watched: dict[str, bool] = {}
        self._sites: dict[tuple[str, int], int] = {}
        self.passed = 0
        """How many lines were passed."""
        self.packages: Counter[str] = Counter()
        """The same for each package that is not part of the standard library."""

    def calls(self, function: Callable[[], object]) -> None:
        """Call a function, and report the lines that this thread executes.

        The main thread begins to report when it starts another one.
        """
        before = sys.gettrace()
        if len(self._control.tasks) > 1:
            self.begin()
        try:
            function()
        finally:
            sys.settrace(before)

    def begin(self) -> None:
        """Report the lines of functions that this thread enters from now on."""
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, what: str, argument: Any) -> Trace | None:
        code = frame.f_code
        watched = self._watched.get(code.co_filename)
        if watched is None:
            watched = self._watched[code.co_filename] = self._is_watched(frame)
        if watched:
            self._control.event()
            self._pass(frame)
            return self._lines_of(frame)
        if code.co_name in _IMPORTS and code.co_filename.startswith("<frozen importlib"):
            self._control.quiet += 1
            return self._importing
        return None

    def _importing(self, frame: FrameType, what: str, argument: Any) -> Trace:
        if what == "return":
            self._control.quiet -= 1
        return self._importing

    def _is_watched(self, frame: FrameType) -> bool:
        code = frame.f_code
        if code.co_filename.startswith("<frozen") or is_own(code):
            return False
        if code.co_filename.startswith("<") and not _package(frame).startswith("swarmtest"):
            return True  # made while the program runs, such as the methods of a dataclass
        if PROBE in frame.f_globals:
            return False
        package = _package(frame)
        return package not in _EXCLUDED_MODULES and not package.startswith("swarmtest")

    def _lines_of(self, frame: FrameType) -> Trace:
        last = frame.f_lineno

        def line(frame: FrameType, what: str, argument: Any) -> Trace:
            nonlocal last
            if what == "line":
                if frame.f_lineno <= last:
                    self._control.event()  # it has jumped back, where the interpreter may switch
                last = frame.f_lineno
                self._pass(frame)
            return line

        return line

    def _pass(self, frame: FrameType) -> None:
        self.passed += 1
        if not is_library(frame.f_code) and not frame.f_code.co_filename.startswith("<"):
            self.packages[_package(frame)] += 1
        self._control.access(self._site(frame))

    def _site(self, frame: FrameType) -> int:
        code, line = frame.f_code, frame.f_lineno
        number = self._sites.get((code.co_filename, line))
        if number is None:
            path = shown_path(code.co_filename)
            if is_library(code):
                path = str(frame.f_globals.get("__name__", path))
            site = Site(path, line, 0, code.co_qualname, LINE, LINE, str(line), "")
            number = self._sites[code.co_filename, line] = SITES.number(site)
        return number


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
