"""Comparison runs from Python: `swarmtest.compare.run_comparison`."""

import subprocess
import sys
from typing import Any

import pytest

from swarmtest import Budget, Machine, UserError, action, open_store
from swarmtest.compare import compare_campaigns, run_comparison
from swarmtest.compare.repeated_runs import plan_comparison


class Counter(Machine):
    steps = 40

    def start(self):
        self.n = 0

    @action
    def up(self):
        self.n += 1
        assert self.n < 20

    @action
    def down(self):
        self.n -= 1


FILE = """
from swarmtest import Machine, action

class Counter(Machine):
    @action
    def up(self): pass
    @action
    def down(self): pass
"""


def test_every_run_is_reported_and_the_comparison_is_returned():
    reported: list[Any] = []
    with open_store(":memory:") as store:
        done = run_comparison(
            Counter, ["all-on", "coin"], 30, 2, 5, store, workers=1, progress=reported.append
        )
        assert done.comparison == compare_campaigns(store, done.campaigns)
        assert [record.seed for record in store.campaigns()] == [5, 5, 6, 6]
    assert [(run.number, run.runs) for run in reported] == [(n, 4) for n in range(1, 5)]
    assert [(run.strategy, run.seed) for run in reported] == [
        (strategy, seed) for seed in (5, 6) for strategy in ("all-on", "coin")
    ]
    assert [run.campaign for run in reported] == done.campaigns == [1, 2, 3, 4]
    assert all(run.progress.tests == 30 for run in reported)
    assert [run.found["fault"] for run in done.comparison.runs] == [0, 1, 0, 1]
    assert not done.interrupted


def test_the_strategies_may_be_written_as_on_the_command_line():
    plan = plan_comparison(
        Counter, "all-on,coin(p=0.3,n=8)", Budget(tests=3), baseline="coin:p=0.3,n=8"
    )
    assert plan.strategies == ("coin:p=0.3,n=8", "all-on")
    assert plan.runs == 20
    assert plan_comparison(Counter).strategies == ("all-on", "coin", "layered")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strategies": ["coin"]}, "two strategies"),
        ({"strategies": ["coin", "con"]}, "unknown strategy 'con'"),
        ({"repeats": 0}, "at least one run of each strategy, not 0"),
        ({"workers": 0}, "not independent"),
        ({"baseline": "sized"}, "sized: not among"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_a_request_that_cannot_be_run_is_refused_before_a_store_is_opened(
    tmp_path, arguments, words
):
    store = tmp_path / "never.db"
    with pytest.raises(UserError, match=words):
        run_comparison(Counter, store=str(store), **arguments)
    assert not store.exists()


def test_ctrl_c_leaves_the_finished_runs_and_reuse_runs_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counter.py").write_text(FILE)

    def stop_after_three(run):
        if run.number == 3:
            raise KeyboardInterrupt

    request: dict[str, Any]
    request = {"strategies": ["all-on", "coin"], "budget": 4, "repeats": 2, "workers": 1}
    stopped = run_comparison("counter.py", store="s.db", progress=stop_after_three, **request)
    assert stopped.interrupted
    assert stopped.comparison is None
    assert stopped.campaigns == [1, 2, 3]

    reported: list[Any] = []
    done = run_comparison(
        "counter.py", store="s.db", reuse=True, progress=reported.append, **request
    )
    assert done.campaigns == [1, 2, 3, 4]
    assert [run.progress is None for run in reported] == [True, True, True, False]
    assert done.comparison
    assert any("no code was watched" in note for note in done.comparison.notes)


def test_the_api_does_not_load_the_command_line():
    program = (
        "import sys; from swarmtest.compare import run_comparison; "
        "assert not {'click', 'rich', 'swarmtest.ui.options'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error():
    import swarmtest.compare

    with pytest.raises(AttributeError, match="no attribute 'run_comparisons'"):
        swarmtest.compare.run_comparisons  # type: ignore[attr-defined]  # noqa: B018
