"""Load the program that a user names, as a function that can be called again and again.

The program is a function without arguments, a script, or a test of pytest, whose fixtures are set
up and torn down around each run. Its code is loaded with probes.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import Scope
from swarmtest.coverage.watch import installed_coverage
from swarmtest.languages.user_objects import load_object
from swarmtest.race.primitives.policy import prepare
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.weaving.weaver import WeavingLoader, woven

Program = Callable[[], object]


def load_program(raced: RacedProgram, stack: ExitStack) -> Program:
    """Return a program as a function; probes and primitives stay until the stack is closed.

    Call it in the process that runs the program. Modules that were loaded without probes are loaded
    again.
    """
    scope = raced.scope()
    _unload(scope)
    stack.enter_context(_without_pytest_loader())
    stack.enter_context(woven(scope))
    if raced.kind == "script":
        return _script_program(raced)
    if raced.kind == "test":
        # Imported here: pytest is optional.
        from swarmtest.race.pytest_program import pytest_program

        return pytest_program(raced.reference)
    return function_program(load_object(raced.reference, "function", callable), raced.reference)


def function_program(function: Any, name: str) -> Program:
    """Return a function that needs no arguments as a program."""
    if not callable(function):
        raise UserError(f"{name} is not a function: a {type(function).__name__}")
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise UserError(
            f"{name} needs arguments ({', '.join(needed)}): race a function without arguments, "
            "that starts the threads and checks the outcome; or name it test_... to get fixtures"
        )
    if inspect.iscoroutinefunction(function):
        return lambda: asyncio.run(function())
    program: Program = function
    return program


def _script_program(raced: RacedProgram) -> Program:
    path = Path(raced.path).resolve()
    coverage = installed_coverage()
    covering_loader = coverage.loader_of("__main__", str(path)) if coverage is not None else None
    try:
        code = WeavingLoader("__main__", str(path), covering_loader).get_code("__main__")
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{raced.path}{line}: {error.msg}") from None
    sys.path.insert(0, str(path.parent))

    def run() -> None:
        module = types.ModuleType("__main__")
        module.__file__ = str(path)
        sys.modules["__main__"] = module
        sys.argv = [raced.path]
        prepare(module.__dict__)
        exec(code, module.__dict__)

    return run


@contextmanager
def _without_pytest_loader() -> Iterator[None]:
    """Disable pytest's loader for test modules, which would load them without probes."""
    removed = [finder for finder in sys.meta_path if type(finder).__module__.startswith("_pytest.")]
    for finder in removed:
        sys.meta_path.remove(finder)
    try:
        yield
    finally:
        # Only these: others may have been added or removed since.
        sys.meta_path[:0] = removed


def _unload(scope: Scope) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and file and scope.may_choose(name) and scope.chooses(name, file):
            del sys.modules[name]


# Tests of pytest.
