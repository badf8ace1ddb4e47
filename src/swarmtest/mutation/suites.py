"""Mutants under a pytest suite: collected once, then run in forks.

pytest runs in a process of its own, so that nothing of the suite stays in ours. It collects the
tests and imports the program; then, instead of pytest's loop over the tests, every test is run once
without a mutant, and each mutant gets the tests that reach it, each in the way pytest runs it: with
its fixtures, marks and plugins.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from swarmtest.errors import UserError
from swarmtest.instrument.scope import Scope
from swarmtest.mutation.baseline import Baseline, Limits
from swarmtest.mutation.drawing import Drawn, draw_mutants
from swarmtest.mutation.forks import Tell, told_by_fork
from swarmtest.mutation.importing import Importing
from swarmtest.mutation.imports import Imports
from swarmtest.mutation.kills import Runner, Show
from swarmtest.mutation.loaded import live_files, named_sources
from swarmtest.mutation.matrix import KillMatrix
from swarmtest.mutation.mutating import Lines

if TYPE_CHECKING:
    import pytest

_OPTIONS = ("-q", "-pno:cacheprovider", "--assert=plain", "--capture=sys")
"""What an assertion compared is nobody's concern here."""
_NOT_RUN = "not run"


class PytestTests:
    """Collected tests; only those that pass are of use."""

    def __init__(self, session: pytest.Session) -> None:
        from swarmtest.mutation.quiet import QuietRuns  # needs pytest, which may not be there

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
    swarmtest.errors.UserError: name the files to mutate: a suite does not say what it tests
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
        for told in told_by_fork(run, output.fileno()):
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
