"""Failing tests become small, and keep their fault."""

from __future__ import annotations

import os
import threading

import pytest
from picky import BUG, Picky

from swarmtest import Machine, UserError, action
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.reduce.reduction import reduce_test
from swarmtest.subjects import MachineSubject


class Fragile(Machine):
    """Ends its process at the third `kill` after an `arm`; another bug waits at five `noise`s."""

    steps = 60

    def start(self):
        self.armed, self.kills, self.noises = False, 0, 0

    @action
    def arm(self):
        self.armed = True

    @action
    def kill(self):
        self.kills += self.armed
        if self.kills == 3:
            os._exit(7)

    @action
    def noise(self):
        self.noises += 1
        assert self.noises < 5


def steps_of(*names):
    return {
        "format": "swarmtest machine test 1",
        "subject": "",
        "steps": [[name, []] for name in names],
    }


def test_a_test_that_ends_its_process_is_reduced_to_what_ends_it():
    subject = MachineSubject(Fragile)
    test = steps_of(*["noise", "kill", "arm", "noise", "kill", "noise", "kill", "arm", "kill"])
    fault = "the program ended its process with exit status 7"
    from swarmtest.core.result import Fault

    reduced = reduce_test(subject, test, Fault("exit", fault).id)
    assert [step[0] for step in reduced.test["steps"]] == ["arm", "kill", "kill", "kill"]
    assert reduced.complete
    assert reduced.fault
    assert reduced.fault.signature == fault
    assert 4 < reduced.runs < 40


def test_it_is_the_same_fault_not_just_any_failure():
    subject = MachineSubject(Fragile)
    test = steps_of(*["noise"] * 4, "arm", "kill", "kill", "noise")
    fault = subject.replay(test).fault
    assert fault
    reduced = reduce_test(subject, test, fault.id)
    assert [step[0] for step in reduced.test["steps"]] == ["noise"] * 5
    assert (reduced.before, reduced.size) == (8, 5)


def test_a_test_that_passes_or_fails_otherwise_is_refused():
    with pytest.raises(UserError, match="does not show fault 00000000 when it is run again"):
        reduce_test(MachineSubject(Fragile), steps_of(*["noise"] * 5), "00000000")


def test_when_the_time_is_up_the_smallest_so_far_is_the_answer():
    subject = Picky()
    test = {"subject": "picky", "words": ["a"] * 50 + ["c", "c"]}
    reduced = reduce_test(subject, test, BUG.id, budget=0.0)
    assert not reduced.complete
    assert reduced.test == test
    assert reduce_test(subject, test, BUG.id).test["words"] == ["c", "c"]


def test_progress_is_told_after_each_run():
    told = []
    test = {"subject": "picky", "words": ["a"] * 5 + ["c", "c"]}
    reduced = reduce_test(Picky(), test, BUG.id, on_run=lambda *told_now: told.append(told_now))
    assert told[-1] == (reduced.runs, 2)
    assert [runs for runs, _ in told] == list(range(1, reduced.runs + 1))


class Counting(Machine):
    """Notes the process of every test."""

    steps = 40
    pids = ""

    def start(self):
        self.ups = 0
        with open(self.pids, "a") as out:
            print(os.getpid(), file=out)

    @action
    def up(self):
        self.ups += 1
        assert self.ups < 3

    @action
    def look(self):
        pass


def counted(machine, tmp_path, count=40):
    machine.pids = str(tmp_path / "pids")
    subject = MachineSubject(machine)
    names = ["look", "up", "look", "look"] * (count // 4)
    result = run_isolated(lambda: subject.replay(steps_of(*names)), seconds=60)
    open(machine.pids, "w").close()
    assert result.fault
    reduced = reduce_test(subject, steps_of(*names), result.fault.id, workers=1)
    processes = (tmp_path / "pids").read_text().split()
    return reduced, processes


def test_candidates_are_run_in_a_process_that_stands_ready(tmp_path):
    reduced, processes = counted(Counting, tmp_path)
    assert reduced.size == 3
    # The original, the pool's process, the confirmation, and the test as it is told again.
    assert len(set(processes)) <= 4 < len(processes)


class Remembering(Counting):
    """Fails at a third `up`, or at once in a process that has failed before."""

    failed = False

    @action
    def up(self):
        self.ups += 1
        if self.ups == 3 or Remembering.failed:
            Remembering.failed = True
            raise AssertionError("too high")


def test_a_program_that_remembers_earlier_tests_is_given_a_process_for_each(tmp_path):
    machine = Remembering
    machine.pids = str(tmp_path / "pids")
    subject = MachineSubject(machine)
    test = steps_of(*["look", "up", "look", "look"] * 10)
    found = subject.replay(test).fault
    assert found
    fault = found.id
    Remembering.failed = False
    reduced = reduce_test(subject, test, fault)
    assert [step[0] for step in reduced.test["steps"]] == ["up"] * 3
    assert reduced.complete


class Threaded(Counting):
    @action
    def look(self):
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def test_a_process_in_which_a_test_left_a_thread_answers_no_more(tmp_path):
    reduced, processes = counted(Threaded, tmp_path, count=12)
    assert reduced.size == 3
    assert len(set(processes)) > 4
