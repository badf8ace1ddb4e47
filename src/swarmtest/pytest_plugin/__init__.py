"""The pytest plugin: runs machines and other subjects as tests, and measures coverage per test.

    pytest --swarm-tests 5000 --swarm-seed 7
    pytest --swarm-focus=main
    pytest --race
    pytest --swarm-coverage line,branch --swarm-cover shop --swarm-coverage-file coverage.json

A suite without machines must not notice that the plugin is installed: only these small modules of
swarmtest are imported before there is something to run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.formatting import printable, printable_line
from swarmtest.pytest_plugin.coverage import watch
from swarmtest.pytest_plugin.item import (
    SwarmFile,
    describes_a_subject,
    focus_lines,
    forgiven_lines,
    item_of,
    tests_and_faults,
)
from swarmtest.pytest_plugin.options import MARKER, add_options, settings_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the import hooks before anything of the program is imported."""
    watch(early_config)
    if getattr(early_config.known_args_namespace, "race", False):
        from swarmtest.pytest_plugin.race import race

        race(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Reject invalid options before anything runs."""
    config.addinivalue_line("markers", MARKER)
    settings_of(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Show the seed, without which a run cannot be repeated."""
    settings = settings_of(config)
    return f"swarmtest: {settings.seed_in_words}" if settings.collects else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give workers of pytest-xdist the controller's seed, which may be random."""
    node.workerinput["swarm_seed"] = settings_of(node.config).seed


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Item | list[pytest.Item] | None:
    """Collect a machine or another subject that a test module defines."""
    return item_of(collector, name, obj) if isinstance(collector, pytest.Module) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a subject that is described in a TOML file."""
    if file_path.suffix == ".toml" and settings_of(parent.config).collects:
        named_by_user = parent.session.isinitpath(file_path)
        if describes_a_subject(file_path, named_by_user):
            return SwarmFile.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show how many tests the campaigns ran; pytest counts each campaign as one test."""
    line = tests_and_faults(terminalreporter)
    if line and terminalreporter.verbosity >= 0:
        terminalreporter.write_line(printable(f"swarmtest: {line}"))
        for more in [*focus_lines(terminalreporter), *forgiven_lines(terminalreporter)]:
            terminalreporter.write_line(printable_line(f"swarmtest: {more}"))
