"""Programs in a directory of their own, imported with probes and forgotten afterwards."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage


class Project:
    """A directory on the path that is also the current one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._before = set(sys.modules)
        self._coverages: list[Coverage] = []

    def write(self, files: dict[str, str] | None = None, **modules: str) -> Project:
        """Files by their paths, modules by their names."""
        for name, text in {**(files or {}), **{f"{m}.py": t for m, t in modules.items()}}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"))
        return self

    def watch(self, *cover: str, kinds: tuple[str, ...] = ("line",), **more: Any) -> Coverage:
        """Coverage that is installed, until the test ends."""
        coverage = Coverage(CoverageOptions(kinds=kinds, cover=cover, **more)).install()
        self._coverages.append(coverage)
        return coverage

    def load(self, name: str) -> ModuleType:
        """Import a module as if for the first time."""
        for known in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
            del sys.modules[known]
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def close(self) -> None:
        for coverage in self._coverages:
            coverage.uninstall()
        for name in set(sys.modules) - self._before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(self.root)) or not file:
                del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made = Project(tmp_path)
    yield made
    made.close()


@pytest.fixture
def reached() -> Callable[..., list[str]]:
    """Call something, and name what was hit."""

    def names(coverage: Coverage, call: Callable[[], Any]) -> list[str]:
        coverage.reset()
        call()
        return [str(target) for target in coverage.take().targets()]

    return names
