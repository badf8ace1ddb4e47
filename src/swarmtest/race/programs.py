"""A test of pytest as a program: its fixtures are set up and torn down around each run."""

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

# -------------------------------------------------------------------------------------------------
# From a target to a function that can be called again and again, with probes in its code.

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


# -------------------------------------------------------------------------------------------------

_ARGUMENTS = (
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
    """The one test that a node id names, collected as pytest does it."""
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
    """The tests that pytest finds under a name."""
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        config = _prepareconfig([*_ARGUMENTS, node])
        config._do_configure()
        session = pytest.Session.from_config(config)
        config.hook.pytest_sessionstart(session=session)
        with contextlib.suppress(pytest.UsageError):
            config.hook.pytest_collection(session=session)
    failed = _failures(session)
    if failed and not session.items:
        raise UserError(f"{node} cannot be collected: {failed[0]}")
    return list(session.items)


def _failures(session: pytest.Session) -> list[str]:
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    reports = reporter.stats.get("error", []) if reporter else []
    return [str(report.longrepr).strip().splitlines()[-1] for report in reports]


def item_program(item: pytest.Item) -> Callable[[], object]:
    """A collected test as a program; fixtures of wider scope are set up once, before it."""
    if inspect.iscoroutinefunction(getattr(item, "obj", None)):
        raise UserError(
            f"{item.nodeid} is an async test: asyncio runs in one thread: there is nothing to "
            "schedule"
        )
    try:
        _set_up(item)
    except pytest.skip.Exception as skipped:
        raise UserError(f"{item.nodeid} is skipped: {skipped}") from None
    finally:
        torn_down(item)

    def run() -> None:
        try:
            _set_up(item)
            _call(item)
        except pytest.skip.Exception:
            pass
        except pytest.fail.Exception as failed:
            raise AssertionError(str(failed)) from None
        finally:
            torn_down(item)

    return run


def _call(item: pytest.Item) -> None:
    """Call the test itself: frames of pytest are no part of what it shows."""
    if type(item) is not pytest.Function:
        item.runtest()
        for failed in item.__dict__.pop("_excinfo", None) or ():  # where a TestCase leaves it
            raise failed.value
        return
    names = item._fixtureinfo.argnames
    item.obj(**{name: item.funcargs[name] for name in names})


def _set_up(item: Any) -> None:
    if hasattr(item, "_initrequest"):
        item._initrequest()
    item.stash[tmppath_result_key] = {}  # without a report of the test, its directories go
    item.ihook.pytest_runtest_setup(item=item)


def torn_down(item: Any) -> None:
    """Tear down a test's own fixtures, and leave those that others share."""
    item.session._setupstate.teardown_exact(_Sibling(item))


class _Sibling:
    """The test that comes next, as pytest is told: wider fixtures are still needed."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def listchain(self) -> list[Any]:
        """Where it is: beside the test."""
        assert self._item.parent is not None
        return self._item.parent.listchain()
