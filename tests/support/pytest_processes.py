"""Pytest in a process of its own, which loads no plugin that only other tests need."""

from __future__ import annotations

import sys

OTHERS = ("anyio", "fakefs", "platformdirs", "slipcover")
"""Plugins of packages that are installed with the rest; to load them takes a third of a second."""

WITHOUT_OTHERS = tuple(word for name in OTHERS for word in ("-p", f"no:{name}"))
WITHOUT_HYPOTHESIS = ("-p", "no:hypothesispytest")
"""For suites that do not use Hypothesis: its plugin imports it at the end of every run."""


def pytest_words(*arguments: str) -> list[str]:
    """Return the command that runs pytest in the current environment."""
    return [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, *arguments]
