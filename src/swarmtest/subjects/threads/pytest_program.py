"""A test of pytest as a program: its fixtures are set up and torn down around each run."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from _pytest.tmpdir import tmppath_result_key

from swarmtest.errors import UserError

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
