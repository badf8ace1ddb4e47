"""Watching tests: install the hook once, then `reset` before and `take` after each test.

What is executed while a module is imported belongs to no test, whichever test happened to import
it: such targets are left out of a test's hits and kept in `outside`.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Container, Iterable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits, Source
from swarmtest.coverage import file_probes as live
from swarmtest.coverage.file_probes import WovenFile, Written
from swarmtest.coverage.import_hook import (
    Hook,
    ProbingLoader,
    has_bytecode_only,
    has_source,
    is_extension,
    is_test_module,
)
from swarmtest.coverage.kinds import WITH_PROBES, monitoring_is_possible, parse_kinds
from swarmtest.coverage.monitoring import Monitor, MonitoredFile
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.weaving.implications import Plan

_OUR_OWN = ("numpy", "pyroaring", "click", "rich")
_REMEMBERED = 20_000
"""Distinct sets of hits that are remembered before we start anew."""


class Coverage:
    """Sees what tests reach in the chosen modules of this process.

    >>> coverage = Coverage("line", cover=["tabnanny"])
    >>> with coverage:
    ...     import tabnanny
    ...     coverage.reset()
    ...     _ = tabnanny.format_witnesses([(8, 1, 2)])
    ...     hits = coverage.take()
    >>> any(target.function == "format_witnesses" for target in hits.targets())
    True
    """

    def __init__(
        self, options: CoverageOptions | str = "line", cover: Iterable[str] | str = ()
    ) -> None:
        """`options`: the kinds, like ``"line,branch"``, or everything that can be said."""
        if isinstance(options, str):
            names = (cover,) if isinstance(cover, str) else tuple(cover)
            options = CoverageOptions(parse_kinds(options), names)
        if not isinstance(options, CoverageOptions):
            raise UserError(f"kinds of coverage are written 'line,branch', not {options!r}")
        self.options = options
        self.catalogue = Catalogue()
        self.outside: set[int] = set()
        """The targets that were reached while modules were imported."""
        self.problems: list[str] = []
        """What cannot be watched, one line each, with what to do about it."""
        self.files: list[WovenFile | MonitoredFile] = []
        """The files that are watched."""
        self._loaded: dict[str, WovenFile] = {}
        self._pending: list[WovenFile | MonitoredFile] = []
        self._known: dict[Any, Hits] = {}
        options.check(names=False)
        self._scope = options.scope()
        self._monitor: Monitor | None = None
        self._finds = bool(set(self.options.kinds) - WITH_PROBES)
        self._repeats = bool({"prime", "du"} & set(self.options.kinds))
        self._hook = Hook(self._scope, self._loader_for)

    # Installation

    def install(self) -> Coverage:
        """Watch modules that are imported from now on."""
        self._note_what_is_already_imported()
        sys.meta_path.insert(0, self._hook)
        _installed.append(self)
        return self

    def uninstall(self) -> None:
        """Leave imports alone again; modules that are loaded keep their probes."""
        if self._hook in sys.meta_path:
            sys.meta_path.remove(self._hook)
            _installed.remove(self)
        if self._monitor is not None:
            self._monitor.close()

    def __enter__(self) -> Coverage:
        return self.install()

    def __exit__(self, *exception: object) -> None:
        self.uninstall()

    def _note_what_is_already_imported(self) -> None:
        early: dict[str, list[str]] = {}
        for name, module in sorted(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            top = name.partition(".")[0]
            loader = getattr(module, "__loader__", None)
            woven = isinstance(loader, ProbingLoader) and loader.tells(self._register)
            if woven or not origin.endswith(".py") or top in ("swarmtest", "__main__"):
                continue
            if self._scope.chooses(name, origin):
                early.setdefault(top, []).append(name)
        for top, names in early.items():
            what = names[0] if len(names) == 1 else f"{top} ({len(names)} modules)"
            cure = (
                "swarmtest itself needs it"
                if top in _OUR_OWN
                else "start coverage first, then import it"
            )
            self.problems.append(
                f"{what} was imported before coverage began, so its lines are not seen: {cure}"
            )

    def _loader_for(self, spec: ModuleSpec) -> Loader | None:
        assert spec.origin is not None
        if has_source(spec) and self.options.probes != "monitoring":
            return ProbingLoader(spec.name, spec.origin, self.options.kinds, self._register)
        if has_source(spec) or has_bytecode_only(spec):
            if monitoring_is_possible(self.options.kinds):
                return self._need_monitoring().loader(spec)
            self.problems.append(
                f"{spec.name} has no source ({spec.origin}): only lines can be seen, by "
                "sys.monitoring, which needs Python 3.12 or newer and --coverage line"
            )
        elif is_extension(spec):
            self.problems.append(
                f"{spec.name} is a C extension ({spec.origin}): its lines cannot be seen from "
                "Python; docs/native.md shows how to watch native code"
            )
        elif not is_test_module(spec):
            kind = type(spec.loader).__name__
            self.problems.append(
                f"{spec.name} is loaded by {kind}, not from a plain file ({spec.origin}): "
                "its lines cannot be seen"
            )
        return None

    def loader_of(self, name: str, path: str) -> ProbingLoader | None:
        """What would load a source file with probes; None if it is not watched."""
        if self.options.probes == "monitoring" or not self._scope.chooses(name, path):
            return None
        return ProbingLoader(name, path, self.options.kinds, self._register)

    def _need_monitoring(self) -> Monitor:
        if self._monitor is None:
            self._monitor = Monitor(self._pending.append)
        return self._monitor

    def _register(self, source: Source, plan: Plan, path: str) -> None:
        if source.id not in self._loaded:
            cells = live.cells_of(live.cells_key(source, plan.kinds), len(plan.probes), plan.ways)
            self._loaded[source.id] = file = WovenFile(source, path, plan, cells, self.problems)
            self._pending.append(file)

    def _take_up(self) -> None:
        """Watch what was loaded since the last time."""
        for file in self._pending:
            file.enrol(self.catalogue)
        self.files += self._pending
        self._pending.clear()
        self._known.clear()

    # Tests

    def begin(self, harness: str = "") -> None:
        """All modules are loaded: what was executed so far is no test's.

        `harness` is a file that only drives the program: it is left out when nothing was asked for
        and there is anything else.
        """
        others = [file for file in self._pending if file.path != harness]
        if others and not self.options.cover:
            self._pending[:] = others
        self.settle()
        if not self.files:
            self.problems.append(
                "coverage: the subject imported no module that is watched; name modules with "
                "--cover"
            )

    def settle(self) -> None:
        """What was executed since the last `reset` is no test's: imports, and what they called."""
        self.outside.update(np.frombuffer(self.take().numbers, "<u4").tolist())

    def reset(self) -> None:
        """Forget what was executed; a test begins."""
        if self._pending:
            self.settle()
        for file in self.files:
            file.reset()
        if self._monitor is not None:
            self._monitor.restart()

    @property
    def known_files(self) -> frozenset[str]:
        """The ids of the sources whose probes are known here."""
        return frozenset(self._loaded)

    def written(self, known: Container[str]) -> list[Written]:
        """What probes wrote in this process, for one that knows the files with these ids."""
        return [file.written(id not in known) for id, file in self._loaded.items()]

    def take_over(self, written: Iterable[Written]) -> None:
        """Let what probes wrote in a process that was forked from this one count as ours."""
        for one in written:
            if one.plan is not None:
                self._register(one.source, one.plan, one.path)
            self._loaded[one.source.id].overwrite(one)

    def take(self) -> Hits:
        """What was executed since the last `reset`."""
        if self._pending:
            self._take_up()
        key = tuple([file.state() for file in self.files])
        known = self._known.get(key)
        if known is None:
            known = self._read(key)
        if self._finds:
            found: list[int] = []
            for file in self.files:
                found += file.found()
            if found:
                found += array.array("I", known.numbers)
                # Paths and states are each found once; what paths contain, many times.
                numbers = sorted(set(found) if self._repeats else found)
                return Hits(self.catalogue, array.array("I", numbers).tobytes())
        return known

    def _read(self, key: tuple[Any, ...]) -> Hits:
        parts = []
        for file, state in zip(self.files, key, strict=True):
            inside, outside = file.reached(state)
            parts.append(inside.tobytes())
            if len(outside):
                self.outside.update(outside.tolist())
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        # Files were enrolled in turn, so their numbers ascend.
        hits = self._known[key] = Hits(self.catalogue, b"".join(parts))
        return hits


_installed: list[Coverage] = []


def installed_coverage() -> Coverage | None:
    """The coverage that watches imports of this process; None if there is none.

    >>> with Coverage("line", cover=["tabnanny"]) as coverage:
    ...     installed_coverage() is coverage
    True
    """
    return _installed[-1] if _installed else None
