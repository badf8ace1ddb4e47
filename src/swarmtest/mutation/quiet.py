"""Running a pytest test as pytest does, without what it only does for those who read along.

Fixtures, marks, warnings and the hooks of all plugins take part as ever. Left out are the reports
that pytest's own plugins would write; and what a test prints and logs is caught once around it, not
anew for its setup, call and teardown. Tests that ask for what they printed or logged, or that
another plugin runs, are not for this: `suits` says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

_CATCHING = ("capturemanager", "logging-plugin")
_CAUGHT = frozenset({"caplog", "capsys", "capsysbinary", "capteesys", "capfd", "capfdbinary"})
_SHOWING = ("setuponly", "setupshow", "usepdb")

When = Literal["setup", "call", "teardown"]
Told = Callable[[str], None]
"""Told how a setup, call or teardown ended."""


class QuietRuns:
    """Runs items of a session; `reader` is the plugin that would read reports."""

    def __init__(self, session: pytest.Session, reader: object) -> None:
        self._plugins = session.config.pluginmanager
        self._reader = reader
        self._catching = [*filter(None, map(self._plugins.getplugin, _CATCHING))]
        self._shown = any(session.config.getoption(name, False) for name in _SHOWING)
        self._hooks: dict[frozenset[int], _Hooks] = {}

    def suits(self, item: pytest.Item) -> bool:
        """Whether an item ends here as it does in pytest's own way."""
        if self._shown or not _CAUGHT.isdisjoint(getattr(item, "fixturenames", ())):
            return False
        runs = item.ihook.pytest_runtest_protocol.get_hookimpls()
        return not any(
            _is_foreign(impl.plugin) and impl.plugin is not self._reader
            for impl in runs
            if not (impl.wrapper or impl.hookwrapper)
        )

    def run(self, item: pytest.Item, after: pytest.Item | None, told: Told) -> None:
        """What a test does between the wrappers of ``pytest_runtest_protocol``."""
        hooks = self._hooks_of(item)
        has_request = hasattr(item, "_request")
        if has_request and not item._request:  # type: ignore[attr-defined]
            item._initrequest()  # type: ignore[attr-defined]
        hooks.start(nodeid=item.nodeid, location=item.location)
        try:
            with hooks.caught(item):
                if hooks.stage(item, "setup", told):
                    hooks.stage(item, "call", told)
                stops = item.session.shouldfail or item.session.shouldstop
                hooks.stage(item, "teardown", told, nextitem=None if stops else after)
        finally:
            if has_request:
                item._request = False  # type: ignore[attr-defined]
                item.funcargs = None  # type: ignore[attr-defined]
        hooks.finish(nodeid=item.nodeid, location=item.location)

    def _hooks_of(self, item: pytest.Item) -> _Hooks:
        """Items of different directories may have different plugins."""
        conftests = item.ihook
        absent = frozenset(map(id, getattr(conftests, "remove_mods", ())))
        if absent not in self._hooks:
            self._hooks[absent] = _Hooks(self._plugins, conftests, self._catching, self._reader)
        return self._hooks[absent]


class _Hooks:
    """The hooks of a test, without the plugins that are not needed in each."""

    def __init__(
        self,
        plugins: pytest.PytestPluginManager,
        conftests: Any,
        catching: list[object],
        reader: object,
    ) -> None:
        absent = [*getattr(conftests, "remove_mods", ())]
        own = [one for one in plugins.get_plugins() if one is reader or not _is_foreign(one)]
        self._stages = {
            when: plugins.subset_hook_caller(f"pytest_runtest_{when}", [*absent, *catching])
            for when in ("setup", "call", "teardown")
        }

        def of_others(name: str) -> Callable[..., Any]:
            hook = plugins.subset_hook_caller(name, [*absent, *own])
            return hook if hook.get_hookimpls() else _nothing

        self.start = of_others("pytest_runtest_logstart")
        self.finish = of_others("pytest_runtest_logfinish")
        self._tell_others = of_others("pytest_runtest_logreport")
        self._interact = of_others("pytest_exception_interact")
        self._report = conftests.pytest_runtest_makereport
        self._reraised = (pytest.exit.Exception, KeyboardInterrupt)
        self._catchers: list[Callable[..., Any]] = [
            impl.function
            for impl in plugins.hook.pytest_runtest_setup.get_hookimpls()
            if impl.plugin in catching
        ]

    @contextlib.contextmanager
    def caught(self, item: pytest.Item) -> Iterator[None]:
        """What pytest does around the setup of a test to catch output, done around all of it."""
        around = [catch(item) for catch in self._catchers]
        for one in around:
            next(one)
        try:
            yield
        finally:
            for one in reversed(around):
                next(one, None)

    def stage(self, item: pytest.Item, when: When, told: Told, **more: object) -> bool:
        """Run a part of a test; whether it passed."""
        hook = self._stages[when]
        call = pytest.CallInfo.from_call(
            lambda: hook(item=item, **more), when=when, reraise=self._reraised
        )
        report = self._report(item=item, call=call)
        told(report.outcome)
        self._tell_others(report=report)
        if report.failed and not hasattr(report, "wasxfail"):
            self._interact(node=item, call=call, report=report)
        passed: bool = report.passed
        return passed


def _nothing(**_: object) -> None:
    """Nobody listens."""


def _is_foreign(plugin: object) -> bool:
    """Whether a plugin is not one of pytest's own."""
    module = getattr(plugin, "__name__", None) or type(plugin).__module__
    return not str(module).startswith("_pytest.")
