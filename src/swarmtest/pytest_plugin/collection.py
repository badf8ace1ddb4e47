"""Collection: which objects of a test module, and which files, swarmtest runs as tests.

A class or an object is collected where it is defined, not where it is imported. Collection imports
nothing of swarmtest: a module that defines a machine has already imported it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from swarmtest.pytest_plugin.item import SwarmItem
from swarmtest.pytest_plugin.options import settings_of

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
    except (OSError, ValueError):
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
