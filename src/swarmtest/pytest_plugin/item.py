"""One machine, or another subject, as one test of pytest: it runs a campaign.

The campaign's workers are forked from this process, so the program is tested as pytest sees it:
with what conftest files set up, and with asserts that explain themselves. A crash of the program
ends a fork and not pytest.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from typing import TYPE_CHECKING, Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.pytest_plugin.options import Plan, settings_of, with_our_options

if TYPE_CHECKING:
    from swarmtest.campaign.campaign import Outcome

_WITHOUT_MEANING = ("parametrize", "usefixtures")
"""Markers that only work on functions and their classes."""


class SwarmWarning(pytest.PytestWarning):
    """Something about a machine that a user should know though its tests passed."""


class SwarmItem(pytest.Item):
    """A test that runs many tests."""

    def __init__(self, *, found: object, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.found = found
        """The machine or the subject; None: the file describes it."""
        self._report = ""
        if isinstance(found, type):
            self.own_markers += _marks(found)

    @classmethod
    def of_object(cls, parent: pytest.Module, name: str, found: object) -> SwarmItem:
        """The test of something that a module defines."""
        item: SwarmItem = cls.from_parent(parent, name=name, found=found)
        return item

    @classmethod
    def of_file(cls, parent: pytest.File, name: str) -> SwarmItem:
        """The test of what a file describes."""
        item: SwarmItem = cls.from_parent(parent, name=name, found=None)
        return item

    @property
    def reference(self) -> str:
        """How `swarmtest` finds it again, from the root directory."""
        file = os.path.relpath(self.path, self.config.rootpath)
        return file if self.found is None else f"{file}::{self.name}"

    def plan(self) -> Plan:
        """How it is tested."""
        marker = self.get_closest_marker("swarm")
        if marker is not None and marker.args:
            raise UserError("pytest.mark.swarm takes keywords, like tests=5000")
        return settings_of(self.config).plan({} if marker is None else dict(marker.kwargs))

    def runtest(self) -> None:
        """Run a campaign; its faults are this test's failure."""
        from swarmtest.pytest_plugin.campaign_run import Run

        try:
            for name in _WITHOUT_MEANING:
                if self.get_closest_marker(name):
                    raise UserError(f"pytest.mark.{name} means nothing on a machine")
            plan = self.plan()
            run = Run(self.config, self.reference, self.nodeid, plan)
            outcome = run.campaign(self.found, self.path)
            self.user_properties += _figures(outcome, plan.seed)
            self.user_properties += [("swarm_focus", text) for text in run.remarks[:1]]
            self._report = run.failure.text
            if self._report and self.config.getoption("usepdb"):
                run.raise_fault()
        except UserError as error:
            self._report = with_our_options(str(error))
        if self._report:
            pytest.fail(self._report, pytrace=False)
        for note in run.failure.notes:
            self.warn(SwarmWarning(f"{self.name}: {note}"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report, also when it was the program's own exception that a debugger gets."""
        if self._report and not isinstance(excinfo.value, pytest.fail.Exception):
            return self._report
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Where it is defined."""
        line = 0
        if isinstance(self.found, type):
            with contextlib.suppress(OSError, TypeError):
                line = inspect.getsourcelines(self.found)[1] - 1
        return self.path, line, self.name


def _marks(cls: type) -> list[pytest.Mark]:
    """The markers on a class and its bases."""
    told = [vars(base).get("pytestmark", []) for base in reversed(cls.__mro__)]
    marks = [mark for one in told for mark in (one if isinstance(one, list) else [one])]
    return [mark.mark if isinstance(mark, pytest.MarkDecorator) else mark for mark in marks]


def _figures(outcome: Outcome, seed: int) -> list[tuple[str, object]]:
    """What a report tells about its campaign, and JUnit's XML as properties."""
    return [
        ("swarm_tests", outcome.progress.tests),
        ("swarm_invalid", outcome.progress.invalid),
        ("swarm_faults", len(outcome.faults)),
        ("swarm_seed", seed),
        ("swarm_campaign", outcome.campaign),
    ]


def focus_lines(terminal: Any) -> list[str]:
    """What came of aiming at changes, a line for each machine."""
    told = [
        (report.nodeid, dict(report.user_properties).get("swarm_focus"))
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
    ]
    return [f"{name}: {text}" for name, text in told if text]


def tests_and_faults(terminal: Any) -> str:
    """How many tests ran in all campaigns, in words; empty if there were no campaigns."""
    reports = [
        dict(report.user_properties)
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call" and "swarm_tests" in dict(report.user_properties)
    ]
    if not reports:
        return ""
    from swarmtest.ui.terminal.tables import plural

    tests = sum(told["swarm_tests"] for told in reports)
    faults = sum(told["swarm_faults"] for told in reports)
    kept = settings_of(terminal.config).store
    shown = os.path.relpath(kept, terminal.config.invocation_params.dir)
    where = f" -> {shown}" if os.path.exists(kept) else ""
    return f"{plural(tests, 'test')}, {plural(faults, 'distinct fault')}{where}"
