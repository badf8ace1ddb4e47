"""Mutants under a pytest suite: collected once, then run in forks.

pytest runs in a process of its own, so that nothing of the suite stays in ours. It collects the
tests and imports the program; then, instead of pytest's loop over the tests, every test is run once
without a mutant, and each mutant gets the tests that reach it, each in the way pytest runs it: with
its fixtures, marks and plugins.
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

import pytest

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import Scope
from swarmtest.mutate.baseline import Baseline, Limits
from swarmtest.mutate.generation import Drawn, draw_mutants
from swarmtest.mutate.import_forks import Imports
from swarmtest.mutate.import_mutants import Importing
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.kills import Runner, Show
from swarmtest.mutate.loaded_files import live_files, named_sources
from swarmtest.mutate.mutation import Lines
from swarmtest.processes.fork_tasks import Tell, messages_with_output

if TYPE_CHECKING:
    import pytest


# -------------------------------------------------------------------------------------------------
# Running a pytest test as pytest does, without what it only does for those who read along.
#
# Fixtures, marks, warnings and the hooks of all plugins take part as ever. Left out are the
# reports
# that pytest's own plugins would write; and what a test prints and logs is caught once around it,
# not
# anew for its setup, call and teardown. Tests that ask for what they printed or logged, or that
# another plugin runs, are not for this: `suits` says so.

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


# -------------------------------------------------------------------------------------------------

_OPTIONS = ("-q", "-pno:cacheprovider", "--assert=plain", "--capture=sys")
"""What an assertion compared is nobody's concern here."""
_NOT_RUN = "not run"


class PytestTests:
    """Collected tests; only those that pass are of use."""

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
        """Without any text: nobody reads it, and making it costs more than most tests."""
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
        """Within what other plugins do around a test: run it, or leave it to pytest."""
        if item not in self._suits:
            self._suits[item] = self._quiet.suits(item)
        if not self._suits[item]:
            return None
        self._quiet.run(item, nextitem, self._outcomes.append)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call and teardown of a test each tell how they went."""
        self._outcomes.append(report.outcome)

    def run(self, test: int, following: int | None) -> str:
        """``passed``, ``failed`` or ``skipped``."""
        self._outcomes.clear()
        random.seed(self.names[test])
        item = self._items[test]
        after = None if following is None else self._items[following]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        others = [outcome for outcome in self._outcomes if outcome != "passed"]
        return others[0] if others else "passed" if self._outcomes else _NOT_RUN

    def finish(self) -> None:
        """End what fixtures of modules and the session keep."""
        self._session._setupstate.teardown_exact(None)

    def why_not(self, ended: str) -> str:
        """Why a test cannot tell mutants apart."""
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
    """The kill matrix of the tests that pytest finds in `paths`, for mutants of `files`.

    A directory stands for the Python files in it that hold no tests.

    Tests that do not pass as things are cannot kill anything and are left out. `options` are more
    arguments for pytest. `mutants_per_fork`: 1 gives each mutant a process of its own, which costs
    more and cannot be spoilt by what another left behind.

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
        raise UserError(f"no mutant is left of {', '.join(files)}: other lines or operators?")

    concerned = [source for source in sources if source.path in _paths(drawn)]
    places = [os.path.realpath(source.place) for source in concerned]
    imports = Imports(Scope(places=tuple(places)), places)

    def collected(session: pytest.Session, tell: Tell) -> KillMatrix:
        runner = Runner(
            PytestTests(session),
            live_files(concerned),
            Limits(seconds, memory, mutants_per_fork),
            workers,
            Importing(imports, concerned),
        )
        runner.baseline.run()
        if not runner.originals:
            raise UserError(f"no test passes without a mutant: {_why(runner.baseline)}")
        show: Show = lambda done, count: tell((done, count))  # noqa: E731
        return runner.matrix(drawn.mutants, first_kill=first_kill, on_progress=show)

    arguments = [*_OPTIONS, *_without_coverage(), *options, *paths]
    return _hosted(arguments, imports, collected, on_progress).drawn_from(drawn)


def _without_coverage() -> list[str]:
    """What a project measures with pytest-cov would only take time here."""
    loads = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    return ["--no-cov"] if loads and importlib.util.find_spec("pytest_cov") else []


def _paths(drawn: Drawn) -> set[str]:
    return {mutant.path for mutant in drawn.mutants}


def _why(baseline: Baseline) -> str:
    return "; ".join(f"{len(names)} {why}" for why, names in baseline.left_out.items())


class _Loop:
    """Stands in for pytest's loop over the tests: plugins that come last are asked first."""

    def __init__(
        self, imports: Imports, collected: Callable[[pytest.Session, Tell], KillMatrix], tell: Tell
    ) -> None:
        self._imports = imports
        self._collected = collected
        self._tell = tell

    def pytest_configure(self, config: pytest.Config) -> None:
        """Tests run in this process and its forks, whatever the project says of pytest-xdist."""
        if hasattr(config.option, "dist"):
            config.option.dist, config.option.tx = "no", []

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """All tests are collected: do our work, and let pytest think that it is done."""
        self._imports.arrived(lambda _: (PytestTests(session), not session.testsfailed))
        if session.testsfailed:
            return None  # pytest says what is wrong, and ends
        answer: KillMatrix | UserError
        try:
            answer = self._collected(session, self._tell)
        except UserError as error:
            answer = error
        finally:
            self._imports.end()
        self._tell(answer)  # the last of all: whoever hears it ends this process
        return True


def _hosted(
    arguments: list[str],
    imports: Imports,
    collected: Callable[[pytest.Session, Tell], KillMatrix],
    on_progress: Show | None,
) -> KillMatrix:
    """Run pytest in a process of its own, which tells of its progress and then the answer."""

    def run(tell: Tell) -> None:
        import pytest

        sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
        with imports.watched():
            pytest.main(arguments, plugins=[_Loop(imports, collected, tell)])

    with tempfile.TemporaryFile() as output:
        for told in messages_with_output(run, output.fileno()):
            if isinstance(told, KillMatrix):
                return told
            if isinstance(told, UserError):
                raise told
            if on_progress is not None:
                on_progress(*told)
        output.seek(0)
        said = [line for line in output.read().decode(errors="replace").splitlines() if line]
    raise UserError(f"pytest did not come to its tests: {_complaint(said)}")


def _complaint(said: list[str]) -> str:
    """The one line that tells what is wrong, of all that pytest printed."""
    _, is_usage, wrong = "\n".join(said).partition("pytest.main(): error: ")
    if is_usage:
        return f"{wrong.splitlines()[0]} (`--pytest-option=-oaddopts=`: without the project's own)"
    where = [line for line in said if line.startswith("ERROR")]
    why = [line.removeprefix("E").strip() for line in said if line.startswith("E  ")]
    return ": ".join([*where[-1:], *why[-1:]]) or (said or ["it ended"])[-1]
