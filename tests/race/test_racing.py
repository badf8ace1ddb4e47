"""A threaded program as a subject of a campaign: settings are drawn, faults replay."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from raced_programs import DEADLOCK, KEPT_UPDATE, LOST_UPDATE, LOST_WAKE_UP, SLOWER_UPDATE, SUITE

from swarmtest import Campaign, UserError, open_store
from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race import RaceShown, ThreadsSubject, replay_race
from swarmtest.race.explanation import explore
from swarmtest.race.race_test import RaceTest, features_of, race_space, settings_of
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer
from swarmtest.race.timeline import timeline_text
from swarmtest.race.views import race_view
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.ui.report.faults import known_faults

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def file(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    return file


def found(name: str, tests: int = 100) -> RaceTest:
    """The one fault that a program has, explained."""
    subject = ThreadsSubject(name)
    with open_store(":memory:") as store:
        outcome = Campaign(subject, "coin", tests, workers=1, store=store).run()
        assert len(outcome.faults) == 1
        allowed = ReductionTime(total=300.0)
        reduced = reduce_faults(subject, store, outcome.campaign, allowed)
        assert (reduced.why, reduced.untried) == ({}, ())
    [small] = reduced.reductions.values()
    assert small.test is not None, small
    return RaceTest.from_json(json.loads(str(small.test)))


def test_a_lost_update_is_found_and_explained_by_the_switches_that_matter(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    test = found("race --control counter.py::count_to_two")
    assert test.explanation is not None
    assert test.explanation.signature == (
        "AssertionError: # [count_to_two: assert counter.value == 2, counter.value]"
    )
    assert test.explanation.replays == (10, 10)
    assert test.size <= 3
    picture = timeline_text(test.explanation)
    assert picture.count("reads self.value: 0") == 2  # both threads read before one writes
    assert "~ stopped ~" in picture
    assert picture.endswith("AssertionError: 1")


@pytest.mark.parametrize(
    ("program", "truth"),
    [(LOST_UPDATE, "not seen on your interpreter"), (SLOWER_UPDATE, "happens on your interpreter")],
)
def test_the_truth_label_tells_what_this_interpreter_can_do(
    write: Write, program: str, truth: str
) -> None:
    write("counter.py", program)
    explanation = found("race --control counter.py::count_to_two").explanation
    assert explanation is not None
    assert explanation.truth.startswith(truth)


def test_a_deadlock_in_a_script_shows_who_holds_what(write: Write) -> None:
    write("bank.py", DEADLOCK)
    explanation = found("race --control bank.py", tests=60).explanation
    assert explanation is not None
    assert {held for row in explanation.rows for held in row.held} == {"left", "right"}
    assert "main.1 waits for a lock that main.2 holds" in explanation.message


def test_if_the_process_that_makes_a_schedule_minimal_is_killed_its_best_one_counts(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("counter.py", LOST_UPDATE)
    subject = ThreadsSubject("race --control counter.py::count_to_two")
    results = (subject.execute(subject.space.default(), seed) for seed in itertools.count())
    recorded = in_fork(lambda: next(result.test for result in results if result.fault), 60)

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Racer, "minimal", killed)
    small = RaceTest.from_json(subject.reduced(recorded, lambda test: True))
    assert small.schedule == RaceTest.from_json(recorded).schedule
    assert small.explanation is not None
    assert small.explanation.replays == (10, 10)
    assert any("fewer switches may be enough" in note for note in small.explanation.notes)


def test_a_lost_wake_up_is_found(write: Write) -> None:
    write("box.py", LOST_WAKE_UP)
    explanation = found("race --control box.py::hand_over", tests=200).explanation
    assert explanation is not None
    assert explanation.signature.startswith("lost wake-up")


def test_what_noise_has_shown_is_replayed_under_control(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    test = found("race --noise counter.py::count_to_two", tests=200)
    assert test.schedule is not None
    subject = ThreadsSubject("counter.py::count_to_two")
    assert all(in_fork(lambda: subject.replay(test.to_json()), 30).fault for _ in range(3))


def test_what_noise_shows_seldom_is_replayed_near_the_places_of_its_noise(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    subject = ThreadsSubject("race --noise counter.py::count_to_two")
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", 200, workers=1, store=store).run().campaign
        [fault] = store.faults(campaign)
    seldom = json.loads(str(fault.test))
    seldom["noise"]["frequency"] = 0
    result = in_fork(lambda: subject.replay(seldom), 60)
    assert result.fault == fault.fault


def test_a_test_of_pytest_gets_its_fixtures_anew_for_each_run(write: Write) -> None:
    write("test_shop.py", SUITE)
    explanation = found("race --control test_shop.py::test_two_sellers").explanation
    assert explanation is not None
    assert explanation.signature.startswith("AssertionError [test_two_sellers: assert ")


def test_the_same_seed_gives_the_same_runs(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    subject = ThreadsSubject("race --control counter.py::count_to_two")
    configuration = subject.space.default()

    def faults() -> list[bool]:
        return [subject.execute(configuration, seed).fault is not None for seed in range(40)]

    assert in_fork(faults, 30) == in_fork(faults, 30)


def test_a_configuration_says_what_a_run_may_use() -> None:
    space = race_space()
    only = space.configuration(["sleep", "halt-one-thread", "shared-only"])
    assert features_of(settings_of(only, seed=1)) == {"sleep", "halt-one-thread", "shared-only"}
    both = space.configuration(["pos", "yield"])
    drawn = [features_of(settings_of(both, seed)) for seed in range(200)]
    assert {name for one in drawn for name in one} == {"pos", "yield"}
    assert sum("pos" in one for one in drawn) > 100  # noise takes real time: it is the rarer one


def test_coverage_of_concurrency_is_kept_as_targets(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    subject = ThreadsSubject("race --coverage pair,shared counter.py::count_to_two")
    result = in_fork(lambda: _targets(subject), 30)
    assert "shared:counter.py:Counter.value" in result
    assert any(name.startswith("pair:") for name in result)


def _targets(subject: ThreadsSubject) -> list[str]:
    [hits] = subject.execute(subject.space.default(), seed=1).covered
    return [str(target) for target in hits.targets()]


def test_a_saved_test_replays_the_race_and_passes_after_a_fix(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    test = found("race --control counter.py::count_to_two")
    assert test.schedule is not None
    with pytest.raises(RaceShown, match=r"reads self\.value: 0"):
        replay_race("counter.py::count_to_two", test.schedule.to_plain())
    write("counter.py", KEPT_UPDATE)
    with pytest.warns(UserWarning, match="the code has changed"):
        replay_race("counter.py::count_to_two", test.schedule)


def test_a_stale_schedule_says_so(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    test = found("race --control counter.py::count_to_two")
    assert test.schedule is not None
    locked = LOST_UPDATE.replace(
        "        value = self", "        lock = self.lock\n" * 2 + "        value = self"
    )
    write("counter.py", locked.replace("self.value = 0", "self.value = 0; self.lock = 1"))
    with (
        pytest.warns(UserWarning, match="the code has changed"),
        pytest.raises(RaceShown),
    ):
        replay_race("counter.py::count_to_two", test.schedule)


def test_after_a_fix_the_neighbourhood_of_the_schedule_is_explored(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    target = RacedProgram.parse("race counter.py::count_to_two")
    schedule = found("race --control counter.py::count_to_two").schedule
    assert schedule is not None
    before = explore(target, schedule, 300, None, seed=1)
    assert before.old_fails
    assert before.failures > 30
    assert before.explanation is not None
    write("counter.py", KEPT_UPDATE)
    after = explore(target, schedule, 300, None, seed=1)
    assert (after.runs, after.failures, after.old_fails) == (300, 0, "")
    assert "the code has changed" in after.notes[0]


def test_the_report_has_the_picture(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    subject = ThreadsSubject("race --control counter.py::count_to_two")
    with open_store(":memory:") as store:
        outcome = Campaign(subject, "coin", 100, workers=1, store=store).run()
        reduce_faults(subject, store, outcome.campaign)
        [fault] = known_faults(store, [outcome.campaign])
    assert fault.reduction is not None
    view = race_view(fault.reduction.test)
    assert view is not None
    assert set(view.threads) == {"main", "main.1", "main.2"}
    assert race_view(json.dumps({"format": "another"})) is None


def test_a_broken_test_is_refused() -> None:
    with pytest.raises(UserError, match="not a saved test of threads"):
        RaceTest.from_json({"format": "another"})
    with pytest.raises(UserError, match="broken"):
        RaceTest.from_json({"format": "swarmtest threads test 1", "subject": "x"})


def test_a_process_that_does_not_answer_is_ended() -> None:
    with pytest.raises(NoAnswer, match="not over after"):
        in_fork(lambda: time.sleep(30), 0.2)
    with pytest.raises(NoAnswer, match="ZeroDivisionError"):
        in_fork(lambda: 1 // 0, 60)


def test_a_process_that_leaves_another_behind_is_not_waited_for() -> None:
    def leave_another_behind() -> int:
        if not os.fork():
            time.sleep(1000)
        return 7

    assert in_fork(leave_another_behind, 60) == 7
