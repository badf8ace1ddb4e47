"""A suite in a directory of its own, run by pytest."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from textwrap import dedent

import hypothesis.stateful  # noqa: F401  (its plugin would, again and again)
import pytest
from pytest_suites import clean_environment, words_of_pytest

import swarmtest

# What is imported here stays: a run inside this process forgets what it has imported itself.
from swarmtest.pytest_plugin.options import COMMIT_VARIABLES
from swarmtest.store import open_store
from swarmtest.store.interface import Store


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed is not to depend on where these tests run."""
    for name in ("CI", "SWARMTEST_STORE", *COMMIT_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(pytester: pytest.Pytester) -> Callable[..., None]:
    """Write files by their names; ``test_it="..."`` is ``test_it.py``."""

    def files(**texts: str) -> None:
        for name, text in texts.items():
            (pytester.path / f"{name}.py").write_text(dedent(text))

    return files


@pytest.fixture
def store(pytester: pytest.Pytester) -> Iterator[Callable[[], Store]]:
    """The store that the suite's campaigns are kept in."""
    path = pytester.path / ".swarmtest" / "swarmtest.db"
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(open_store(path, read_only=True))


@pytest.fixture
def in_a_process(pytester: pytest.Pytester) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words_of_pytest(*arguments),
            cwd=pytester.path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


# A name of the package stays in it once it was used, so its module must stay too.
for _name in dir(swarmtest):
    getattr(swarmtest, _name)
