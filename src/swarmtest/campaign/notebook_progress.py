"""A progress bar in a notebook, for campaigns that are run there without a view of their own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from html import escape
from typing import Any

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.core.formatting import plural, rough_duration
from swarmtest.store.records import FaultRecord

_SECONDS = 0.25
"""The time between two updates: each one is a message to the browser."""


class NotebookProgress:
    """A bar below the cell, which is updated in place; the Stop button of the notebook ends it.

    >>> print(NotebookProgress(Budget(tests=200)).text(Progress(tests=50, wall_seconds=1.0)))
    50 of 200 tests, 0 faults, 50 tests/s, about 3 s left
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._handle: Any = None
        self._shown = -_SECONDS

    def __call__(self, progress: Progress, new_faults: Sequence[FaultRecord]) -> None:
        """Update the bar if it is time, or if there is a new fault."""
        now = time.monotonic()
        is_end = bool(progress.reached(self._budget))
        if now - self._shown < _SECONDS and not new_faults and not is_end:
            return
        self._shown = now
        shown = _Html(self._html(progress), self.text(progress))
        display = sys.modules["IPython"].display.display  # a notebook has imported it
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)

    def text(self, progress: Progress) -> str:
        """Return the progress in words."""
        tests = plural(progress.tests, "test")
        if self._budget.tests is not None:
            tests = f"{progress.tests:,} of {plural(self._budget.tests, 'test')}"
        words = [tests, plural(progress.faults, "fault")]
        if progress.wall_seconds > 0:
            words.append(f"{progress.tests / progress.wall_seconds:,.0f} tests/s")
        share = self._share(progress)
        if 0 < share < 1:
            left = progress.wall_seconds * (1 - share) / share
            words.append(f"about {rough_duration(left)} left")
        return ", ".join([*words, *filter(None, [progress.condition])])

    def _share(self, progress: Progress) -> float:
        """Return how much of the budget is used; 0 if it has no end that can be foreseen."""
        budget = self._budget
        pairs = (
            (budget.tests, progress.tests),
            (budget.wall_seconds, progress.wall_seconds),
            (budget.cpu_seconds, progress.cpu_seconds),
        )
        return min(max((done / limit for limit, done in pairs if limit), default=0.0), 1.0)

    def _html(self, progress: Progress) -> str:
        share = self._share(progress)
        bar = f'<progress max="1" value="{share:.3f}" style="width:16em"></progress> '
        return f"<div>{bar if share else ''}{escape(self.text(progress))}</div>"


class _Html:
    """HTML for a notebook, with a text for everything else."""

    def __init__(self, html: str, text: str) -> None:
        self._html = html
        self._text = text

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text
