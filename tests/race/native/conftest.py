"""Programs with threads, really built with gcc; and a cache that starts empty."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from thread_programs import Build, need


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build a program from source text, in the directory of the test."""
    monkeypatch.chdir(tmp_path)

    def make(source: str, *flags: str, compiler: str = "gcc", name: str = "prog") -> Path:
        need(compiler, "addr2line")
        file = Path(f"{name}.{'cc' if compiler.endswith('++') else 'c'}")
        file.write_text(source)
        subprocess.run([compiler, "-g", "-o", name, str(file), *flags, "-pthread"], check=True)
        return tmp_path / name

    return make
