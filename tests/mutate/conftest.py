from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from swarmtest.core.targets import Source
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.loaded_files import live_files, source_of
from swarmtest.mutate.mutant import Mutant

_numbers = itertools.count()


class Program:
    """A module that was written for one test, loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module: ModuleType = importlib.import_module(path.stem)
        self.source: Source = source_of(str(path))
        (self.live,) = live_files([self.source])

    def mutant(self, after: str, operators: str = "all") -> Mutant:
        """The one mutant with a line that reads so."""
        found = [
            mutant for mutant in mutants_of(self.source, operators) if mutant.after.strip() == after
        ]
        assert len(found) == 1, [mutant.after for mutant in mutants_of(self.source, operators)]
        return found[0]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Program]]:
    """Writes and imports a module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names: list[str] = []

    def make(text: str) -> Program:
        name = f"mutated_program_{next(_numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        names.append(name)
        importlib.invalidate_caches()
        return Program(path)

    yield make
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Lets the next import of what is in this directory be the first; so does the test's end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def modules_in_directory() -> None:
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
                del sys.modules[name]

    yield modules_in_directory
    modules_in_directory()
