"""Small programs, really built with gcc, clang, `swarmtest cc` and gcov."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from native_programs import Build, need

from swarmtest.coverage.native.compiler import compiler_command


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds what an earlier one kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build a program from source text with ``swarmtest cc``, in the directory of the test."""
    monkeypatch.chdir(tmp_path)

    def make(
        source: str, *flags: str, compiler: str = "gcc", wrapped: bool = True, name: str = "prog"
    ) -> Path:
        need(compiler, "addr2line")
        file = Path(f"{name}.{'cc' if compiler.endswith('++') else 'c'}")
        file.write_text(source)
        words = [compiler, "-o", name, str(file), *flags]
        subprocess.run(compiler_command(words) if wrapped else words, check=True)
        return tmp_path / name

    return make
