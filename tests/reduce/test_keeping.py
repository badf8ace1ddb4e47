"""Tests become small, and keep what they are to keep: coverage, targets, mutants, ..."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import keeping_programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keeping_programs import Till

from swarmtest import (
    Coverage,
    Machine,
    Pool,
    UserError,
    action,
    booleans,
    consumes,
    integers,
    lists,
    one_of,
    sampled_from,
    text,
    tuples,
)
from swarmtest.coverage import Target
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.killing import kills_of
from swarmtest.mutate.loaded_files import source_of
from swarmtest.reduce.keep_criteria import Keep
from swarmtest.reduce.quality import quality_of
from swarmtest.reduce.reduction import hits_of, reduce_test
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.machine.test import MachineTest, Step


class TillMachine(Machine):
    steps = 40

    def start(self):
        self.till = Till()
        self.seen = 0

    @action(price=integers(1, 99))
    def sell(self, price):
        assert self.till.sell(price) == self.seen + 1
        self.seen += 1

    @action
    def discount(self):
        before = self.till.sum
        self.till.discount()
        if self.till.sum < before:
            self.event("discounted")

    @action
    def receipt(self):
        self.till.receipt()
        if len(self.till.receipts) == 3:
            self.event("three receipts")

    @action
    def countdown(self):
        assert self.till.countdown() == 0

    @action
    def fragile(self):
        self.till.fragile()


def made_of(*steps):
    return MachineTest("", tuple(Step(*s) for s in steps)).to_json()


def names(test):
    return [step[0] for step in test["steps"]]


@pytest.fixture
def till():
    return MachineSubject(TillMachine)


LONG = made_of(
    *[("sell", (7,)), ("receipt",), ("discount",), ("countdown",), ("sell", (60,))] * 4,
    ("receipt",),
    ("discount",),
)


def key(name):
    return Target.parse(name).key


def test_the_targets_that_are_named_are_still_hit(till):
    reduced = reduce_test(till, LONG, Keep(targets=frozenset({key("event:discounted")})))
    assert names(reduced.test) == ["sell", "sell", "discount"]
    assert reduced.fault is None
    assert reduced.complete


def test_a_share_of_the_targets_is_enough_if_that_is_said(till):
    both = frozenset({key("event:discounted"), key("event:three receipts")})
    assert names(reduce_test(till, LONG, Keep(targets=both, share=0.5)).test) in (
        ["sell", "sell", "discount"],
        ["sell", "receipt", "receipt", "receipt"],
    )


def run_with_coverage(code: str) -> str:
    """In a process of its own, because coverage has to be there before the program is."""
    places = [".", str(Path(keeping_programs.__file__).parent)]
    program = f"import sys; sys.path[:0] = {places!r}\n" + code
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_less_coverage_to_keep_makes_smaller_tests():
    told = run_with_coverage(
        """
from swarmtest import Coverage
coverage = Coverage("line", cover=["keeping_programs"]).install()
from test_keeping import LONG, TillMachine
from swarmtest.subjects import MachineSubject
from swarmtest.reduce.keep_criteria import Keep
from swarmtest.reduce.reduction import hits_of, reduce_test
subject = MachineSubject(TillMachine)
whole = hits_of(subject, LONG, coverage)[1]
for share in (1.0, 0.9, 0.7, 0.5):
    reduced = reduce_test(subject, LONG, Keep(coverage=share), coverage=coverage)
    kept = hits_of(subject, reduced.test, coverage)[1]
    assert len(kept & whole) >= share * len(whole), (share, len(kept), len(whole))
    print(reduced.size)
"""
    )
    sizes = [int(line) for line in told.splitlines()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


class Trap(Machine):
    """Without `guard`, `step` fails: a smaller test that covers as much may fail."""

    def start(self):
        self.guarded = False

    @action
    def guard(self):
        self.guarded = True

    @action
    def step(self):
        self.event("stepped")
        assert self.guarded


def test_a_test_that_passes_goes_on_to_pass():
    subject = MachineSubject(Trap)
    whole = made_of(("guard",), ("guard",), ("step",), ("step",))
    reduced = reduce_test(subject, whole, Keep(targets=frozenset({key("event:stepped")})))
    assert names(reduced.test) == ["guard", "step"]


def mutants_on(text_of_line):
    source = source_of(keeping_programs.__file__)
    found = [m for m in mutants_of(source) if text_of_line in m.before]
    assert found
    return found


def test_the_mutants_that_are_named_are_still_killed(till):
    mutant = next(m for m in mutants_on("self.sold += 1") if "-=" in m.after)
    reduced = reduce_test(till, LONG, Keep(mutants=(mutant,)))
    assert names(reduced.test) == ["sell"]
    assert kills_of(till, [mutant]).survivor(reduced.test) is None
    assert kills_of(till, [mutant]).survivor(made_of(("countdown",))) == mutant


def test_a_mutant_that_never_ends_and_one_that_ends_its_process_are_killed(till):
    endless = next(m for m in mutants_on("left -= 1") if m.operator == "delete")
    deadly = next(m for m in mutants_on("self.sold < 0") if ">= 0" in m.after)
    kills = kills_of(till, [endless, deadly])
    assert kills.killed(made_of(("countdown",), ("fragile",))) == [endless, deadly]
    assert kills.killed(made_of(("countdown",))) == [endless]
    reduced = reduce_test(till, LONG, Keep(mutants=(endless,)))
    assert names(reduced.test) == ["countdown"]


def test_the_program_is_as_it_was_after_mutants(till):
    before = Till.sell.__code__
    kills_of(till, mutants_on("self.sold += 1")).killed(LONG)
    assert Till.sell.__code__ is before


def test_a_mutant_that_the_test_does_not_kill_cannot_be_kept(till):
    mutant = mutants_on("left -= 1")[0]
    with pytest.raises(UserError, match=f"does not kill mutant {mutant.id}"):
        reduce_test(till, made_of(("sell", (1,))), Keep(mutants=(mutant,)))


def test_a_command_decides(till):
    reduced = reduce_test(till, LONG, Keep(command="grep -c discount {} | grep -q [2-9]"))
    assert names(reduced.test) == ["discount", "discount"]


def test_what_the_original_itself_does_not_keep_is_refused(till):
    with pytest.raises(UserError, match="ends with status 1, not 0"):
        reduce_test(till, LONG, Keep(command="grep -q nothing {}"))
    nowhere = Keep(targets=frozenset({key("event:never")}))
    with pytest.raises(UserError, match="it hits 0 of 1 targets, 1 are needed"):
        reduce_test(till, LONG, nowhere)


@pytest.mark.parametrize("wrong", [{"coverage": 0.0}, {"coverage": 1.1}, {"runs": (3, 2)}])
def test_what_cannot_be_kept_is_said_at_once(wrong):
    with pytest.raises(UserError, match="cannot be"):
        Keep(**wrong)


class Flaky(Machine):
    """Fails every third time that it is run, wherever it is run."""

    counter = ""

    @action
    def bump(self):
        pass

    @action
    def shaky(self):
        with open(self.counter, "a") as file:
            file.write("x")
        assert os.path.getsize(self.counter) % 3


@pytest.fixture
def flaky(tmp_path, monkeypatch):
    monkeypatch.setattr(Flaky, "counter", str(tmp_path / "count"))
    return MachineSubject(Flaky)


def fault_of_flaky(subject):
    test = made_of(("shaky",))
    return next(f for f in (subject.replay(test).fault for _ in range(3)) if f).id


def test_a_flaky_fault_is_reduced_if_some_of_several_runs_are_enough(flaky):
    whole = made_of(*[("bump",)] * 5, ("shaky",), *[("bump",)] * 5)
    fault = fault_of_flaky(flaky)
    reduced = reduce_test(flaky, whole, Keep(fault=fault, runs=(1, 3)), workers=1)
    assert names(reduced.test) == ["shaky"]
    assert reduced.complete


def test_a_fault_that_does_not_show_often_enough_is_said(flaky):
    fault = fault_of_flaky(flaky)
    with pytest.raises(UserError, match=r"in 1 of 3 runs, 2 are needed"):
        reduce_test(flaky, made_of(("shaky",)), Keep(fault=fault, runs=(2, 3)))
    with pytest.raises(UserError, match=r"does not show fault 00000000 .* 2 times"):
        reduce_test(flaky, made_of(("bump",)), Keep(fault="00000000", runs=(1, 2)))


def test_a_reduction_that_was_stopped_goes_on_where_it_was(till):
    keep = Keep(targets=frozenset({key("event:three receipts")}))
    answers: dict[str, bool] = {}
    asked = 0

    def stop(runs, size):
        nonlocal asked
        asked += 1
        if asked == 6:
            raise KeyboardInterrupt

    first = reduce_test(till, LONG, keep, on_run=stop, answers=answers, workers=1)
    assert first.interrupted
    assert not first.complete
    known = len(answers)
    assert known >= 5
    whole = reduce_test(till, LONG, keep, workers=1)
    rest = reduce_test(till, LONG, keep, answers=answers, workers=1)
    assert rest.test == whole.test
    assert rest.runs <= whole.runs - known + 1
    # The original is run, and what is found once more in a process of its own.
    assert reduce_test(till, LONG, keep, answers=answers).runs <= 2


def test_two_workers_find_the_same(till):
    keep = Keep(targets=frozenset({key("event:three receipts")}))
    one = reduce_test(till, LONG, keep, workers=1)
    two = reduce_test(till, LONG, keep, workers=2)
    assert one.test == two.test
    assert names(two.test) == ["sell", "receipt", "receipt", "receipt"]


class Slow(Machine):
    @action
    def wait(self):
        time.sleep(1000)

    @action
    def fail(self):
        raise ValueError("now")


def test_a_candidate_that_hangs_does_not_hold_up_the_rest():
    subject = MachineSubject(Slow)
    whole = made_of(("fail",), ("wait",), ("wait",), ("wait",))
    fault = subject.replay(whole).fault
    begun = time.monotonic()
    reduced = reduce_test(subject, whole, fault.id, budget=10.0)
    assert time.monotonic() - begun < 60
    assert names(reduced.test) in (["fail"], ["fail", "wait"])


class Shop(Machine):
    goods = Pool()

    def start(self):
        self.stock = {}

    @action(name=text("abcdef", 6, 2), price=integers(3, 500), into=goods)
    def make(self, name, price):
        key = len(self.stock)
        self.stock[key] = (name, price)
        return key

    @action(good=goods)
    def look(self, good):
        assert good in self.stock

    @action(good=consumes(goods), kind=sampled_from(["plain", "gift", "express"]), fast=booleans())
    def sell(self, good, kind, fast):
        _, price = self.stock.pop(good)
        assert not (price >= 42 and kind != "plain")

    @action(good=goods)
    def label(self, good):
        if len(self.stock[good][0]) < 3:
            raise LookupError("short")


def test_values_become_simple_but_stay_what_the_machine_could_have_drawn():
    subject = MachineSubject(Shop)
    one = made_of(
        ("make", ("cab", 400), 1),
        ("make", ("fade", 17), 5),
        ("look", ({"$ref": 1},)),
        ("sell", ({"$ref": 5}, "gift", True)),
        ("sell", ({"$ref": 1}, "express", True)),
    )
    fault = subject.replay(one).fault
    reduced = reduce_test(subject, one, fault.id)
    assert reduced.test["steps"] == [
        ["make", ["aa", 42], 1, ""],
        ["sell", [{"$ref": 1}, "gift", False]],
    ]
    other = made_of(
        ("make", ("beef", 90), 3),
        ("make", ("dd", 3), 4),
        ("sell", ({"$ref": 3}, "gift", True)),
        ("sell", ({"$ref": 4}, "plain", False)),
    )
    assert reduce_test(subject, other, fault.id).test["steps"] == reduced.test["steps"]


class Suspect(Machine):
    def start(self):
        self.open = False

    @action
    def unlock(self):
        self.open = True

    @action(raises=PermissionError)
    def enter(self):
        self.event("tried")
        if not self.open:
            raise PermissionError


def test_the_printed_test_knows_what_its_steps_raise_now():
    subject = MachineSubject(Suspect)
    whole = made_of(("unlock",), ("enter",))
    reduced = reduce_test(subject, whole, Keep(targets=frozenset({key("event:tried")})))
    assert reduced.test["steps"] == [["enter", [], 0, "PermissionError"]]
    assert "with suppress(PermissionError)" in subject.code(reduced.test)


def test_quality_tells_rates_beside_those_of_chance(till):
    keep = Keep(targets=frozenset({key("event:three receipts")}))
    reduced = reduce_test(till, LONG, keep)
    kills = kills_of(till, mutants_on("self.sold += 1") + mutants_on("left -= 1"))
    quality = quality_of(till, LONG, reduced, kills=kills)
    assert quality.srr == pytest.approx(1 - 4 / 22)
    assert quality.cpr == 0.5
    assert 0 < quality.mpr < 1
    assert 0 <= quality.random_cpr <= 1
    assert 0 <= quality.random_mpr <= 1


def test_hits_of_tells_what_a_test_reaches(till):
    result, hits = hits_of(till, LONG)
    assert result.fault is None
    assert hits == {key("event:discounted"), key("event:three receipts")}


GENERATORS = [
    integers(3, 9),
    integers(-5, 2**70),
    booleans(),
    sampled_from("xyz"),
    text("ab", 4, 1),
    lists(integers(0, 3), 3),
    tuples(integers(1, 2), booleans()),
    one_of(text("q", 2), integers(7, 8)),
]


@given(st.sampled_from(GENERATORS), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_a_generator_allows_what_it_draws(generator, rng):
    from swarmtest.subjects.machine.generators import allowed_by

    assert allowed_by(generator)(generator.draw(rng))


@pytest.mark.parametrize(
    ("generator", "value"),
    [
        (integers(3, 9), 2),
        (integers(3, 9), 4.0),
        (integers(0, 1), True),
        (text("ab", 4, 1), ""),
        (text("ab", 4, 1), "c"),
        (lists(integers(0, 3), 3), [4]),
        (tuples(integers(1, 2), booleans()), (1, 1)),
        (one_of(text("q", 2), integers(7, 8)), 6),
    ],
)
def test_a_generator_does_not_allow_what_it_cannot_draw(generator, value):
    from swarmtest.subjects.machine.generators import allowed_by

    assert not allowed_by(generator)(value)


def test_coverage_of_nothing_cannot_be_kept():
    with Coverage("line", cover=["tabnanny"]) as coverage:
        subject = MachineSubject(Trap)
        with pytest.raises(UserError, match="hits no target"):
            reduce_test(subject, made_of(("guard",)), Keep(coverage=0.9), coverage=coverage)
