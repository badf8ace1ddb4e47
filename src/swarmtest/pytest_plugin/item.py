"""A machine or another subject as one test of pytest, which runs a campaign.

The campaign's workers are forked from this process, so the program is tested as pytest sees it:
with what conftest files set up, and with pytest's rewritten asserts. A crash of the program ends a
fork and not pytest.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from typing import TYPE_CHECKING, Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.pytest_plugin.options import CampaignPlan, settings_of, with_our_options

if TYPE_CHECKING:
    from swarmtest.campaign.campaign import Outcome

_UNSUPPORTED_MARKERS = ("parametrize", "usefixtures")
"""Markers that only work on functions and their classes."""


class SwarmWarning(pytest.PytestWarning):
    """A warning about a machine whose tests passed."""


class SwarmItem(pytest.Item):
    """A test of pytest that runs a campaign of many tests."""

    def __init__(self, *, member: object, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.found = member
        """The machine or the subject; None if the file describes it."""
        self._report = ""
        if isinstance(member, type):
            self.own_markers += _marks(member)

    @classmethod
    def of_object(cls, parent: pytest.Module, name: str, member: object) -> SwarmItem:
        """Return the test of an object that a module defines."""
        item: SwarmItem = cls.from_parent(parent, name=name, member=member)
        return item

    @classmethod
    def of_file(cls, parent: pytest.File, name: str) -> SwarmItem:
        """Return the test of the subject that a file describes."""
        item: SwarmItem = cls.from_parent(parent, name=name, member=None)
        return item

    @property
    def reference(self) -> str:
        """The name by which `swarmtest` finds the subject, from the root directory."""
        file = os.path.relpath(self.path, self.config.rootpath)
        return file if self.found is None else f"{file}::{self.name}"

    def plan(self) -> CampaignPlan:
        """Return how it is tested."""
        marker = self.get_closest_marker("swarm")
        if marker is not None and marker.args:
            raise UserError("pytest.mark.swarm takes keyword arguments, such as tests=5000")
        return settings_of(self.config).plan({} if marker is None else dict(marker.kwargs))

    def runtest(self) -> None:
        """Run a campaign; the test fails if the campaign finds faults."""
        from swarmtest.pytest_plugin.campaign_run import CampaignRun

        try:
            for name in _UNSUPPORTED_MARKERS:
                if self.get_closest_marker(name):
                    raise UserError(f"pytest.mark.{name} has no effect on a machine")
            plan = self.plan()
            run = CampaignRun(self.config, self.reference, self.nodeid, plan)
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
        """Return the report, even if the program's own exception was raised for a debugger."""
        if self._report and not isinstance(excinfo.value, pytest.fail.Exception):
            return self._report
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return where it is defined."""
        line = 0
        if isinstance(self.found, type):
            with contextlib.suppress(OSError, TypeError):
                line = inspect.getsourcelines(self.found)[1] - 1
        return self.path, line, self.name


def _marks(cls: type) -> list[pytest.Mark]:
    """Return the markers on a class and its bases."""
    values = [vars(base).get("pytestmark", []) for base in reversed(cls.__mro__)]
    marks = [mark for value in values for mark in (value if isinstance(value, list) else [value])]
    return [mark.mark if isinstance(mark, pytest.MarkDecorator) else mark for mark in marks]


def _figures(outcome: Outcome, seed: int) -> list[tuple[str, object]]:
    """Return the figures of a campaign for the report, and for JUnit's XML as properties."""
    return [
        ("swarm_tests", outcome.progress.tests),
        ("swarm_invalid", outcome.progress.invalid),
        ("swarm_faults", len(outcome.faults)),
        ("swarm_seed", seed),
        ("swarm_campaign", outcome.campaign),
    ]


def focus_lines(terminal: Any) -> list[str]:
    """Return the results of aiming at changes, one line per machine."""
    results = [
        (report.nodeid, dict(report.user_properties).get("swarm_focus"))
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
    ]
    return [f"{name}: {text}" for name, text in results if text]


def tests_and_faults(terminal: Any) -> str:
    """Return how many tests ran in all campaigns, in words; empty if there were no campaigns."""
    reports = [
        dict(report.user_properties)
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call" and "swarm_tests" in dict(report.user_properties)
    ]
    if not reports:
        return ""
    from swarmtest.core.formatting import plural

    tests = sum(properties["swarm_tests"] for properties in reports)
    faults = sum(properties["swarm_faults"] for properties in reports)
    store = settings_of(terminal.config).store
    shown = os.path.relpath(store, terminal.config.invocation_params.dir)
    where = f" -> {shown}" if os.path.exists(store) else ""
    return f"{plural(tests, 'test')}, {plural(faults, 'distinct fault')}{where}"
