"""A pytest plugin for the study of packages' suites: verdicts to a file, and nothing random.

Two runs of one suite are compared, so that random tests draw the same numbers in both, and time
plays no role in Hypothesis.
"""

from __future__ import annotations

import gc
import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest

verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--verdicts", help="file for the verdict of each test")


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("_hypothesis_pytestplugin"):
        return
    from hypothesis import HealthCheck, settings

    # Suites that choose a profile of their own do so in a conftest.py, before this.
    profile = settings(
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.register_profile("study", profile)
    settings.load_profile("study")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(0)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        verdicts[report.nodeid]["collection failed"] += 1


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The three phases of a test, and its subtests, each with how often it ended how."""
    expected = " (xfail)" if hasattr(report, "wasxfail") else ""
    verdicts[report.nodeid][f"{report.when} {report.outcome}{expected}"] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    # Finalizers of what is left run now: coverage.py looks on until the process ends, swarmtest
    # until the session does.
    gc.collect()
    if file := session.config.getoption("--verdicts"):
        Path(file).write_text(json.dumps(verdicts, sort_keys=True))
