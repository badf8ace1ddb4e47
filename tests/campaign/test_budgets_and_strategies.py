"""When a campaign ends, what a strategy is told, and what happens in a loop of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field

import pytest

from swarmtest import Budget, Campaign, Machine, Space, UserError, action, open_store, swarm
from swarmtest.core.result import Result
from swarmtest.core.sampling import toss
from swarmtest.store.records import unpack_counts
from swarmtest.strategies import Proposal, Stream

MACHINES = """
import time
from swarmtest import Machine, action, integers

class Fine(Machine):
    steps = 5
    @action
    def a(self): ...
    @action
    def b(self): ...

class Busy(Machine):
    steps = 1
    @action
    def spin(self):
        end = time.process_time() + 0.01
        while time.process_time() < end: pass

class Faulty(Machine):
    steps = 4
    @action(value=integers(0, 5))
    def go(self, value):
        raise [ValueError, KeyError, OSError, TypeError, IndexError, EOFError][value]
    @action
    def rest(self): self.event("rested")

class Learns(Machine):
    steps = 3
    @action
    def a(self): self.event("a ran")
    @action
    def b(self): ...
    @action
    def c(self): raise OSError
"""
STRATEGIES = """
import json, os
from dataclasses import dataclass

class Alternate:
    def ask(self, space, trial, rng):
        return space.configuration([space.feature_names[trial % len(space.feature_names)]])

class OnlyNth:
    def __init__(self, n=0): self.n = n
    def ask(self, space, trial, rng):
        return space.configuration([space.feature_names[self.n]])

class Learner:
    def ask(self, space, trial, rng):
        return space.configuration([rng.choice(space.feature_names)])
    def tell(self, result):
        with open("told.jsonl", "a") as out:
            fault = result.fault.signature if result.fault else None
            line = [result.trial, result.verdict.label, fault, list(result.hits),
                    list(result.used), str(result.configuration)]
            out.write(json.dumps(line) + "\\n")

class Broken:
    def ask(self, space, trial, rng):
        raise ZeroDivisionError("oh")

class BrokenLater:
    def ask(self, space, trial, rng):
        if trial == 30: raise ZeroDivisionError("oh")
        return space.default()

class Wrong:
    def ask(self, space, trial, rng):
        return ["a"]

class BrokenTell(Learner):
    def tell(self, result): raise ZeroDivisionError("oh")
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "machines.py").write_text(MACHINES)
    (tmp_path / "strategies_of_mine.py").write_text(STRATEGIES)
    return tmp_path


@pytest.fixture
def run(place, swarmtest):
    """Run a machine; the exit status and the end event."""

    def go(machine, *arguments, status=None):
        done = swarmtest("run", f"machines.py::{machine}", *arguments, "--json", cwd=place)
        assert "Traceback" not in done.stderr, done.stderr
        if status is not None:
            assert done.returncode == status, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return go


def test_the_number_of_tests_is_exact(run):
    for tests, workers in ((1, 1), (137, 2)):
        end = run("Fine", "-n", tests, "-j", workers, status=0)
        assert (end["progress"]["tests"], end["reason"]) == (tests, "all tests done")


def test_a_time_budget_ends_the_campaign(run):
    end = run("Fine", "--time", "1s", "-j", 1, status=0)
    assert end["reason"] == "time is up"
    assert end["progress"]["wall_seconds"] >= 1.0


def test_a_cpu_budget_ends_the_campaign(run):
    """A test takes 10 ms: 50 spend it, and at most 2 batches of 20 are under way per worker."""
    end = run("Busy", "--cpu-time", "500ms", "-j", 2, status=0)
    assert end["reason"] == "CPU time is up"
    assert end["progress"]["cpu_seconds"] >= 0.5
    assert 50 <= end["progress"]["tests"] <= 50 + 2 * 2 * 20


def test_x_stops_at_the_first_fault(run):
    end = run("Faulty", "-n", 100_000, "-x", "-j", 1, status=1)
    assert end["reason"] == "enough faults"
    assert end["progress"]["tests"] < 50_000


def test_stop_after_faults_counts_distinct_faults(run):
    end = run("Faulty", "-n", 100_000, "--stop-after-faults", 3, "-j", 1, status=1)
    assert end["reason"] == "enough faults"
    assert len(end["faults"]) >= 3


def test_saturation_stops_when_nothing_new_comes(run):
    end = run("Faulty", "-n", 1_000_000, "--saturation", 2000, "-j", 1, status=1)
    assert end["reason"] == "saturated"
    assert len(end["faults"]) == 6
    assert 2000 <= end["progress"]["since_new"] <= end["progress"]["tests"] < 1_000_000


def test_distinct_faults_are_counted_each_with_its_tests(run):
    end = run("Faulty", "-n", 600, "-j", 1, "-s", "coin", status=1)
    assert len(end["faults"]) == 6
    assert sum(fault["count"] for fault in end["faults"]) == end["progress"]["failed"]
    for fault in end["faults"]:
        assert fault["size"] == len(fault["test"]["steps"]) == 1


def test_events_are_targets(run, place):
    end = run("Faulty", "-n", 50, "-j", 1)
    assert end["progress"]["targets"] == 1
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        assert [str(target) for target in store.targets().values()] == ["event:rested"]


def test_a_strategy_in_a_file_works_in_workers(run, place, rows):
    strategy = "strategies_of_mine.py:Alternate"
    run("Fine", "-n", 40, "-j", 2, "--strategy", strategy, status=0)
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        used = [unpack_counts(t.used) for t in store.trials(1)]
    assert used == [(5, 0), (0, 5)] * 20


def test_parameters_of_a_strategy_of_ones_own_survive_a_resume(run, place, swarmtest):
    run(
        "Fine",
        "-n",
        10,
        "-j",
        0,
        "--strategy",
        "strategies_of_mine.py:OnlyNth:n=1",
        "--allow-unused",
    )
    done = swarmtest("resume", "-n", 20, "-j", 0, "--allow-unused", "-q", cwd=place)
    assert done.returncode == 0, done.stderr
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        assert {unpack_counts(t.used) for t in store.trials(1)} == {(0, 5)}


def test_a_strategy_in_another_directory_survives_a_resume(run, place, swarmtest):
    (place / "lib").mkdir()
    (place / "strategies_of_mine.py").rename(place / "lib" / "elsewhere.py")
    run("Fine", "-n", 10, "-j", 1, "--strategy", "lib/elsewhere.py:Alternate", status=0)
    done = swarmtest("resume", "-n", 20, "-j", 1, "-q", cwd=place)
    assert done.returncode == 0, done.stderr


def told(place):
    lines = (place / "told.jsonl").read_text().splitlines()
    return sorted(map(json.loads, lines))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_strategy_that_learns_is_told_every_result_once(workers, run, place):
    run("Learns", "-n", 60, "-j", workers, "--strategy", "strategies_of_mine.py:Learner", status=1)
    lines = told(place)
    assert [line[0] for line in lines] == list(range(60))
    for _, verdict, fault, hits, used, configuration in lines:
        assert (verdict == "failed") == (used[2] > 0) == (fault is not None)
        assert (hits == ["event:a ran"]) == (used[0] > 0)
        assert configuration.count("-") == 2


def test_a_strategy_that_learns_learns_the_same_again_after_a_resume(run, place, swarmtest):
    run("Learns", "-n", 40, "-j", 0, "--strategy", "strategies_of_mine.py:Learner", status=1)
    before = told(place)
    (place / "told.jsonl").unlink()
    done = swarmtest("resume", "-n", 60, "-j", 0, "-q", cwd=place)
    assert done.returncode == 1, done.stderr
    after = told(place)
    assert [line[0] for line in after] == list(range(60))
    assert after[:40] == before


@pytest.mark.parametrize("name", ["Broken", "BrokenLater", "Wrong", "BrokenTell"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_mistake_in_a_strategy_is_said_in_one_line(name, workers, place, swarmtest, refused):
    done = swarmtest(
        *("run", "machines.py::Fine", "-n", 100, "-j", workers, "-q"),
        *("--strategy", f"strategies_of_mine.py:{name}"),
        cwd=place,
    )
    refused(done, name)


SCRIPT = """
from swarmtest import *

def campaign():
    class Local(Machine):
        steps = 10
        @action(value=integers(0, 9))
        def go(self, value):
            if value == 7: raise OSError("seven")
            if value == 8: import os; os._exit(4)
        @action
        def rest(self): ...
    class Mine:
        def ask(self, space, trial, rng): return space.default()
    return Campaign(Local, Mine(), 40, seed=3, workers=2, store="local.db")

if __name__ == "__main__":
    outcome = campaign().run()
    print(outcome.progress.tests, sorted(fault.kind for fault in outcome.faults))
"""


def test_a_machine_defined_inside_a_function_works_with_workers(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "40 ['exception', 'exit']\n", done.stderr
    assert done.returncode == 0


def test_a_machine_of_the_script_that_is_run_works_with_workers(tmp_path):
    (tmp_path / "script.py").write_text(
        MACHINES
        + textwrap.dedent("""
            from swarmtest import Campaign
            if __name__ == "__main__":
                outcome = Campaign(Faulty, "coin", 100, workers=2, store="s.db").run()
                print(outcome.progress.tests, len(outcome.faults))
        """)
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "100 6\n", done.stderr


def test_workers_leave_nothing_behind_in_the_process_that_ran_them(tmp_path):
    sys.path.insert(0, str(tmp_path))
    (tmp_path / "left_behind.py").write_text(MACHINES)
    before = set(os.listdir("/proc/self/fd"))
    outcome = Campaign(
        f"{tmp_path}/left_behind.py::Fine", "coin", Budget(tests=20), workers=2, store=":memory:"
    ).run()
    sys.path.remove(str(tmp_path))
    assert outcome.progress.tests == 20
    assert not set(os.listdir("/proc/self/fd")) - before


# A loop of one's own.


def kept(path):
    with open_store(str(path)) as store:
        return [(t.trial, t.verdict) for t in store.trials(1)], store.campaign(1).status


def test_a_loop_of_ones_own_keeps_what_it_records(tmp_path):
    trials = swarm(["push", "pop"], seed=5, tests=30, store=str(tmp_path / "s.db"))
    for trial in trials:
        trial.record(failed="pop" not in trial)
    rows, status = kept(tmp_path / "s.db")
    assert [number for number, _ in rows] == list(range(30))
    assert 0 < sum(verdict for _, verdict in rows) < 30
    assert status == "finished"
    assert trials.progress.tests == 30


def test_the_same_seed_gives_the_same_trials(tmp_path):
    def draws():
        found = []
        for trial in swarm(["a", "b", "c"], seed=5, tests=20, store=":memory:"):
            with trial:
                found.append((trial.seed, str(trial.configuration), trial.choose()))
        return found

    assert draws() == draws()


def test_an_exception_under_with_is_a_fault_and_the_loop_goes_on(tmp_path):
    trials = swarm(["a", "b"], tests=20, store=str(tmp_path / "s.db"))
    for trial in trials:
        with trial:
            if trial.number % 5 == 0:
                raise KeyError(trial.number)
    assert [(f.kind, f.count) for f in trials.faults] == [("exception", 4)]


def test_an_exception_that_leaves_the_loop_keeps_what_was_recorded(tmp_path):
    def loop():
        for trial in swarm(["a", "b"], tests=20, store=str(tmp_path / "s.db")):
            if trial.number == 7:
                raise ZeroDivisionError
            trial.record()

    with pytest.raises(ZeroDivisionError):
        loop()
    rows, status = kept(tmp_path / "s.db")
    assert rows == [(number, 0) for number in range(7)]
    assert status == "interrupted"


def test_a_script_that_dies_of_an_exception_keeps_what_was_recorded(tmp_path):
    code = """
        from swarmtest import swarm
        for trial in swarm(["a", "b"], tests=20, store="s.db"):
            if trial.number == 7: raise ZeroDivisionError
            trial.record()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError"
    assert len(kept(tmp_path / "s.db")[0]) == 7


def test_break_right_after_record_keeps_that_trial(tmp_path):
    trials = swarm(["a", "b"], tests=20, store=str(tmp_path / "s.db"))
    for trial in trials:
        trial.record(failed=trial.number == 7 and "it broke")
        if trial.number == 7:
            break
    rows, status = kept(tmp_path / "s.db")
    assert rows[-1] == (7, 1)
    assert status == "interrupted"


def test_an_exception_after_record_keeps_that_trial(tmp_path):
    def loop():
        for trial in swarm(["a", "b"], tests=20, store=str(tmp_path / "s.db")):
            trial.record(failed="it broke")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert kept(tmp_path / "s.db")[0] == [(0, 1)]


def test_a_trial_that_was_not_recorded_is_an_error(tmp_path):
    def loop():
        for trial in swarm(["a", "b"], tests=20, store=str(tmp_path / "s.db")):
            if trial.number != 3:
                trial.record()

    with pytest.raises(UserError, match="trial 3 was not recorded"):
        loop()
    assert len(kept(tmp_path / "s.db")[0]) == 3


def test_a_trial_cannot_be_recorded_twice():
    for trial in swarm(["a", "b"], tests=1, store=":memory:"):
        trial.record()
        with pytest.raises(UserError, match="already recorded"):
            trial.record()


def test_a_misspelt_feature_in_a_loop_is_an_error_not_a_feature_that_is_off():
    for trial in swarm(["push", "pop"], tests=1, store=":memory:"):
        trial.record()
        with pytest.raises(UserError, match="push"):
            _ = "psuh" in trial


def test_a_campaign_of_a_loop_cannot_be_resumed_which_is_said(tmp_path, swarmtest, refused):
    for trial in swarm(["push", "pop"], tests=3, store=str(tmp_path / "s.db")):
        trial.record()
    refused(swarmtest("resume", "--store", "s.db", cwd=tmp_path), "loop")


# A strategy that learns may say which targets it wants to hear of.


class Noisy(Machine):
    @action
    def one(self) -> None:
        self.event("one")

    @action
    def two(self) -> None:
        self.event("two")


@dataclass
class Curious:
    wants: frozenset[str] | None = None
    heard: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        return toss(space, [0.9, 0.9], rng)

    def tell(self, result: Result) -> None:
        self.heard += result.hits
        self.notes = [f"heard of {len(self.heard)} hits"]


def heard_by(strategy: Curious) -> tuple[set[str], list[str]]:
    with open_store(":memory:") as store:
        outcome = Campaign(Noisy, strategy, Budget(tests=50), workers=0, store=store).run()
    return set(strategy.heard), outcome.notes


def test_all_hits_are_told_unless_it_says_otherwise() -> None:
    assert heard_by(Curious())[0] == {"event:one", "event:two"}


def test_only_what_it_wants_is_told() -> None:
    assert heard_by(Curious(wants=frozenset({"event:two"})))[0] == {"event:two"}


def test_what_was_hit_before_is_told_again_when_a_campaign_goes_on() -> None:
    with open_store(":memory:") as store:
        first = Campaign(Noisy, Curious(), Budget(tests=20), workers=0, store=store)
        number = first.run().campaign
        again = Curious(wants=frozenset({"event:two"}))
        second = Campaign(Noisy, again, Budget(tests=20), workers=0, store=store)
        second._number = number
        second.run()
    assert set(again.heard) == {"event:two"}


def test_its_notes_are_the_campaign_s() -> None:
    strategy = Curious()
    assert heard_by(strategy)[1] == strategy.notes
