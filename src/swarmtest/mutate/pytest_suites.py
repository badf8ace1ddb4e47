"""Compute the kill matrix of a pytest suite: collect the tests once, then run them in forks.

pytest runs in its own process, so that nothing of the suite stays in ours. It collects the tests
and imports the program. Then our loop replaces pytest's loop over the tests: every test runs once
without a mutant, and each mutant is run with the tests that reach it, in the way that pytest runs
them, with fixtures, marks and plugins.

`QuietRuns` runs a test without the work that pytest does only for people who read along. Fixtures,
marks, warnings and the hooks of all plugins take part as usual. Left out are the reports that
pytest's own plugins would write, and output and logs are captured once around the whole test, not
separately for its setup, call and teardown. Tests that ask for what they printed or logged, and
tests that another plugin runs, are run by pytest itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import Scope
from swarmtest.mutate.baseline import Baseline, KillLimits
from swarmtest.mutate.generation import DrawnMutants, draw_mutants
from swarmtest.mutate.import_forks import Imports
from swarmtest.mutate.import_mutants import ImportMutantRunner
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.kills import Runner, Show
from swarmtest.mutate.loaded_files import live_files, named_sources
from swarmtest.mutate.mutation import Lines
from swarmtest.processes.fork_tasks import Tell, messages_with_output

if TYPE_CHECKING:
    import pytest

_OPTIONS = ("-q", "-pno:cacheprovider", "--assert=plain", "--capture=sys")
"""Plain assertions: their rewritten messages are not read here."""
_NOT_RUN = "not run"


class PytestTests:
    """The collected tests of a session; only those that pass without a mutant can be used."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = session.items
        self.names = [item.nodeid for item in session.items]
        self._outcomes: list[str] = []
        self._quiet = QuietRuns(session, self)
        self._suits: dict[pytest.Item, bool] = {}
        session.config.pluginmanager.register(self)

    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Return a report without text: making text costs more than most tests take."""
        import pytest

        assert call.when != "collect"
        if call.excinfo is None:
            return pytest.TestReport(item.nodeid, item.location, {}, "passed", None, call.when)
        if isinstance(call.excinfo.value, pytest.skip.Exception):
            return None
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", "", call.when)

    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test inside the wrappers of other plugins, or return None to let pytest do it."""
        if item not in self._suits:
            self._suits[item] = self._quiet.suits(item)
        if not self._suits[item]:
            return None
        self._quiet.run(item, nextitem, self._outcomes.append)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how the setup, call or teardown of a test went."""
        self._outcomes.append(report.outcome)

    def run(self, test: int, following: int | None) -> str:
        """Run a test; return ``passed``, ``failed``, ``skipped`` or ``not run``."""
        self._outcomes.clear()
        random.seed(self.names[test])
        item = self._items[test]
        after = None if following is None else self._items[following]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        others = [outcome for outcome in self._outcomes if outcome != "passed"]
        return others[0] if others else "passed" if self._outcomes else _NOT_RUN

    def finish(self) -> None:
        """Tear down the fixtures of modules and of the session."""
        self._session._setupstate.teardown_exact(None)

    def why_not(self, ended: str) -> str:
        """Return why a test cannot be used; empty if it can."""
        return "" if ended == "passed" else f"{ended} without a mutant"


def mutate_pytest(
    paths: Sequence[str],
    files: Sequence[str],
    *,
    operators: str | Collection[str] = "",
    lines: Lines | None = None,
    sample: int | None = None,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = True,
    seconds: float = 60.0,
    memory: int = 0,
    mutants_per_fork: int = 32,
    options: Sequence[str] = (),
    on_progress: Show | None = None,
) -> KillMatrix:
    """Return the kill matrix of the tests that pytest finds in `paths`, for mutants of `files`.

    A directory among `files` means the Python files in it that hold no tests.

    Tests that do not pass without a mutant cannot kill anything and are left out. `options` are
    more arguments for pytest. `mutants_per_fork` = 1 gives each mutant a process of its own, which
    costs more, but what one mutant leaves behind cannot affect another.

    >>> mutate_pytest(["tests"], [])
    Traceback (most recent call last):
    ...
    swarmtest.UserError: name the files to mutate: a suite does not say what it tests
    """
    try:
        import pytest  # noqa: F401
    except ImportError:
        raise UserError("a pytest suite needs pytest: pip install pytest") from None
    sources = named_sources(files)
    if not sources:
        raise UserError("name the files to mutate: a suite does not say what it tests")
    drawn = draw_mutants(sources, operators, lines, sample, seed)
    if not drawn.mutants:
        raise UserError(f"no mutant of {', '.join(files)} is left: choose other lines or operators")

    mutated = [source for source in sources if source.path in _paths(drawn)]
    paths_of_mutated = [os.path.realpath(source.place) for source in mutated]
    imports = Imports(Scope(places=tuple(paths_of_mutated)), paths_of_mutated)

    def collected(session: pytest.Session, tell: Tell) -> KillMatrix:
        runner = Runner(
            PytestTests(session),
            live_files(mutated),
            KillLimits(seconds, memory, mutants_per_fork),
            workers,
            ImportMutantRunner(imports, mutated),
        )
        runner.baseline.run()
        if not runner.originals:
            raise UserError(f"no test passes without a mutant: {_why(runner.baseline)}")
        show: Show = lambda done, count: tell((done, count))  # noqa: E731
        return runner.matrix(drawn.mutants, first_kill=first_kill, on_progress=show)

    arguments = [*_OPTIONS, *_without_coverage(), *options, *paths]
    return _run_pytest(arguments, imports, collected, on_progress).drawn_from(drawn)


def _without_coverage() -> list[str]:
    """Return the option that turns off pytest-cov, which would only take time here."""
    loads = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    return ["--no-cov"] if loads and importlib.util.find_spec("pytest_cov") else []


def _paths(drawn: DrawnMutants) -> set[str]:
    return {mutant.path for mutant in drawn.mutants}


def _why(baseline: Baseline) -> str:
    return "; ".join(f"{len(names)} {why}" for why, names in baseline.left_out.items())


class _Loop:
    """A plugin that replaces pytest's loop over the tests.

    It is registered last, and pytest asks the plugins that are registered last first.
    """

    def __init__(
        self, imports: Imports, collected: Callable[[pytest.Session, Tell], KillMatrix], tell: Tell
    ) -> None:
        self._imports = imports
        self._collected = collected
        self._tell = tell

    def pytest_configure(self, config: pytest.Config) -> None:
        """Turn off pytest-xdist: tests run in this process and its forks."""
        if hasattr(config.option, "dist"):
            config.option.dist, config.option.tx = "no", []

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Compute the kill matrix of the collected tests; pytest regards the loop as done."""
        self._imports.arrived(lambda _: (PytestTests(session), not session.testsfailed))
        if session.testsfailed:
            return None  # pytest reports what is wrong, and ends
        answer: KillMatrix | UserError
        try:
            answer = self._collected(session, self._tell)
        except UserError as error:
            answer = error
        finally:
            self._imports.end()
        self._tell(answer)  # must come last: the process that reads it ends this one
        return True


def _run_pytest(
    arguments: list[str],
    imports: Imports,
    collected: Callable[[pytest.Session, Tell], KillMatrix],
    on_progress: Show | None,
) -> KillMatrix:
    """Run pytest in its own process, which reports its progress and then the kill matrix."""

    def run(tell: Tell) -> None:
        import pytest

        sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
        with imports.watched():
            pytest.main(arguments, plugins=[_Loop(imports, collected, tell)])

    with tempfile.TemporaryFile() as output:
        for message in messages_with_output(run, output.fileno()):
            if isinstance(message, KillMatrix):
                return message
            if isinstance(message, UserError):
                raise message
            if on_progress is not None:
                on_progress(*message)
        output.seek(0)
        printed = [line for line in output.read().decode(errors="replace").splitlines() if line]
    raise UserError(f"pytest failed before it ran a test: {_error_line(printed)}")


def _error_line(printed: list[str]) -> str:
    """Return one line that says what is wrong, from all lines that pytest printed."""
    _, is_usage, error = "\n".join(printed).partition("pytest.main(): error: ")
    if is_usage:
        return f"{error.splitlines()[0]} (`--pytest-option=-oaddopts=`: without the project's own)"
    where = [line for line in printed if line.startswith("ERROR")]
    why = [line.removeprefix("E").strip() for line in printed if line.startswith("E  ")]
    return ": ".join([*where[-1:], *why[-1:]]) or (printed or ["it ended"])[-1]


# Running a test as pytest does, without reports.

_CAPTURING_PLUGINS = ("capturemanager", "logging-plugin")
_CAPTURE_FIXTURES = frozenset(
    {"caplog", "capsys", "capsysbinary", "capteesys", "capfd", "capfdbinary"}
)
_INTERACTIVE_OPTIONS = ("setuponly", "setupshow", "usepdb")

When = Literal["setup", "call", "teardown"]
TellOutcome = Callable[[str], None]
"""Called with how a setup, call or teardown ended."""


class QuietRuns:
    """Runs items of a session without reports; `reader` is the plugin that reads outcomes."""

    def __init__(self, session: pytest.Session, reader: object) -> None:
        self._plugins = session.config.pluginmanager
        self._reader = reader
        self._capturing = [*filter(None, map(self._plugins.getplugin, _CAPTURING_PLUGINS))]
        self._interactive = any(
            session.config.getoption(name, False) for name in _INTERACTIVE_OPTIONS
        )
        self._hooks: dict[frozenset[int], _Hooks] = {}

    def suits(self, item: pytest.Item) -> bool:
        """Return whether an item ends the same way here as when pytest runs it."""
        if self._interactive or not _CAPTURE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            return False
        runs = item.ihook.pytest_runtest_protocol.get_hookimpls()
        return not any(
            _is_foreign(impl.plugin) and impl.plugin is not self._reader
            for impl in runs
            if not (impl.wrapper or impl.hookwrapper)
        )

    def run(self, item: pytest.Item, after: pytest.Item | None, tell_outcome: TellOutcome) -> None:
        """Do what pytest does between the wrappers of ``pytest_runtest_protocol``."""
        hooks = self._hooks_of(item)
        has_request = hasattr(item, "_request")
        if has_request and not item._request:  # type: ignore[attr-defined]
            item._initrequest()  # type: ignore[attr-defined]
        hooks.start(nodeid=item.nodeid, location=item.location)
        try:
            with hooks.captured(item):
                if hooks.stage(item, "setup", tell_outcome):
                    hooks.stage(item, "call", tell_outcome)
                stops = item.session.shouldfail or item.session.shouldstop
                hooks.stage(item, "teardown", tell_outcome, nextitem=None if stops else after)
        finally:
            if has_request:
                item._request = False  # type: ignore[attr-defined]
                item.funcargs = None  # type: ignore[attr-defined]
        hooks.finish(nodeid=item.nodeid, location=item.location)

    def _hooks_of(self, item: pytest.Item) -> _Hooks:
        """Return the hooks of an item; those of different directories may differ (conftest.py)."""
        conftests = item.ihook
        absent = frozenset(map(id, getattr(conftests, "remove_mods", ())))
        if absent not in self._hooks:
            self._hooks[absent] = _Hooks(self._plugins, conftests, self._capturing, self._reader)
        return self._hooks[absent]


class _Hooks:
    """The hooks that run a test, each without the plugins that it does not need."""

    def __init__(
        self,
        plugins: pytest.PytestPluginManager,
        conftests: Any,
        capturing: list[object],
        reader: object,
    ) -> None:
        import pytest

        absent = [*getattr(conftests, "remove_mods", ())]
        own = [
            plugin
            for plugin in plugins.get_plugins()
            if plugin is reader or not _is_foreign(plugin)
        ]
        self._stages = {
            when: plugins.subset_hook_caller(f"pytest_runtest_{when}", [*absent, *capturing])
            for when in ("setup", "call", "teardown")
        }

        def of_others(name: str) -> Callable[..., Any]:
            hook = plugins.subset_hook_caller(name, [*absent, *own])
            return hook if hook.get_hookimpls() else _ignore

        self.start = of_others("pytest_runtest_logstart")
        self.finish = of_others("pytest_runtest_logfinish")
        self._tell_others = of_others("pytest_runtest_logreport")
        self._interact = of_others("pytest_exception_interact")
        self._report = conftests.pytest_runtest_makereport
        self._from_call = pytest.CallInfo.from_call
        self._reraised = (pytest.exit.Exception, KeyboardInterrupt)
        self._capturers: list[Callable[..., Any]] = [
            impl.function
            for impl in plugins.hook.pytest_runtest_setup.get_hookimpls()
            if impl.plugin in capturing
        ]

    @contextlib.contextmanager
    def captured(self, item: pytest.Item) -> Iterator[None]:
        """Capture output, as pytest does around the setup of a test, around the whole test."""
        wrappers = [capture(item) for capture in self._capturers]
        for wrapper in wrappers:
            next(wrapper)
        try:
            yield
        finally:
            for wrapper in reversed(wrappers):
                next(wrapper, None)

    def stage(
        self, item: pytest.Item, when: When, tell_outcome: TellOutcome, **more: object
    ) -> bool:
        """Run the setup, call or teardown of a test; return whether it passed."""
        hook = self._stages[when]
        call = self._from_call(lambda: hook(item=item, **more), when=when, reraise=self._reraised)
        report = self._report(item=item, call=call)
        tell_outcome(report.outcome)
        self._tell_others(report=report)
        if report.failed and not hasattr(report, "wasxfail"):
            self._interact(node=item, call=call, report=report)
        passed: bool = report.passed
        return passed


def _ignore(**_: object) -> None:
    """Stand in for a hook that no plugin implements."""


def _is_foreign(plugin: object) -> bool:
    """Return whether a plugin is not one of pytest's own."""
    module = getattr(plugin, "__name__", None) or type(plugin).__module__
    return not str(module).startswith("_pytest.")
