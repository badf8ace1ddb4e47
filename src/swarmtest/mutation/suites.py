"""Mutants under a pytest suite: collected once, then a fork per mutant.

pytest runs in a process of its own, so that nothing of the suite stays in ours. It collects the
tests and imports the program; then, instead of pytest's loop over the tests, every test is run once
without a mutant, and each mutant gets the tests that reach it, each in the way pytest runs it: with
its fixtures, marks and plugins.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from swarmtest.errors import UserError
from swarmtest.mutation.drawing import Drawn, draw_mutants
from swarmtest.mutation.forks import Tell, told_by_fork
from swarmtest.mutation.kills import Limits, Runner, Show
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
        self._session = session
        self._items = session.items
        self.names = [item.nodeid for item in session.items]
        self._outcomes: list[str] = []
        session.config.pluginmanager.register(self)

    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """A failure without its text: nobody reads it, and making it costs more than most tests."""
        import pytest

        if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
            return None
        assert call.when != "collect"
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", "", call.when)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call and teardown of a test each tell how they went."""
        self._outcomes.append(report.outcome)

    def run(self, test: int, following: int | None) -> str:
        """``passed``, ``failed`` or ``skipped``."""
        self._outcomes.clear()
        random.seed(test)
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
    mutants_per_fork: int = 16,
    options: Sequence[str] = (),
    on_progress: Show | None = None,
) -> KillMatrix:
    """The kill matrix of the tests that pytest finds in `paths`, for mutants of `files`.

    A directory stands for the Python files in it that hold no tests.

    Tests that do not pass as things are cannot kill anything and are left out. `options` are more
    arguments for pytest. `mutants_per_fork`: 1 gives each mutant a process of its own, which costs
    more and cannot be spoilt by what another left behind.
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

    def work(runner: Runner, show: Show) -> KillMatrix:
        runner.run_originals()
        if not runner.originals:
            raise UserError(f"no test passes without a mutant: {_why(runner)}")
        return runner.matrix(drawn.mutants, first_kill=first_kill, on_progress=show)

    def collected(session: pytest.Session, tell: Tell) -> KillMatrix:
        files = live_files([one for one in sources if one.path in _paths(drawn)])
        runner = Runner(
            PytestTests(session), files, Limits(seconds, memory, mutants_per_fork), workers
        )
        return work(runner, lambda done, count: tell((done, count)))

    arguments = [*_OPTIONS, *options, *paths]
    return _hosted(arguments, collected, on_progress).drawn_from(drawn)


def _paths(drawn: Drawn) -> set[str]:
    return {mutant.path for mutant in drawn.mutants}


def _why(runner: Runner) -> str:
    return "; ".join(f"{len(names)} {why}" for why, names in runner.left_out.items())


class _Loop:
    """Stands in for pytest's loop over the tests: plugins that come last are asked first."""

    def __init__(self, collected: Callable[[pytest.Session], KillMatrix], tell: Tell) -> None:
        self._collected = collected
        self._tell = tell

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """All tests are collected: do our work, and let pytest think that it is done."""
        if session.testsfailed:
            return None  # pytest says what is wrong, and ends
        try:
            self._tell(self._collected(session))
        except UserError as error:
            self._tell(error)
        return True


def _hosted(
    arguments: list[str],
    collected: Callable[[pytest.Session, Tell], KillMatrix],
    on_progress: Show | None,
) -> KillMatrix:
    """Run pytest in a process of its own, which tells of its progress and then the answer."""

    def run(tell: Tell) -> None:
        import pytest

        pytest.main(arguments, plugins=[_Loop(lambda session: collected(session, tell), tell)])

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
    errors = [line for line in said if line.startswith(("ERROR", "E  "))]
    raise UserError(f"pytest did not come to its tests: {(errors or said or ['it ended'])[-1]}")
