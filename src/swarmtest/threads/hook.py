"""Modules of the program are loaded with probes in them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

from swarmtest.instrument.hook import (
    Hook,
    ProbingLoader,
    cells_last,
    has_bytecode_only,
    has_source,
)
from swarmtest.instrument.scope import Scope
from swarmtest.threads.handing import Handing
from swarmtest.threads.lines import Lines, lines_are_possible
from swarmtest.threads.patches import installed
from swarmtest.threads.policy import current, prepare
from swarmtest.threads.weaving import weave, weave_tree


class WeavingLoader(SourceFileLoader):
    """Loads a source file with probes before what its threads may share.

    `covering`: who would load it with probes of coverage; then it has both.
    """

    def __init__(self, name: str, path: str, covering: ProbingLoader | None = None) -> None:
        super().__init__(name, path)
        self._covering = covering

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, with probes."""
        path = self.get_filename(fullname)
        if self._covering is not None:
            return weave_tree(self._covering.woven_tree(fullname), path)
        text = importlib.util.decode_source(self.get_data(path))
        return weave(text, path)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        prepare(module.__dict__)
        with _quiet():
            super().exec_module(module)
        cells_last(module)


@contextmanager
def _quiet() -> Iterator[None]:
    """A thread that imports is not stopped: it holds Python's own locks."""
    control = current.policy
    if not isinstance(control, Handing):
        yield
        return
    control.quiet += 1
    try:
        yield
    finally:
        control.quiet -= 1


@contextmanager
def woven(scope: Scope) -> Iterator[None]:
    """While this lasts, modules of the scope that are imported get probes, and locks are ours.

    Modules without source are seen line by line, from Python 3.12 on.

    >>> from swarmtest.instrument.scope import Scope
    >>> with woven(Scope(names=("shop",))):
    ...     pass  # import shop
    """

    lines: Lines | None = None

    def loader_for(spec: ModuleSpec) -> Loader | None:
        nonlocal lines
        assert spec.origin is not None
        if has_source(spec):
            covering = spec.loader if isinstance(spec.loader, ProbingLoader) else None
            return WeavingLoader(spec.name, spec.origin, covering)
        if has_bytecode_only(spec) and lines_are_possible():
            lines = lines or Lines()
            return lines.loader(spec, _quiet)
        return None

    hook = Hook(scope, loader_for)
    with installed():
        sys.meta_path.insert(0, hook)
        try:
            yield
        finally:
            sys.meta_path.remove(hook)
            if lines is not None:
                lines.close()
