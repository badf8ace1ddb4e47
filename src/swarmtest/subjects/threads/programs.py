"""From a target to a function that can be called again and again, with probes in its code."""

from __future__ import annotations

import asyncio
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from swarmtest.errors import UserError
from swarmtest.instrument.scope import Scope
from swarmtest.instrument.watch import installed_coverage
from swarmtest.loading import load_object
from swarmtest.subjects.threads.target import Target
from swarmtest.threads import prepare, woven
from swarmtest.threads.hook import WeavingLoader

Program = Callable[[], object]


def load_program(target: Target, stack: ExitStack) -> Program:
    """The program of a target; probes and primitives stay until the stack is closed.

    It is loaded in the process that will run it: modules that are loaded already, without probes,
    are loaded again.
    """
    scope = target.scope()
    _forget(scope)
    stack.enter_context(_without_rewriting())
    stack.enter_context(woven(scope))
    if target.kind == "script":
        return _script(target)
    if target.kind == "test":
        from swarmtest.subjects.threads.pytest_program import pytest_program

        return pytest_program(target.reference)
    return function_program(load_object(target.reference, "function", callable), target.reference)


def function_program(found: Any, name: str) -> Program:
    """A function that needs no arguments, as a program."""
    if not callable(found):
        raise UserError(f"{name} is not a function: a {type(found).__name__}")
    needed = [
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise UserError(
            f"{name} needs arguments ({', '.join(needed)}): race a function without, that starts "
            "the threads and checks what comes of it; or name it test_... to have fixtures"
        )
    if inspect.iscoroutinefunction(found):
        return lambda: asyncio.run(found())
    program: Program = found
    return program


def _script(target: Target) -> Program:
    path = Path(target.path).resolve()
    coverage = installed_coverage()
    covering = coverage.loader_of("__main__", str(path)) if coverage is not None else None
    try:
        code = WeavingLoader("__main__", str(path), covering).get_code("__main__")
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{target.path}{line}: {error.msg}") from None
    sys.path.insert(0, str(path.parent))

    def run() -> None:
        module = types.ModuleType("__main__")
        module.__file__ = str(path)
        sys.modules["__main__"] = module
        sys.argv = [target.path]
        prepare(module.__dict__)
        exec(code, module.__dict__)

    return run


@contextmanager
def _without_rewriting() -> Iterator[None]:
    """In a process of pytest's: its loader for test modules would be in the way of ours."""
    before = list(sys.meta_path)
    sys.meta_path[:] = [one for one in before if not type(one).__module__.startswith("_pytest.")]
    try:
        yield
    finally:
        sys.meta_path[:] = before


def _forget(scope: Scope) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and file and scope.may_choose(name) and scope.chooses(name, file):
            del sys.modules[name]
