"""A shared library that Python calls in its own process: ctypes, cffi, extension modules.

No process is started for a test, so a test costs what the call costs, and reading and clearing its
hits some microseconds. The library was built with `swarmtest cc` and writes to memory of this
process. A fork has a copy of its own, so workers do not disturb each other; a crash ends the worker
and is the fault of the test, as it is for Python code.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits
from swarmtest.coverage.native.build import Build, up_to_date
from swarmtest.coverage.native.collector import LineNumbers, campaign_wants_branches
from swarmtest.coverage.native.fast import FastCoverage, has_runtime

loaded: list[str] = []
"""The libraries that are watched in this process."""
_written: dict[str, mmap.mmap] = {}
"""The memory to which each library writes, as long as it is loaded: to the end of the process."""


class Library:
    """A shared library in this process, and the lines of it that a test reaches.

    `path` is that of a library built by ``swarmtest cc gcc -shared -fPIC``, or an extension module
    that was built like that and is imported. `sources` are the files, directories or patterns whose
    lines are targets; by default, all except the system's headers. `branches`: besides lines,
    record which ways decisions went, as for a `Program`. `build` is how the library is built, as
    for a `Program`; an extension module was imported before, so build that first.

    Give the object to `Machine.cover` or `Trial.cover`, or return it from the function under test
    of a `generator`.

    >>> Library("/no/such/library.so")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: there is no library /no/such/library.so
    """

    def __init__(
        self,
        path: str | Path | ModuleType,
        *,
        sources: Iterable[str | Path] | None = None,
        branches: bool = False,
        build: Build | str | None = None,
    ) -> None:
        if isinstance(path, ModuleType):
            if build is not None:
                raise UserError(f"{path.__name__} is imported: build= is for the path of a library")
            place: str | Path | None = path.__file__
        else:
            place = path
            up_to_date(build, str(path))
        file = os.path.abspath(place or "")
        if not os.path.isfile(file):
            raise UserError(f"there is no library {place}")
        if not has_runtime(file):
            raise UserError(
                f"{file} was built without coverage: build it with `swarmtest cc gcc -shared -fPIC`"
            )
        try:
            self.functions = ctypes.CDLL(file)
            """The library's functions, as `ctypes` calls them."""
        except OSError as error:
            raise UserError(f"cannot load {file}: {error}") from None
        record = getattr(self.functions, "swarmtest_record", None)
        forget = getattr(self.functions, "swarmtest_forget", None)
        if record is None or forget is None:
            raise UserError(
                f"{file} hides swarmtest_record or swarmtest_forget: export both in its version "
                "script, and build it with this version of swarmtest"
            )
        self.catalogue = Catalogue()
        """All lines of the library that are targets, reached or not."""
        self._file = file
        self._lines = LineNumbers(self.catalogue, sources)
        self._record, self._forget = record, forget
        self._branches = branches
        self._coverage = self._watch(branches or campaign_wants_branches())
        loaded.append(file)

    def _watch(self, branches: bool) -> FastCoverage:
        """Let the library write to new memory."""
        coverage = FastCoverage(self._file, self._lines, branches=branches, forget=self._forget)
        self._record(ctypes.c_void_p(coverage.shared.address))
        _keep(self._file, coverage.shared.memory)
        coverage.take()  # what was reached before belongs to no test
        return coverage

    @property
    def hits(self) -> Hits:
        """What was reached since this was last read; it is then cleared."""
        hits = self._coverage.take()
        wanted = self._branches or campaign_wants_branches()
        if wanted != self._coverage.has_branches:  # from the next test on
            self._coverage = self._watch(wanted)
        return hits

    @property
    def missing(self) -> str:
        """Why what was reached is not known: it always is, so this is empty."""
        return ""

    def reset(self) -> None:
        """Clear what was reached so far: it belongs to no test."""
        _ = self.hits


def _keep(file: str, memory: mmap.mmap) -> None:
    """Keep the memory of a library, also when Python ends and frees everything else."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    former = _written.get(file)
    _written[file] = memory
    if former is not None:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(former))
