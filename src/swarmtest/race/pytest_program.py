"""Run a test of pytest as a program whose threads are controlled.

Its fixtures are set up and torn down around each run.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from _pytest.tmpdir import tmppath_result_key

from swarmtest.core.errors import UserError

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
    items = collect_tests(node)
    if not items:
        raise UserError(f"{node}: pytest finds no such test")
    if len(items) > 1:
        names = ", ".join(item.name for item in items[:5])
        raise UserError(
            f"{node} names {len(items)} tests: choose one of {names}; or race each that starts "
            f"threads with `pytest --race {node}`"
        )
    return item_program(items[0])


def collect_tests(node: str) -> list[pytest.Item]:
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
    try:
        _set_up(item)
    except pytest.skip.Exception as skip:
        raise UserError(f"{item.nodeid} is skipped: {skip}") from None
    finally:
        tear_down(item)

    def run() -> None:
        try:
            _set_up(item)
            _call_test(item)
        except pytest.skip.Exception:
            pass
        except pytest.fail.Exception as failure:
            raise AssertionError(str(failure)) from None
        finally:
            tear_down(item)
            _drop_closed_runner()

    return run


def _drop_closed_runner() -> None:
    """Make anyio's plugin forget its event loop, if the end of a run kept it from doing so.

    A run that is decided ends wherever its threads are, also while the plugin closes its loop. The
    next run would get the closed loop.
    """
    plugin: Any = sys.modules.get("anyio.pytest_plugin")
    if plugin is not None and not getattr(plugin, "_runner_leases", 1):
        plugin._current_runner = plugin._runner_stack = None


def _call_test(item: pytest.Item) -> None:
    """Call the test function directly, so that no frames of pytest appear in its traceback."""
    is_async = inspect.iscoroutinefunction(getattr(item, "obj", None))
    if is_async and item.get_closest_marker("anyio"):
        item.ihook.pytest_pyfunc_call(pyfuncitem=item)
        return
    if type(item) is not pytest.Function:
        item.runtest()
        for failure in item.__dict__.pop("_excinfo", None) or ():  # where a TestCase leaves it
            raise failure.value
        return
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    if is_async:
        asyncio.run(item.obj(**arguments))
    else:
        item.obj(**arguments)


def _set_up(item: Any) -> None:
    if hasattr(item, "_initrequest"):
        item._initrequest()
    # Pytest then removes the test's temporary directories although there is no report of it.
    item.stash[tmppath_result_key] = {}
    item.ihook.pytest_runtest_setup(item=item)


def tear_down(item: Any) -> None:
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
