"""pytest plugin: what each test of a suite reaches.

    pytest --swarm-coverage line,branch --swarm-cover shop --swarm-coverage-file coverage.json

The file's ending chooses its format: ``.json`` (targets, and for each test the targets it hit),
``.lcov``, ``.xml`` (Cobertura), anything else a coverage.py data file with a context per test.
"""

from __future__ import annotations

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
    if not getattr(options, "swarm_coverage", None):
        return
    from swarmtest.errors import UserError
    from swarmtest.instrument.session import SuiteCoverage

    try:
        suite = SuiteCoverage(options.swarm_coverage, options.swarm_cover)
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
    early_config.pluginmanager.register(_Watcher(suite, options.swarm_coverage_file))


class _Watcher:
    """Takes the hits of each test, and writes them at the end."""

    def __init__(self, suite: SuiteCoverage, file: str) -> None:
        self._suite = suite
        self._file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Around one test, its fixtures included."""
        self._suite.begin()
        try:
            return (yield)
        finally:
            self._suite.end(item.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Under pytest-xdist: a worker tells what its tests reached."""
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
            terminalreporter.write_line(f"swarmtest: {problem}")
