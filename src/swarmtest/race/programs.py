"""Load the program that a target names, as a function that can be called again and again.

The program is a function without arguments, a script, or a test of pytest, whose fixtures are set
up and torn down around each run. Its code is loaded with probes.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from _pytest.tmpdir import tmppath_result_key

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import Scope
from swarmtest.coverage.watch import installed_coverage
from swarmtest.languages.user_objects import load_object
from swarmtest.race.primitives.policy import prepare
from swarmtest.race.target import Target
from swarmtest.race.weaving.weaver import WeavingLoader, woven

Program = Callable[[], object]


def load_program(target: Target, stack: ExitStack) -> Program:
    """Return the program of a target; probes and primitives stay until the stack is closed.

    Call it in the process that runs the program. Modules that were loaded without probes are loaded
    again.
    """
    scope = target.scope()
    _unload(scope)
    stack.enter_context(_without_pytest_loader())
    stack.enter_context(woven(scope))
    if target.kind == "script":
        return _script_program(target)
    if target.kind == "test":
        return pytest_program(target.reference)
    return function_program(load_object(target.reference, "function", callable), target.reference)


def function_program(found: Any, name: str) -> Program:
    """Return a function that needs no arguments as a program."""
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


def _script_program(target: Target) -> Program:
    path = Path(target.path).resolve()
    coverage = installed_coverage()
    covering_loader = coverage.loader_of("__main__", str(path)) if coverage is not None else None
    try:
        code = WeavingLoader("__main__", str(path), covering_loader).get_code("__main__")
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
def _without_pytest_loader() -> Iterator[None]:
    """Disable pytest's loader for test modules, which would load them without probes."""
    before = list(sys.meta_path)
    sys.meta_path[:] = [
        finder for finder in before if not type(finder).__module__.startswith("_pytest.")
    ]
    try:
        yield
    finally:
        sys.meta_path[:] = before


def _unload(scope: Scope) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and file and scope.may_choose(name) and scope.chooses(name, file):
            del sys.modules[name]


# Tests of pytest.

_PYTEST_ARGUMENTS = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--capture=no",
    "--assert=plain",
    "-q",
    "-o",
    "addopts=",
    "-o",
    "tmp_path_retention_policy=failed",
)


def pytest_program(node: str) -> Callable[[], object]:
    """Return the one test that a node id names, collected as pytest does it."""
    items = collected(node)
    if not items:
        raise UserError(f"{node}: pytest finds no such test")
    if len(items) > 1:
        names = ", ".join(item.name for item in items[:5])
        raise UserError(
            f"{node} names {len(items)} tests: choose one of {names}; or race each that starts "
            f"threads with `pytest --race {node}`"
        )
    return item_program(items[0])


def collected(node: str) -> list[pytest.Item]:
    """Return the tests that pytest finds under a node id."""
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        config = _prepareconfig([*_PYTEST_ARGUMENTS, node])
        config._do_configure()
        session = pytest.Session.from_config(config)
        config.hook.pytest_sessionstart(session=session)
        with contextlib.suppress(pytest.UsageError):
            config.hook.pytest_collection(session=session)
    errors = _collection_errors(session)
    if errors and not session.items:
        raise UserError(f"{node} cannot be collected: {errors[0]}")
    return list(session.items)


def _collection_errors(session: pytest.Session) -> list[str]:
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    reports = reporter.stats.get("error", []) if reporter else []
    return [str(report.longrepr).strip().splitlines()[-1] for report in reports]


def item_program(item: pytest.Item) -> Callable[[], object]:
    """Return a collected test as a program; fixtures of wider scope are set up once, before it."""
    if inspect.iscoroutinefunction(getattr(item, "obj", None)):
        raise UserError(
            f"{item.nodeid} is an async test: asyncio runs in one thread: there is nothing to "
            "schedule"
        )
    try:
        _set_up(item)
    except pytest.skip.Exception as skip:
        raise UserError(f"{item.nodeid} is skipped: {skip}") from None
    finally:
        torn_down(item)

    def run() -> None:
        try:
            _set_up(item)
            _call_test(item)
        except pytest.skip.Exception:
            pass
        except pytest.fail.Exception as failure:
            raise AssertionError(str(failure)) from None
        finally:
            torn_down(item)

    return run


def _call_test(item: pytest.Item) -> None:
    """Call the test function directly, so that no frames of pytest appear in its traceback."""
    if type(item) is not pytest.Function:
        item.runtest()
        for failure in item.__dict__.pop("_excinfo", None) or ():  # where a TestCase leaves it
            raise failure.value
        return
    names = item._fixtureinfo.argnames
    item.obj(**{name: item.funcargs[name] for name in names})


def _set_up(item: Any) -> None:
    if hasattr(item, "_initrequest"):
        item._initrequest()
    # Pytest then removes the test's temporary directories although there is no report of it.
    item.stash[tmppath_result_key] = {}
    item.ihook.pytest_runtest_setup(item=item)


def torn_down(item: Any) -> None:
    """Tear down a test's own fixtures, and leave those that other tests share."""
    item.session._setupstate.teardown_exact(_NextTest(item))


class _NextTest:
    """A stand-in for the next test to run, which makes pytest keep the wider fixtures."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def listchain(self) -> list[Any]:
        """Return the chain of the nodes that contain the test."""
        assert self._item.parent is not None
        return self._item.parent.listchain()
