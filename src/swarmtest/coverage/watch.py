"""Watch what tests execute: install the hook once, then `reset` before and `take` after each test.

What is executed while a module is imported belongs to no test, even if a test triggers the import:
such targets are left out of a test's hits and kept in `outside`.
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
from swarmtest.coverage.file_probes import WovenFile, WrittenFile
from swarmtest.coverage.import_hook import (
    Hook,
    ProbingLoader,
    has_bytecode_only,
    has_source,
    is_extension,
    is_test_module,
    refused,
)
from swarmtest.coverage.kinds import WITH_PROBES, monitoring_is_possible, parse_kinds
from swarmtest.coverage.monitoring import Monitor, MonitoredFile
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import DEPENDENCIES
from swarmtest.coverage.weaving.implications import ProbePlan

_MAX_CACHED_HITS = 20_000
"""Distinct sets of hits in the cache; when it is full, it is emptied."""


class Coverage:
    """Watches what tests reach in the chosen modules of this process.

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
        """Accept the kinds, such as ``"line,branch"``, with modules to `cover`, or all options."""
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
        """What cannot be watched and what to do about it, one line each."""
        self.files: list[WovenFile | MonitoredFile] = []
        """The files that are watched."""
        self._loaded: dict[str, WovenFile] = {}
        self._pending: list[WovenFile | MonitoredFile] = []
        self._cached: dict[Any, Hits] = {}
        options.check(names=False)
        self._scope = options.scope()
        self._monitor: Monitor | None = None
        self._has_traces = bool(set(self.options.kinds) - WITH_PROBES)
        self._repeats = bool({"prime", "du"} & set(self.options.kinds))
        self._hook = Hook(self._scope, self._loader_for)

    # Installation

    def install(self) -> Coverage:
        """Watch modules that are imported from now on."""
        self._report_modules_imported_early()
        sys.meta_path.insert(0, self._hook)
        _installed.append(self)
        return self

    def uninstall(self) -> None:
        """Stop watching imports; modules that are loaded keep their probes."""
        if self._hook in sys.meta_path:
            sys.meta_path.remove(self._hook)
            _installed.remove(self)
        if self._monitor is not None:
            self._monitor.close()

    def __enter__(self) -> Coverage:
        return self.install()

    def __exit__(self, *exception: object) -> None:
        self.uninstall()

    def _report_modules_imported_early(self) -> None:
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
                if top in DEPENDENCIES
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
                return self._start_monitor().loader(spec)
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
        """Return a loader for a source file with probes; None if the file is not watched."""
        if self.options.probes == "monitoring" or not self._scope.chooses(name, path):
            return None
        return ProbingLoader(name, path, self.options.kinds, self._register)

    def _start_monitor(self) -> Monitor:
        if self._monitor is None:
            self._monitor = Monitor(self._pending.append)
        return self._monitor

    def _register(self, source: Source, plan: ProbePlan, path: str) -> None:
        if source.id not in self._loaded:
            cells = live.cells_of(live.cells_key(source, plan.kinds), len(plan.probes), plan.ways)
            self._loaded[source.id] = file = WovenFile(source, path, plan, cells, self.problems)
            self._pending.append(file)

    def _enrol_pending(self) -> None:
        """Give numbers to the targets of the files that were loaded since the last call."""
        for file in self._pending:
            file.enrol(self.catalogue)
        self.files += self._pending
        self._pending.clear()
        self._cached.clear()

    # Tests

    def begin(self, harness: str = "") -> None:
        """Begin to count, after all modules are loaded: what ran so far belongs to no test.

        `harness` is a file that only drives the program: it is left out if the user named no
        modules and another one is watched. An empty file, as of a package of tests, does not count.
        """
        others = [file for file in self._pending if file.path != harness]
        if any(map(_has_code, others)) and not self.options.cover:
            self._pending[:] = others
        self.settle()
        self.problems += refused
        refused.clear()
        if not self.files:
            self.problems.append(
                "coverage: the subject imported no module that is watched; name modules with "
                "--cover"
            )

    def settle(self) -> None:
        """Count what ran since the last `reset` as imports, and what they called: as no test's."""
        self.outside.update(np.frombuffer(self.take().numbers, "<u4").tolist())

    def reset(self) -> None:
        """Forget what was executed, because a test begins."""
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

    def written(self, known: Container[str]) -> list[WrittenFile]:
        """Return what probes wrote in this process, for a process that knows some of the files.

        `known` are the ids of the sources that the other process knows.
        """
        return [file.written(id not in known) for id, file in self._loaded.items()]

    def take_over(self, written: Iterable[WrittenFile]) -> None:
        """Replace what probes wrote here by what they wrote in a fork of this process."""
        for file in written:
            if file.plan is not None:
                self._register(file.source, file.plan, file.path)
            self._loaded[file.source.id].overwrite(file)

    def take(self) -> Hits:
        """Return what was executed since the last `reset`."""
        if self._pending:
            self._enrol_pending()
        key = tuple([file.state() for file in self.files])
        hits = self._cached.get(key)
        if hits is None:
            hits = self._read(key)
        if self._has_traces:
            traced: list[int] = []
            for file in self.files:
                traced += file.found()
            if traced:
                traced += array.array("I", hits.numbers)
                # Each path and state occurs once, but paths share the prime and du-paths in them.
                numbers = sorted(set(traced) if self._repeats else traced)
                return Hits(self.catalogue, array.array("I", numbers).tobytes())
        return hits

    def _read(self, key: tuple[Any, ...]) -> Hits:
        parts = []
        for file, state in zip(self.files, key, strict=True):
            inside, outside = file.reached(state)
            parts.append(inside.tobytes())
            if len(outside):
                self.outside.update(outside.tolist())
        if len(self._cached) >= _MAX_CACHED_HITS:
            self._cached.clear()
        # Files were enrolled one after the other, so the numbers ascend.
        hits = self._cached[key] = Hits(self.catalogue, b"".join(parts))
        return hits


def _has_code(file: WovenFile | MonitoredFile) -> bool:
    return not isinstance(file, WovenFile) or file.has_code


_installed: list[Coverage] = []


def installed_coverage() -> Coverage | None:
    """Return the coverage that watches the imports of this process; None if there is none.

    >>> with Coverage("line", cover=["tabnanny"]) as coverage:
    ...     installed_coverage() is coverage
    True
    """
    return _installed[-1] if _installed else None
