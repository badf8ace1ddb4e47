"""Which objects of a test module, and which files, are tests of swarmtest's.

A class or an object is collected where it is defined, not where it is imported. Nothing of
swarmtest is imported to find out: a module with a machine in it has done so already.
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

_ENDING = ".swarm.toml"


def item_of(
    collector: pytest.Module, name: str, found: object
) -> pytest.Item | list[pytest.Item] | None:
    """The test that an object of a module is; an empty list: none, and pytest's own neither."""
    settings = settings_of(collector.config)
    if isinstance(found, type) and _is_machine(found):
        here = found.__module__ == collector.obj.__name__
        wanted = settings.collects and here and _is_runnable(found)
        return SwarmItem.of_object(collector, name, found) if wanted else []
    if not settings.collects:
        return None
    if isinstance(found, type):
        if settings.hypothesis and _is_hypothesis_test(found):
            return SwarmItem.of_object(collector, name, found)
    elif _is_subject(found) and name not in _imported_names(collector.obj):
        return SwarmItem.of_object(collector, name, found)
    return None


def describes_a_subject(file: Path, named: bool) -> bool:
    """Whether a TOML file is a test: by its name, or by what it says if the user named it."""
    if file.name.endswith(_ENDING):
        return True
    if not named:
        return False
    try:
        return "generate" in tomllib.loads(file.read_text())
    except (OSError, ValueError):
        return True  # what is wrong with it is said when it is run


class SwarmFile(pytest.File):
    """A TOML file that describes one subject."""

    def collect(self) -> Iterable[pytest.Item]:
        """The one test in it."""
        name = self.path.name.removesuffix(".toml").removesuffix(".swarm")
        yield SwarmItem.of_file(self, name)


def _is_machine(cls: type) -> bool:
    machines = sys.modules.get("swarmtest.subjects.machine.machine")
    return machines is not None and issubclass(cls, machines.Machine)


def _is_runnable(cls: Any) -> bool:
    """Whether a machine has actions, and nobody says that it is only a base of others."""
    from swarmtest.subjects.machine.machine import ACTION

    if cls.__name__.startswith("_") or not getattr(cls, "__test__", True):
        return False
    members = (inspect.getattr_static(cls, name, None) for name in dir(cls))
    return not inspect.isabstract(cls) and any(hasattr(member, ACTION) for member in members)


def _is_hypothesis_test(cls: type) -> bool:
    """Whether a class is the ``TestCase`` of a state machine, which pytest would collect."""
    return hasattr(getattr(cls, "runTest", None), "_hypothesis_state_machine_class")


def _is_subject(found: object) -> bool:
    """By what its class has: an instance of a mock claims to have everything."""
    kind = type(found)
    if "swarmtest.core.space" not in sys.modules or not hasattr(kind, "result_of_journal"):
        return False
    from swarmtest.subjects.subject import Subject, is_subject

    # An incomplete subject is collected: what it lacks is said when it is run.
    return isinstance(found, Subject) or is_subject(found)


def _imported_names(module: ModuleType) -> set[str]:
    """The names that a module's text imports: an object does not tell where it was made."""
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
