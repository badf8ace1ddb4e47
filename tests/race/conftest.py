"""Programs with threads, loaded with probes."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from swarmtest.coverage.scope import Scope
from swarmtest.race.weaving.weaver import woven

_numbers = itertools.count()
Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Writes a program to a file, imports it with probes, and answers the module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: list[str] = []

    def loaded(text: str) -> ModuleType:
        name = f"program_{next(_numbers)}"
        names.append(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return __import__(name)

    with woven(Scope(places=(str(tmp_path),))):
        yield loaded
    for name in names:
        sys.modules.pop(name, None)
