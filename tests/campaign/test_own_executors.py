"""Executors of a user's own, by class, name and entry point; the old name of executors."""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar

import pytest
from installed_packages import install

from swarmtest import Campaign, Configuration, Machine, Space, UserError, action, open_store
from swarmtest.campaign import Executor
from swarmtest.campaign.executors.executor import BatchShape, parse_executor
from swarmtest.campaign.executors.worker import CampaignJob
from swarmtest.focus.focus import Focus
from swarmtest.focus.request import FocusRequest
from swarmtest.store.records import WorkerRecord

COUNTING = """
    from pathlib import Path

    from swarmtest.campaign import Executor

    class Counting(Executor):
        def __init__(self, job, file="count.txt", most=1000):
            super().__init__(job)
            self.rows, self.count, self.file, self.most = [], 0, file, most

        def submit(self, trials, proposals):
            assert len(trials) <= self.most
            self.count += len(trials)
            self.rows += self.run_trials(trials, proposals)

        def collect(self, timeout):
            rows, self.rows = self.rows, []
            return rows

        @property
        def busy(self):
            return bool(self.rows)

        @property
        def notes(self):
            return [f"{self.count} trials ran here"]

        def close(self):
            Path(self.file).write_text(str(self.count))
"""
SUBJECT = """
    import deep
    from swarmtest import Machine, action

    class Counter(Machine):
        def start(self): self.n = 0
        @action
        def up(self): self.n = deep.above(self.n)
        @action
        def down(self): self.n -= 1
"""
DEEP = """
    def above(n):
        assert n < 20
        return n + 1
"""


class Counter(Machine):
    def start(self):
        self.n = 0

    @action
    def up(self):
        self.n += 1
        assert self.n < 20

    @action
    def down(self):
        self.n -= 1


class InThread(Executor):
    """Runs one batch at a time, in a thread."""

    def __init__(self, job: Any) -> None:
        super().__init__(job)
        self.pool = ThreadPoolExecutor(1)
        self.batch: Future[list[Any]] | None = None

    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        self.batch = self.pool.submit(self.run_trials, trials, proposals)

    def collect(self, timeout: float) -> list[Any]:
        assert self.batch is not None
        try:
            rows = self.batch.result(timeout)
        except TimeoutError:
            return []
        self.batch = None
        return rows

    @property
    def busy(self) -> bool:
        return self.batch is not None

    def close(self) -> None:
        self.pool.shutdown()


class Repeating:
    """A strategy that learns: it proposes what failed last."""

    last = None

    def ask(self, space, trial, rng):
        return self.last or space.configuration([rng.choice(space.feature_names)])

    def tell(self, result):
        self.last = result.configuration if result.fault else None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("counting", COUNTING), ("subject", SUBJECT), ("deep", DEEP)):
        (tmp_path / f"{name}.py").write_text(dedent(text))
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def rows_of(strategy: Any, executor: Any, workers: int | None = None) -> list[Any]:
    with open_store(":memory:") as store:
        campaign = Campaign(Counter, strategy, 300, 7, workers, store, executor=executor)
        number = campaign.run().campaign
        return [t._replace(cpu_ns=0, wall_ns=0) for t in store.trials(number)]


class Losing(InThread):
    """Loses its only worker as soon as the tests are done."""

    def workers(self) -> list[WorkerRecord]:
        return [WorkerRecord("ant-17", "ant", 17, 5.0, 9.5, tests=300, state="lost")]


def test_what_a_worker_did_is_kept_if_it_is_lost_at_the_end():
    with open_store(":memory:") as store:
        number = Campaign(Counter, "coin", 300, 7, None, store, executor=Losing).run().campaign
        (worker,) = store.workers(number)
    assert (worker.tests, worker.state) == (300, "lost")


def test_an_executor_of_ones_own_gives_the_same_trials_as_any_other():
    assert rows_of("coin", InThread) == rows_of("coin", "local", workers=1)


def test_a_strategy_that_learns_is_told_of_results_that_ran_in_a_thread():
    assert rows_of(Repeating(), InThread) == rows_of(Repeating(), "local", workers=0)


def test_an_executor_is_found_by_its_file_and_gets_its_options(project, swarmtest):
    words = ("run", "subject.py", "-n", 40, "--executor", "counting.py:Counting")
    done = swarmtest(*words, "--executor-option", "file=other.txt", cwd=project)
    assert done.returncode == 1, done.stderr
    assert "executor counting.py:Counting, until 40 tests" in done.stdout
    assert "note: 40 trials ran here" in done.stdout
    assert (project / "other.txt").read_text() == "40"


def test_an_executor_is_found_by_its_entry_point(project):
    install(project, "swarmtest.executors", "counting = counting:Counting")
    outcome = Campaign("subject.py", "coin", 40, store=":memory:", executor="counting").run()
    assert outcome.notes == ["40 trials ran here"]
    with pytest.raises(UserError, match=r"choose local, .*, counting, .*; did you mean 'counting'"):
        parse_executor("countng")


def test_an_executor_of_ones_own_watches_what_is_reached(project):
    with open_store(":memory:") as store:
        arguments: dict[str, Any] = {"store": store, "coverage": "line"}
        outcome = Campaign(
            "subject.py", "coin", 40, executor="counting.py:Counting", **arguments
        ).run()
        watched = store.watched_targets(outcome.campaign).values()
        assert {target.name for target in watched} >= {"deep.py:3", "deep.py:4"}
        space = Space.from_json(store.campaign(outcome.campaign).space)
        for trial in store.trials(outcome.campaign):
            configuration = Configuration.from_bytes(space, trial.configuration)
            assert bool(trial.hits) == ("up" in configuration)


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("submit", "write def submit(self, trials, proposals)"),
        ("collect", "write def collect(self, timeout)"),
        ("busy", "write a property busy"),
    ],
)
def test_an_incomplete_executor_says_which_method_is_missing(project, missing, advice):
    (project / "lacking.py").write_text(dedent(COUNTING).replace(f"def {missing}(", "def other("))
    campaign = Campaign("subject.py", store="none.db", executor="lacking.py:Counting")
    with pytest.raises(UserError) as refused:
        campaign.run()
    assert f"lacking.py:Counting: an incomplete executor, it has no {missing}" in str(refused.value)
    assert advice in str(refused.value)
    with open_store("none.db") as store:
        assert store.campaigns() == []
    del sys.modules["lacking"]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("counting.py:Cuonting", (), ("no executor 'Cuonting'", "did you mean 'Counting'?")),
        ("counting.py:Executor", (), ("an incomplete executor", "no submit")),
        ("deep.py:above", (), ("deep.py:above is not an executor", "swarmtest.campaign.Executor")),
        ("counting.py:Counting", ("fil=x",), ("--executor-option fil", "did you mean 'file'?")),
        ("nowhere.py:Counting", (), ("no such file: nowhere.py",)),
    ],
)
def test_a_mistake_in_an_executor_of_ones_own_is_one_clear_line(project, text, options, words):
    campaign = Campaign("subject.py", store=":memory:", executor=parse_executor(text, options))
    with pytest.raises(UserError) as refused:
        campaign.run()
    assert all(word in str(refused.value) for word in words), refused.value


def test_an_exception_in_its_constructor_is_one_clear_line(project):
    class Broken(InThread):
        def __init__(self, job: Any) -> None:
            raise OSError("no such queue")

    with pytest.raises(UserError, match=r"Broken\(\) raised OSError: no such queue"):
        Campaign("subject.py", store=":memory:", executor=Broken).run()


def test_an_exception_in_a_method_is_one_clear_line_and_keeps_what_was_recorded(project):
    class Leaving(InThread):
        def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
            if 20 in trials:
                raise OSError("the queue is full")
            super().submit(trials, proposals)

    with open_store(":memory:") as store:
        campaign = Campaign("subject.py", "coin", 1000, store=store, executor=Leaving)
        with pytest.raises(UserError, match=r"raised OSError: the queue is full \(.*\.py:\d+\)"):
            campaign.run()
        (record,) = store.campaigns()
        assert record.status == "interrupted"
        assert 0 < len([*store.trials(record.id)]) <= 20


# The old name.


def test_the_old_parameter_is_accepted_with_a_warning():
    with pytest.warns(DeprecationWarning, match="engine= is called executor= now") as warned:
        campaign = Campaign(Counter, engine="dask://ant:8786")
    assert warned[0].filename == __file__
    assert campaign.executor.address == "tcp://ant:8786"
    with pytest.warns(DeprecationWarning, match=r"Campaign\.engine is called") as warned:
        assert campaign.engine is campaign.executor
    assert warned[0].filename == __file__
    with open_store(":memory:") as store, pytest.warns(DeprecationWarning, match="engine="):
        focus = Focus(Counter, FocusRequest(), store, engine="dask://ant:8786")
    assert focus.executor == campaign.executor


def test_the_old_options_are_accepted_with_a_note(project, swarmtest, refused):
    words = ("run", "subject.py", "-n", 5, "-q", "--no-reduce")
    old = ("--engine", "counting.py:Counting", "--engine-option", "file=old.txt")
    done = swarmtest(*words, *old, cwd=project)
    assert (project / "old.txt").read_text() == "5"
    assert done.stderr.splitlines() == [
        "note: --engine is called --executor now; the old name will be removed in the next release",
        "note: --engine-option is called --executor-option now; the old name will be removed in "
        "the next release",
    ]
    assert "--engine" not in swarmtest("run", "--help", cwd=project).stdout
    done = swarmtest(*words, "--engine", "local", "--executor", "local", cwd=project)
    refused(done, "--engine is the old name of --executor", "give one of them")


def test_the_environment_names_an_executor_by_its_new_and_its_old_variable(project, swarmtest):
    words = ("run", "subject.py", "-n", 5, "-q", "--no-reduce")
    done = swarmtest(*words, cwd=project, SWARMTEST_EXECUTOR="counting.py:Counting")
    assert (project / "count.txt").exists()
    assert done.stderr == ""
    (project / "count.txt").unlink()
    done = swarmtest(*words, cwd=project, SWARMTEST_ENGINE="counting.py:Counting")
    assert (project / "count.txt").exists()
    assert "SWARMTEST_ENGINE is called SWARMTEST_EXECUTOR now" in done.stderr
    (project / "count.txt").unlink()
    done = swarmtest(
        *words, "--executor", "local", cwd=project, SWARMTEST_ENGINE="counting.py:Counting"
    )
    assert not (project / "count.txt").exists()
    assert done.stderr == ""


def test_a_file_may_name_the_executor_by_the_old_key(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text('engine = "slurm"\njobs = 4\n')
    assert parse_executor(str(file)).kind == "slurm"
    assert parse_executor(str(file)).options == {"jobs": 4}


class Lamp(Machine):
    @action
    def press(self) -> None:
        pass


class Distant(Executor):
    """Runs batches here, and says that a worker runs a thousand tests a second."""

    shape = BatchShape(seconds=0.5, shortest_seconds=0.1)
    sizes: ClassVar[list[int]] = []
    slots = 2

    def __init__(self, job: CampaignJob) -> None:
        super().__init__(job)
        self.waiting: list[Any] = []

    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        self.sizes.append(len(trials))
        self.waiting += self.run_trials(trials, proposals)
        self.rate = 1000.0

    def collect(self, timeout: float) -> list[Any]:
        messages, self.waiting = self.waiting, []
        return messages

    @property
    def busy(self) -> bool:
        return bool(self.waiting)


def test_near_the_end_batches_shrink_to_no_less_than_is_worth_handing_over() -> None:
    Distant.sizes.clear()
    outcome = Campaign(Lamp, "coin", 2000, store=":memory:", executor=Distant).run()
    assert outcome.progress.tests == sum(Distant.sizes) == 2000
    end = Distant.sizes[Distant.sizes.index(max(Distant.sizes)) :]
    assert end == sorted(end, reverse=True)
    assert min(end[:-1]) == 100  # a tenth of a second
    assert len(end) > 3


class Single(Distant):
    """The same with one worker."""

    sizes: ClassVar[list[int]] = []
    slots = 1


def test_batches_of_a_single_worker_do_not_shrink_near_the_end() -> None:
    Single.sizes.clear()
    outcome = Campaign(Lamp, "coin", 2000, store=":memory:", executor=Single).run()
    assert outcome.progress.tests == sum(Single.sizes) == 2000
    assert Single.sizes[:-1] == sorted(Single.sizes[:-1])
    assert max(Single.sizes) == 500
