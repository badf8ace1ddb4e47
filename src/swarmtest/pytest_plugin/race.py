"""``pytest --race``: run each test that starts threads again, under many schedules.

The program and the tests get probes when they are imported. A test that passes and has started a
thread is raced in a fork of this process, so that it leaves nothing behind; its fixtures are set up
again for each run.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import importlib.util
import json
import re
import sys
import threading
import time
from asyncio.base_events import BaseEventLoop
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook, rewrite_asserts

from swarmtest.campaign.budget import parse_seconds
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import printable
from swarmtest.core.result import Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, trial_key
from swarmtest.coverage.import_hook import Hook
from swarmtest.coverage.scope import parse_scope
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.pytest_plugin.item import forking
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.primitives.patches import installed
from swarmtest.race.pytest_program import item_program, tear_down
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import SECONDS, RacedProgram
from swarmtest.race.subject import ThreadsSubject
from swarmtest.race.timeline import timeline_text
from swarmtest.race.weaving.weaver import WeavingLoader, weave_tree
from swarmtest.strategies.strategy import parse_strategy

_TESTS, _TIME = 200, "2s"
_PATIENCE = 70.0
"""Seconds for explaining a race."""
_RACED: pytest.StashKey[list[Any]] = pytest.StashKey()
_SAVED = Path(".swarmtest", "races")


@dataclass(frozen=True)
class RacedTest:
    """The result of racing a test."""

    runs: int
    fault: str = ""
    """The id of the fault; empty if there was none."""
    test: RaceTest | None = None
    """The smallest test that shows the fault, explained."""
    problem: str = ""
    """Why the test could not be raced, or its fault not be explained; otherwise empty."""
    signature: str = ""
    """The signature of a fault that could not be explained."""


def race_item(item: pytest.Function, tests: int, seconds: float, seed: int) -> RacedTest:
    """Run a test, whose fixtures are set up, under schedules until it fails or the time is up.

    It runs in the calling process.
    """
    tear_down(item)
    path, _, name = item.nodeid.partition("::")
    target = RacedProgram(path, name, seconds=min(SECONDS, max(seconds, 1.0)))
    subject = ThreadsSubject(target, item_program(item))
    first = subject.racer.scheduled(RandomWalk(seed))
    if first.problem:
        return RacedTest(1, problem=first.problem)
    strategy = parse_strategy("coin")
    deadline = time.monotonic() + seconds
    stream = Stream(seed)
    runs = 0
    while runs < tests and time.monotonic() < deadline:
        stream.rekey(trial_key(seed, runs))
        answer = strategy.ask(subject.space, runs, stream)
        configuration = answer.configuration if isinstance(answer, Proposal) else answer
        result = subject.execute(configuration, runs)
        runs += 1
        if result.verdict == Verdict.INVALID:
            return RacedTest(runs, problem=result.missing)
        if result.fault is not None:
            try:
                small = subject.explained(RaceTest.from_json(result.test))
            except UserError as error:
                test, signature = RaceTest.from_json(result.test), result.fault.signature
                return RacedTest(runs, result.fault.id, test, str(error), signature)
            return RacedTest(runs, result.fault.id, small)
    return RacedTest(runs)


def race(early_config: pytest.Config) -> None:
    """Install probes and register the plugin that races tests, with the command line's options."""
    options = early_config.known_args_namespace
    try:
        racing = RacePlugin(
            int(options.race_tests or _TESTS),
            parse_seconds(options.race_time or _TIME),
            int(options.race_seed or 0),
        )
        scope = parse_scope(options.race_cover, str(early_config.invocation_params.dir))
    except (UserError, ValueError) as error:
        raise pytest.UsageError(f"--race: {error}") from None

    def loader_for(spec: ModuleSpec) -> Loader | None:
        if spec.origin is None or not spec.origin.endswith(".py"):
            return None
        is_test = isinstance(spec.loader, AssertionRewritingHook)
        return _Loader(spec.name, spec.origin, early_config if is_test else None)

    early_config.add_cleanup(_install(Hook(scope, loader_for)).close)
    early_config.pluginmanager.register(racing)


def _install(hook: Hook) -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    stack.enter_context(installed())
    sys.meta_path.insert(0, hook)
    stack.callback(sys.meta_path.remove, hook)
    return stack


class _Loader(WeavingLoader):
    """A loader that adds probes; in a test module, it also rewrites asserts as pytest does."""

    def __init__(self, name: str, path: str, config: pytest.Config | None) -> None:
        super().__init__(name, path)
        self._config = config

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code."""
        if self._config is None:
            return super().get_code(fullname)
        path = self.get_filename(fullname)
        data = self.get_data(path)
        tree = ast.parse(importlib.util.decode_source(data), path)
        rewrite_asserts(tree, data, path, self._config)
        _add_end_positions(tree)
        return weave_tree(tree, path)


def _add_end_positions(tree: ast.AST) -> None:
    """Add end positions to the nodes that pytest adds, which have only start positions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr) and getattr(node, "end_lineno", None) is None:
            node.end_lineno = getattr(node, "lineno", 1)
            node.end_col_offset = getattr(node, "col_offset", 0)


class RacePlugin:
    """The plugin that runs tests that start threads again.

    The result of a test is sent with its report, which also works under pytest-xdist.
    """

    def __init__(self, tests: int, seconds: float, seed: int) -> None:
        self._tests = tests
        self._seconds = seconds
        self._seed = seed
        self._runs: list[int] = []
        self._notes: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Race a test that has passed and has started threads, or tasks of asyncio."""
        with _counted_starts() as starts:
            answer = yield
        if starts and isinstance(item, pytest.Function):
            self._race(item)
        return answer

    def _race(self, item: pytest.Function) -> None:
        limit = 2 * self._seconds + _PATIENCE

        def search() -> RacedTest:
            return race_item(item, self._tests, self._seconds, self._seed)

        try:
            with forking():
                result = in_fork(search, limit)
        except (NoAnswer, UserError) as error:
            result = RacedTest(0, problem=str(error))
        unraced = result.problem and result.test is None
        note = f"{item.nodeid}: {result.problem}" if unraced else ""
        item.stash[_RACED] = [result.runs, note]
        if result.test is not None:
            pytest.fail(printable(_report(item, result)), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Add the result of racing a test to its report."""
        report = yield
        if call.when == "call" and _RACED in item.stash:
            report.swarm_raced = item.stash[_RACED]
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Collect the result of racing a test."""
        runs, note = vars(report).get("swarm_raced", (0, ""))
        self._runs += [runs] if runs else []
        self._notes += [note] if note else []

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show how many tests were raced, and which could not be."""
        raced = len(self._runs)
        tests = f"{raced} test{'s' * (raced != 1)}"
        terminalreporter.write_line(
            f"swarmtest: raced {tests} with threads: {sum(self._runs)} runs"
        )
        for note in self._notes:
            terminalreporter.write_line(printable(f"swarmtest: {note}"))


@contextlib.contextmanager
def _counted_starts() -> Iterator[list[str]]:
    """Collect the names of the threads, and of the tasks in tasks, that are started meanwhile."""
    started: list[str] = []
    original = threading.Thread.start
    create_task = BaseEventLoop.create_task

    def start(thread: threading.Thread) -> None:
        started.append(thread.name)
        original(thread)

    def create(loop: BaseEventLoop, coroutine: Any, **options: Any) -> Any:
        task = create_task(loop, coroutine, **options)
        if loop.is_running() and asyncio.current_task(loop) is not None:
            started.append(task.get_name())
        return task

    threading.Thread.start = start  # type: ignore[assignment,method-assign]
    BaseEventLoop.create_task = create  # type: ignore[assignment,method-assign]
    try:
        yield started
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]
        BaseEventLoop.create_task = create_task  # type: ignore[method-assign]


def _file_name(nodeid: str, fault: str) -> str:
    """Return the name of the file of a race; each parametrisation of a test has its own."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", nodeid.rpartition("::")[2]).strip("-")[:40]
    number = hashlib.blake2b(nodeid.encode(), digest_size=2).hexdigest()
    return f"{name}-{number}-{fault}.json"


def _report(item: pytest.Item, result: RacedTest) -> str:
    """Save the test that shows a race, and return the text of the failure."""
    assert result.test is not None
    file = item.config.rootpath / _SAVED / _file_name(item.nodeid, result.fault)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result.test.to_json(), indent=1) + "\n")
    commands = [
        f"replay: swarmtest replay {file.relative_to(item.config.rootpath)}",
        f"more: swarmtest race {item.nodeid}",
    ]
    explanation = result.test.explanation
    if explanation is None:
        seen = f"it failed in run {result.runs}: {result.signature}"
        return "\n".join([seen, f"not explained: {result.problem}", *commands])
    picture = timeline_text(explanation, 92)
    seen = f"a race in run {result.runs}: {explanation.signature}"
    return "\n".join([seen, explanation.truth, "", picture, "", *commands])
