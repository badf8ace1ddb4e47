"""pytest plugin: what each test of a suite reaches.

    pytest --swarm-coverage line,branch --swarm-cover shop --swarm-coverage-file coverage.json

The file's ending chooses its format: ``.json`` (targets, and for each test the targets it hit),
``.lcov``, ``.xml`` (Cobertura), ``.coverage``: a coverage.py data file with a context per test.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from swarmtest.instrument.session import SuiteCoverage


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("swarmtest", "coverage per test, by swarmtest")
    group.addoption(
        "--swarm-coverage",
        metavar="KINDS",
        help="watch what each test reaches: line, block, branch, predicate, path, prime, du",
    )
    group.addoption(
        "--swarm-cover",
        action="append",
        default=[],
        metavar="NAME",
        help="a module, package or path to watch (again for more; default: what is here)",
    )
    group.addoption(
        "--swarm-coverage-file",
        metavar="FILE",
        default="swarm-coverage.json",
        help="where to write it: .json, .lcov, .xml or a coverage.py data file (%(default)s)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the import hook before anything of the program is imported."""
    options = early_config.known_args_namespace
    if getattr(options, "swarm_coverage", None) is None:
        if getattr(options, "swarm_cover", None):
            raise pytest.UsageError(
                "--swarm-cover goes with --swarm-coverage: say what to watch, "
                "like --swarm-coverage line"
            )
        return
    from swarmtest.errors import UserError
    from swarmtest.instrument.interchange.formats import format_of
    from swarmtest.instrument.session import SuiteCoverage

    try:
        format_of(options.swarm_coverage_file)
        suite = SuiteCoverage(options.swarm_coverage, options.swarm_cover)
    except UserError as error:
        raise pytest.UsageError(_with_our_options(str(error))) from None
    early_config.pluginmanager.register(_Watcher(suite, options.swarm_coverage_file))


def _with_our_options(text: str) -> str:
    """A message with the names that the command line's options have here.

    >>> _with_our_options("--cover tomly: no such module")
    '--swarm-cover tomly: no such module'
    """
    return re.sub(r"--(cover(age)?)\b", r"--swarm-\1", text)


class _Watcher:
    """Takes the hits of each test, and writes them at the end.

    Under pytest-xdist a worker's hits travel with the last report of each test.
    """

    def __init__(self, suite: SuiteCoverage, file: str) -> None:
        self._suite = suite
        self._file = file
        self._ended = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Around one test, its fixtures included."""
        self._suite.begin()
        self._ended = False
        try:
            return (yield)
        finally:
            if not self._ended:
                self._suite.end(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """The report of the teardown is the last that is made before others are told."""
        report = yield
        if call.when == "teardown":
            self._suite.end(item.nodeid)
            self._ended = True
            if hasattr(item.config, "workeroutput"):
                report.swarm_coverage = self._suite.told()
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Under pytest-xdist: what a worker's test reached, or that a worker died in it."""
        told = vars(report).get("swarm_coverage")
        if told is not None and hasattr(report, "node"):
            self._suite.merge(told)
            del report.swarm_coverage
        elif report.when == "???":
            self._suite.lose(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Under pytest-xdist: a worker that ends tells the rest."""
        told = getattr(node, "workeroutput", {}).get("swarm_coverage")
        if told is not None:
            self._suite.merge(told)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file; a worker of pytest-xdist tells its controller instead."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["swarm_coverage"] = self._suite.told()
        else:
            self._suite.write(self._file)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line on what was seen, and one for each thing that could not be."""
        terminalreporter.write_line(f"swarmtest: {self._suite.summary()} -> {self._file}")
        for problem in self._suite.problems():
            terminalreporter.write_line(f"swarmtest: {_with_our_options(problem)}")
