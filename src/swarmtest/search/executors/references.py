"""From what a user gives or names to an executor."""

from __future__ import annotations

from typing import Any

from swarmtest.errors import UserError
from swarmtest.loading import load_object, split_reference
from swarmtest.search.executors.executor import Executor
from swarmtest.search.executors.function import FunctionExecutor, SubjectExecutor
from swarmtest.search.executors.pytest_node import PytestExecutor
from swarmtest.subjects.loading import SubjectReference, is_testable


def executor_of(told: Any, name: str = "") -> Executor:
    """The executor for a function, a machine or another subject, a reference to one, or itself.

    >>> executor_of(print, "say").name
    'say'
    """
    if isinstance(told, str):
        return _named(told, name)
    if is_testable(told):
        return SubjectExecutor(told, name)
    if not isinstance(told, type) and isinstance(told, Executor):
        return told
    if callable(told):
        return FunctionExecutor(told, name)
    raise UserError(f"test {name!r}: a function, a machine or an executor, not {told!r}")


def _named(text: str, name: str) -> Executor:
    """``file.py::function``, ``module:Machine``, or ``pytest:`` and a node id."""
    if text.startswith("pytest:"):
        return PytestExecutor(text.removeprefix("pytest:"))
    where, inside = split_reference(text)
    if where.endswith(".toml") or not inside:
        return SubjectExecutor(SubjectReference(text).load(), name or text)
    return executor_of(load_object(text, "test", callable), name or text)
