"""A machine or another subject as one test of pytest, which runs a campaign.

The campaign's workers are forked from this process, so the program is tested as pytest sees it:
with what conftest files set up, and with pytest's rewritten asserts. A crash of the program ends a
fork and not pytest.

The second part collects such tests. A class or an object is collected where it is defined, not
where it is imported. Nothing else of swarmtest is imported for it: a module that defines a machine
has already imported it.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import sys
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import printable
from swarmtest.pytest_plugin.options import CampaignPlan, settings_of, with_our_options

if TYPE_CHECKING:
    from swarmtest.campaign.campaign import Outcome


# The test.

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
            self.user_properties += [("swarm_forgiven", text) for text in run.failure.forgiven]
            self._report = printable(run.failure.text)
            if self._report and self.config.getoption("usepdb"):
                run.raise_fault()
        except UserError as error:
            self._report = printable(with_our_options(str(error)))
        if self._report:
            pytest.fail(self._report, pytrace=False)
        for note in run.failure.notes:
            self.warn(SwarmWarning(printable(f"{self.name}: {note}")))

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


def forgiven_lines(terminal: Any) -> list[str]:
    """Return a line for each fault that did not fail its test."""
    return [
        f"{report.nodeid}: {text}"
        for reports in terminal.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, text in report.user_properties
        if name == "swarm_forgiven"
    ]


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


# Collection: which objects and files are tests.

_SUFFIX = ".swarm.toml"


def item_of(
    collector: pytest.Module, name: str, member: object
) -> pytest.Item | list[pytest.Item] | None:
    """Return the test for an object of a module.

    None leaves the object to pytest; an empty list says that it is no test for pytest either.
    """
    settings = settings_of(collector.config)
    if isinstance(member, type) and _is_machine(member):
        defined_here = member.__module__ == collector.obj.__name__
        is_test = settings.collects and defined_here and _is_runnable(member)
        return SwarmItem.of_object(collector, name, member) if is_test else []
    if not settings.collects:
        return None
    if isinstance(member, type):
        if settings.hypothesis and _is_hypothesis_test(member):
            return SwarmItem.of_object(collector, name, member)
    elif _is_subject(member) and name not in _imported_names(collector.obj):
        return SwarmItem.of_object(collector, name, member)
    return None


def describes_a_subject(file: Path, named: bool) -> bool:
    """Return whether a TOML file is a test.

    It is one by its name, or by its contents if the user named it on the command line.
    """
    if file.name.endswith(_SUFFIX):
        return True
    if not named:
        return False
    try:
        return "generate" in tomllib.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return True  # running it reports what is wrong


class SwarmFile(pytest.File):
    """A TOML file that describes one subject."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the one test in the file."""
        name = self.path.name.removesuffix(".toml").removesuffix(".swarm")
        yield SwarmItem.of_file(self, name)


def _is_machine(cls: type) -> bool:
    machines = sys.modules.get("swarmtest.subjects.machine.machine")
    return machines is not None and issubclass(cls, machines.Machine)


def _is_runnable(cls: Any) -> bool:
    """Return whether a machine has actions and is not marked as a base class of others."""
    from swarmtest.subjects.machine.machine import ACTION

    if cls.__name__.startswith("_") or not getattr(cls, "__test__", True):
        return False
    members = (inspect.getattr_static(cls, name, None) for name in dir(cls))
    return not inspect.isabstract(cls) and any(hasattr(member, ACTION) for member in members)


def _is_hypothesis_test(cls: type) -> bool:
    """Return whether a class is the ``TestCase`` of a state machine, which pytest would collect."""
    return hasattr(getattr(cls, "runTest", None), "_hypothesis_state_machine_class")


def _is_subject(member: object) -> bool:
    """Return whether an object is a subject, by its class: a mock claims to have any attribute."""
    cls = type(member)
    if "swarmtest.core.space" not in sys.modules or not hasattr(cls, "result_of_journal"):
        return False
    from swarmtest.subjects.subject import Subject, is_subject

    # An incomplete subject is collected: what it lacks is said when it is run.
    return isinstance(member, Subject) or is_subject(member)


def _imported_names(module: ModuleType) -> set[str]:
    """Return the names that a module imports; an object does not know where it was created."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }


# Forking pytest's process.


@contextlib.contextmanager
def forking(really: bool = True) -> Iterator[None]:
    """Prepare pytest's process for forking, unless `really` is False.

    pytest captures `sys.stdout` with an object, which a fork would go on filling; so output goes to
    the file descriptors meanwhile. pytest may also turn Python's warning about threads into an
    error; the threads of pytest-xdist only communicate with its controller.
    """
    if not really:
        yield
        return
    with contextlib.ExitStack() as stack:
        out, err = (
            stack.enter_context(open(fd, "w", closefd=False, errors="replace")) for fd in (1, 2)
        )
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        yield


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard the output of the program, which may be run a hundred times."""
    saved = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        for copy, fd in zip(saved, (1, 2), strict=True):
            os.dup2(copy, fd)
            os.close(copy)
        os.close(null)
