"""``--swarm-coverage``: measure what each test of a suite reaches, and write it to a file.

The file's suffix chooses its format: ``.json`` (targets, and for each test the targets it hit),
``.lcov``, ``.xml`` (Cobertura), or ``.coverage`` (a coverage.py data file with a context per test).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from swarmtest.pytest_plugin.item import SwarmItem
from swarmtest.pytest_plugin.options import with_our_options

if TYPE_CHECKING:
    from swarmtest.coverage.totals import SuiteCoverage
    from swarmtest.coverage.watch import Coverage

WATCHING: pytest.StashKey[Coverage] = pytest.StashKey()
"""The coverage of the program, for machines whose tests are aimed at changes."""


def watch(early_config: pytest.Config) -> None:
    """Start to measure coverage if the command line asks for it."""
    options = early_config.known_args_namespace
    focused = getattr(options, "swarm_focus", None) is not None
    if getattr(options, "swarm_coverage", None) is None:
        if focused:
            _watch_for_focus(early_config, options.swarm_cover)
        elif getattr(options, "swarm_cover", None):
            raise pytest.UsageError(
                "--swarm-cover needs --swarm-coverage: say what to measure, "
                "like --swarm-coverage line"
            )
        return
    from swarmtest.core.errors import UserError
    from swarmtest.coverage.interchange.formats import format_of
    from swarmtest.coverage.totals import SuiteCoverage

    try:
        format_of(options.swarm_coverage_file)
        suite = SuiteCoverage(options.swarm_coverage, options.swarm_cover)
    except UserError as error:
        raise pytest.UsageError(with_our_options(str(error))) from None
    early_config.pluginmanager.register(_Watcher(suite, options.swarm_coverage_file))


def _watch_for_focus(early_config: pytest.Config, cover: list[str]) -> None:
    """Measure line coverage in this process, and so in the forks that run machines."""
    from swarmtest.core.errors import UserError
    from swarmtest.coverage.watch import Coverage

    try:
        early_config.stash[WATCHING] = Coverage("line", cover).install()
    except UserError as error:
        raise pytest.UsageError(with_our_options(str(error))) from None


class _Watcher:
    """The plugin that collects the hits of each test and writes them at the end.

    Under pytest-xdist, a worker's hits are sent with the last report of each test.
    """

    def __init__(self, suite: SuiteCoverage, file: str) -> None:
        self._suite = suite
        self._file = file
        self._ended = False
        self._elsewhere: list[str] = []
        """Tests that ran in processes of their own, where coverage is not measured."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Collect the hits of one test, including its fixtures."""
        self._suite.begin()
        self._ended = _runs_elsewhere(item)
        try:
            return (yield)
        finally:
            if not self._ended:
                self._suite.end(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """End a test at the report of its teardown, the last one before reports are sent."""
        report = yield
        if call.when == "teardown":
            if _runs_elsewhere(item):
                report.swarm_elsewhere = True
            else:
                self._suite.end(item.nodeid)
            self._ended = True
            if hasattr(item.config, "workeroutput"):
                report.swarm_coverage = self._suite.report()
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Under pytest-xdist, merge what a worker's test reached, or note that the worker died."""
        if vars(report).get("swarm_elsewhere"):
            self._elsewhere.append(report.nodeid)
        hits = vars(report).get("swarm_coverage")
        if hits is not None and hasattr(report, "node"):
            self._suite.merge(hits)
            del report.swarm_coverage
        elif report.when == "???":
            self._suite.lose(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Under pytest-xdist, merge what a worker sends when it ends."""
        hits = getattr(node, "workeroutput", {}).get("swarm_coverage")
        if hits is not None:
            self._suite.merge(hits)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file; a worker of pytest-xdist sends its hits to its controller instead."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["swarm_coverage"] = self._suite.report()
        else:
            self._suite.write(self._file)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show a summary line, and a line for each thing that could not be measured."""
        terminalreporter.write_line(f"swarmtest: {self._suite.summary()} -> {self._file}")
        for problem in self._suite.problems():
            terminalreporter.write_line(f"swarmtest: {with_our_options(problem)}")
        for name in self._elsewhere:
            terminalreporter.write_line(
                f"swarmtest: coverage of {name} is missing: its tests run in processes of their "
                "own; --swarm-workers 0 runs them in this one"
            )


def _runs_elsewhere(item: pytest.Item) -> bool:
    return isinstance(item, SwarmItem) and item.plan().workers > 0
