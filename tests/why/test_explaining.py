"""A fault is explained by experiments on one reduced test; here the truth is known."""

from __future__ import annotations

import functools
import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swarmtest import (
    Flag,
    Machine,
    Pool,
    action,
    consumes,
    integers,
    lists,
    open_store,
    sampled_from,
    tuples,
)
from swarmtest.campaign.campaign import Campaign
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.machine.test import MachineTest, Step
from swarmtest.subjects.subject import Subject
from swarmtest.why import (
    Explanation,
    VariantBudget,
    confirmation,
    explain_fault,
    explain_test,
    explanations_of,
    failing_test,
)
from swarmtest.why.explanation import (
    BLOCKS,
    IRRELEVANT,
    SUPPRESSOR,
    TRIGGER,
    InsertionFact,
    StepFact,
)


class Rope(Machine):
    """Fails when it is sliced where it was cut before, unless it was balanced in between."""

    steps = 30

    def start(self) -> None:
        self.end = self.cut_at = -1
        self.shade = 0

    @action(end=integers(1, 60), colour=integers(0, 99))
    def add(self, end: int, colour: int) -> None:
        self.end = end

    @action(at=integers(1, 60))
    def chop(self, at: int) -> None:
        self.cut_at = at if at == self.end else self.cut_at

    @action(at=integers(1, 60))
    def trim(self, at: int) -> None:
        self.chop(at)

    @action
    def rebalance(self) -> None:
        self.cut_at = -1

    @action(strength=integers(0, 100))
    def slice(self, strength: int) -> None:
        assert self.cut_at < 0 or strength < 37

    @action
    def look(self) -> None:
        pass

    @action
    def burn(self) -> None:
        raise ValueError("another fault")


def steps_of(machine: type[Machine], *steps: Step, **settings: Any) -> tuple[Any, Any, Fault]:
    subject = MachineSubject(machine)
    test = MachineTest(subject.name, steps, settings).to_json()
    fault = subject.replay(test).fault
    assert fault is not None
    return subject, test, fault


ROPE = (Step("add", (20, 5)), Step("chop", (20,)), Step("slice", (50,)))


@pytest.fixture(scope="module")
def rope() -> Explanation:
    return explain_test(*steps_of(Rope, *ROPE))


def roles(explanation: Explanation) -> dict[str, str]:
    return {fact.feature: fact.role for fact in explanation.insertions}


def values(explanation: Explanation) -> dict[str, str]:
    return {f"{fact.step}.{fact.label}": fact.text for fact in explanation.values}


def test_the_steps_that_are_needed_and_their_order(rope):
    assert rope.needed == {"add": 1, "chop": 1, "slice": 1}
    assert {(fact.before, fact.after) for fact in rope.order} == {(0, 1), (0, 2), (1, 2)}


def test_a_feature_that_does_the_same_is_an_alternative(rope):
    assert [step.alternatives for step in rope.steps] == [(), ("trim",), ()]


def test_a_value_that_does_not_matter_is_free(rope):
    assert values(rope)["0.colour"] == "any value"


def test_the_bound_of_a_value_is_found_exactly(rope):
    assert values(rope)["2.strength"] == "≥ 37"


def test_a_relation_between_two_values_is_found_and_judged_on_fresh_variants(rope):
    assert next(fact.text for fact in rope.relations) == "add.end = chop.at"
    assert all(fact.precision > 0.9 and fact.recall > 0.9 for fact in rope.relations)
    assert all(fact.fitting >= fact.shown > 5 for fact in rope.relations)


def test_what_destroys_the_fault_is_a_suppressor_with_its_place(rope):
    facts = {fact.feature: fact for fact in rope.insertions}
    assert facts["rebalance"].role == SUPPRESSOR
    assert facts["rebalance"].gaps == (2,)


def test_what_does_not_matter_is_irrelevant_with_a_bound(rope):
    [look] = [fact for fact in rope.insertions if fact.feature == "look"]
    assert (look.role, look.gone) == (IRRELEVANT, 0)
    assert look.runs >= 20
    assert look.high < 0.2


def test_another_fault_on_the_way_is_no_evidence(rope):
    assert roles(rope).get("burn") is None  # it always fails, and never tells anything


def test_the_paragraph_says_it_in_one_sentence(rope):
    text = rope.paragraph
    assert text.startswith("needs add, then chop (or trim), then slice; with add.end = chop.at")
    assert "never with rebalance after chop" in text
    assert f"seen in {rope.kept} of {rope.variants} variants." in text
    assert rope.kept == rope.variants > 50


def test_generated_tests_confirm_the_explanation(rope):
    assert rope.confirmation is not None
    assert rope.confirmation.is_enough
    assert set(rope.confirmation.features) == {"add", "chop", "trim", "slice"}


def test_the_same_seed_gives_the_same_explanation(rope):
    again = explain_test(*steps_of(Rope, *ROPE))
    assert replace(again, cpu_seconds=0) == replace(rope, cpu_seconds=0)


def test_an_explanation_survives_json(rope):
    assert Explanation.from_json(json.loads(json.dumps(rope.to_json()))) == rope


def test_the_budget_holds_and_a_spent_budget_is_said():
    found = explain_test(*steps_of(Rope, *ROPE), budget=VariantBudget(runs=60), confirming=False)
    assert found.runs <= 60 + 6  # those that check the test itself come first
    assert not found.is_complete
    assert "the budget was spent before all experiments were made" in found.notes
    assert found.needed == {"add": 1, "chop": 1, "slice": 1}


class Free(Machine):
    """Fails after three different steps, in any order, with any values."""

    def start(self) -> None:
        self.seen: set[str] = set()

    def see(self, name: str) -> None:
        self.seen.add(name)
        assert len(self.seen) < 3

    @action(number=integers(0, 99))
    def one(self, number: int) -> None:
        self.see("one")

    @action(number=integers(0, 99))
    def two(self, number: int) -> None:
        self.see("two")

    @action
    def three(self) -> None:
        self.see("three")


def test_what_was_not_tried_is_not_claimed():
    case = steps_of(Free, Step("one", (1,)), Step("two", (1,)), Step("three"))
    tried = explain_test(*case, confirming=False)
    assert tried.paragraph.startswith("needs one, two and three, in any order; with any values;")
    cut_short = explain_test(*case, budget=VariantBudget(runs=22), confirming=False)
    assert "any order" not in cut_short.paragraph
    assert "any values" not in cut_short.paragraph
    assert not cut_short.is_complete


def test_a_step_that_is_not_needed_is_left_out_first():
    found = explain_test(*steps_of(Rope, Step("look"), *ROPE), confirming=False)
    assert [step.feature for step in found.steps] == ["add", "chop", "slice"]


def test_a_test_that_passes_is_refused_in_one_line():
    subject, test, fault = steps_of(Rope, *ROPE)
    passing = subject.with_parts(test, list(ROPE[:2]))
    with pytest.raises(UserError, match=f"does not show fault {fault.id} in 6 runs"):
        explain_test(subject, passing, fault)


class Deadly(Rope):
    @action(strength=integers(0, 100))
    def slice(self, strength: int) -> None:
        if self.cut_at >= 0:
            os._exit(3)


def test_a_fault_that_ends_its_process_is_explained_too():
    budget = VariantBudget(runs=150, cpu_seconds=60)
    subject = MachineSubject(Deadly)
    test = MachineTest(subject.name, ROPE).to_json()
    fault = Fault("exit", "the program ended its process with exit status 3")
    found = explain_test(subject, test, fault, budget=budget, confirming=False)
    assert {(fact.before, fact.after) for fact in found.order} == {(0, 1), (0, 2), (1, 2)}


LEFT: list[int] = []
"""What tests of `Leaky` leave behind in their process."""


class Leaky(Machine):
    """Fails only in a process in which nothing ran before."""

    @action
    def go(self) -> None:
        LEFT.append(1)
        assert len(LEFT) > 1


def test_a_fault_that_only_a_fresh_process_shows_gets_fresh_processes():
    subject = MachineSubject(Leaky)
    test = MachineTest(subject.name, (Step("go"),)).to_json()
    fault = Fault("exception", "AssertionError [Leaky.go: assert len(LEFT) > 1]")
    found = explain_test(subject, test, fault, budget=VariantBudget(runs=30), confirming=False)
    assert found.needed == {"go": 1}
    assert any("its own process" in note for note in found.notes)


class Guarded(Machine):
    def start(self) -> None:
        self.items: list[int] = []

    @action(item=integers(0, 9))
    def put(self, item: int) -> None:
        self.items.append(item)

    @action
    def clear(self) -> None:
        self.items.clear()

    @action(when=lambda self: self.items)
    def take(self) -> None:
        raise RuntimeError("broken")


def test_a_step_that_keeps_a_needed_one_from_running_is_no_suppressor():
    found = explain_test(*steps_of(Guarded, Step("put", (1,)), Step("take")), confirming=False)
    assert roles(found)["clear"] == BLOCKS
    assert [(fact.before, fact.after) for fact in found.order] == [(0, 1)]


class Files(Machine):
    files = Pool()
    dimensions = (Flag("safe"),)

    @action(into=files)
    def open(self) -> dict[str, bool]:
        return {"dirty": False}

    @action(file=files)
    def write(self, file: dict[str, bool]) -> None:
        file["dirty"] = True

    @action(file=files)
    def flush(self, file: dict[str, bool]) -> None:
        file["dirty"] = False

    @action(file=consumes(files), how=sampled_from(["fast", "slow", "sync"]))
    def close(self, file: dict[str, bool], how: str) -> None:
        assert self.settings["safe"] or how == "sync" or not file["dirty"]


def test_objects_of_pools_settings_and_options_are_understood():
    ref = {"$ref": 1}
    steps = (Step("open", (), 1), Step("write", (ref,)), Step("close", (ref, "fast")))
    found = explain_test(*steps_of(Files, *steps, safe=False), confirming=False)
    assert {(fact.before, fact.after) for fact in found.order} == {(0, 1), (0, 2), (1, 2)}
    assert values(found)["2.how"] == "in {'fast', 'slow'}"
    [setting] = found.settings
    assert (setting.name, setting.text, setting.kept) == ("safe", "not True", 0)
    assert roles(found)["flush"] == SUPPRESSOR


class Equal(Machine):
    """Needs five equal numbers of a thousand in a row, which no test of a campaign has."""

    steps = 10

    def start(self) -> None:
        self.last: list[int] = []

    @action(number=integers(0, 999))
    def say(self, number: int) -> None:
        self.last.append(number)
        assert len(self.last) < 5 or len(set(self.last[-5:])) > 1


class Rising(Equal):
    """Needs five numbers of which each is 13 more than the one before."""

    @action(number=integers(0, 999))
    def say(self, number: int) -> None:
        self.last.append(number)
        steps = [b - a for a, b in zip(self.last[-5:], self.last[-4:], strict=False)]
        assert steps != [13] * 4


def test_tests_in_which_arguments_repeat_confirm_what_needs_equal_values():
    found = explain_test(*steps_of(Equal, *[Step("say", (7,))] * 5))
    assert found.confirmation is not None
    assert found.confirmation.is_reusing
    assert found.confirmation.is_enough


def test_what_no_generated_test_shows_is_said_to_be_not_confirmed():
    from swarmtest.why.views import confirmation_line

    found = explain_test(*steps_of(Rising, *(Step("say", (n,)) for n in range(7, 70, 13))))
    assert found.confirmation is not None
    assert not found.confirmation.is_enough
    assert "holds near the failing test" in confirmation_line(found)


# In a store.


def test_a_fault_of_a_store_is_reduced_explained_and_kept_there():
    subject = MachineSubject(Rope)
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", 400, workers=0, store=store).run().campaign
        (fault,) = (f for f in store.faults(campaign) if "[Rope.slice: " in f.signature)
        found = explain_fault(store, fault.id[:5], subject=subject)
        assert explanations_of(store, campaign) == {fault.id: found}
        assert set(reductions_of(store, campaign)) == {fault.id}
        assert reductions_of(store, campaign)[fault.id].criterion == "fault"
    assert found.confirmation is not None
    assert found.confirmation.before_hits == fault.count
    assert found.confirmation.before_tests == 400


@pytest.mark.parametrize(
    "damage",
    [
        {"steps": [7]},
        {"steps": [{"feature": 7, "line": ""}]},
        {
            "insertions": [
                {"feature": "a", "role": "b", "gone": 1, "runs": 1, "low": "x", "high": 1}
            ]
        },
        {"order": [{"before": 5, "after": 9, "runs": 1}, {"before": 6, "after": 5, "runs": 1}]},
        {"format": "another"},
    ],
)
def test_a_damaged_explanation_in_a_store_is_passed_over(rope, damage):
    from swarmtest.store.records import CampaignRecord, ReductionRecord

    with open_store(":memory:") as store:
        campaign = store.add_campaign(CampaignRecord("s", "coin", 0, {}))
        details = json.dumps(rope.to_json() | damage)
        record = ReductionRecord("4ee18053", 0, 3, 3, "[]", details, criterion="why")
        store.add_reduction(campaign, record)
        assert explanations_of(store, campaign) == {}


def test_an_unknown_fault_is_refused_in_one_line():
    with open_store(":memory:") as store, pytest.raises(UserError, match="no test of a fault abc"):
        explain_fault(store, "abc")


# Other subjects.


def test_a_hypothesis_machine_is_explained():
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
    from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest

    class Account(RuleBasedStateMachine):
        @initialize()
        def begin(self):
            self.frozen, self.last = False, None

        @rule(amount=st.integers(1, 100))
        def deposit(self, amount):
            self.last = amount

        @rule(amount=st.integers(1, 100))
        def withdraw(self, amount):
            assert not (self.frozen and amount == self.last)

        @rule()
        def freeze(self):
            self.frozen = True

        @rule()
        def thaw(self):
            self.frozen = False

    subject = RuleBasedSubject(Account)
    steps = (
        RuleStep("begin", 1),
        RuleStep("freeze", 2),
        RuleStep("deposit", 3, (87,), texts={"amount": "87"}),
        RuleStep("withdraw", 4, (87,), texts={"amount": "87"}),
    )
    test = RuleTest(subject.name, steps).to_json()
    fault = subject.replay(test).fault
    assert fault is not None
    found = explain_test(subject, test, fault, confirming=False)
    assert found.needed == {"freeze": 1, "deposit": 1, "withdraw": 1}
    assert found.paragraph.startswith(
        "needs freeze and deposit, then withdraw; with deposit.amount = withdraw.amount; never"
    )
    assert roles(found)["thaw"] == SUPPRESSOR


def divide(text: str) -> None:
    if "/0" in text.replace(" ", ""):
        raise ZeroDivisionError


def test_a_test_of_a_grammar_is_explained_by_its_productions():
    from swarmtest.subjects import GrammarSubject

    grammar = 'start: expr\nexpr: NUMBER | expr "+" expr | expr "/" expr\nNUMBER: /[0-9]/'
    subject = GrammarSubject(grammar, divide)
    results = (subject.execute(subject.space.default(), seed) for seed in range(99))
    failed = next(result for result in results if result.fault)
    small = subject.reduced(failed.test, lambda test: subject.replay(test).fault is not None)
    assert failed.fault is not None
    found = explain_test(subject, small, failed.fault)
    assert found.needed == {"expr:expr/expr": 1, "expr:NUMBER": 1}
    assert "with any expr" in found.paragraph
    assert found.notes == (
        "the order of parts is not tried: a grammar says where its parts belong",
    )


def halt_without_comment(text: str) -> None:
    if "halt" in text and "note" not in text:
        raise RuntimeError("halted")


def test_a_production_that_makes_the_fault_disappear_is_found_by_inserting_it():
    from swarmtest.subjects import GrammarSubject

    grammar = (
        'start: line+\nline: "halt;" -> halt | "note;" -> note | "add;" -> add\n'
        '  | "{" line+ "}" -> block\n%ignore " "'
    )
    subject = GrammarSubject(grammar, halt_without_comment, length=(2, 30))
    results = (subject.execute(subject.space.default(), seed) for seed in range(99))
    failed = next(result for result in results if result.fault)
    small = subject.reduced(failed.test, lambda test: subject.replay(test).fault is not None)
    assert failed.fault is not None
    found = explain_test(subject, small, failed.fault, budget=VariantBudget(runs=900))
    assert found.needed == {"halt": 1}
    inserted = {fact.feature: fact for fact in found.insertions}
    assert inserted["note"].role == SUPPRESSOR
    assert inserted["note"].gone == inserted["note"].runs > 0
    assert inserted["add"].role == inserted["block"].role == IRRELEVANT
    assert "never with note" in found.paragraph


def test_a_fault_that_every_text_of_a_grammar_shows_is_explained_by_the_empty_one():
    from swarmtest.subjects import GrammarSubject

    subject = GrammarSubject('start: item*\nitem: "a" -> a | "b" -> b', always_fail, length=(1, 5))
    failed = subject.execute(subject.space.default(), 1)
    small = subject.reduced(failed.test, lambda test: subject.replay(test).fault is not None)
    assert failed.fault is not None
    assert explain_test(subject, small, failed.fault).paragraph.startswith("an empty test shows it")


def always_fail(text: str) -> None:
    raise ValueError("always")


class Words(Subject):
    """Fails if open comes before close without a key in between."""

    space = Space(["open", "key", "close", "nothing"])

    def generate(self, configuration: Any, seed: int) -> list[str]:
        return random.Random(seed).choices(sorted(configuration.included), k=9)

    def run(self, test: Any) -> Result:
        state = ""
        for word in test:
            if word == "close":
                assert state != "open"
            state = word if word in ("open", "key") else state
        return Result(Verdict.PASSED)


def test_a_test_of_parts_is_explained_without_values():
    subject = Words()
    fault = subject.replay(["open", "close"]).fault
    assert fault is not None
    found = explain_test(subject, ["open", "close"], fault, confirming=False)
    assert found.paragraph.startswith("needs open, then close; never with key after open")
    assert found.notes == ("steps are left out, moved and inserted, but not changed",)


def test_a_kind_of_test_without_experiments_says_so_in_one_line(tmp_path: Path):
    class Whole(Words):
        def parts(self, test: Any) -> list[Any]:
            return []

    subject = Whole()
    fault = subject.replay(["open", "close"]).fault
    assert fault is not None
    with pytest.raises(UserError, match=r"experiments are not supported for tests of .*Whole"):
        explain_test(subject, ["open", "close"], fault)


class Register(Machine):
    """Fails when a key is set twice; `put_all` sets keys too, with other arguments."""

    steps = 8

    def start(self) -> None:
        self.keys: set[int] = set()

    def put(self, key: int) -> None:
        assert key not in self.keys, "twice"
        self.keys.add(key)

    @action(key=integers(0, 5000), value=integers(6000, 7000))
    def set(self, key: int, value: int) -> None:
        self.put(key)

    @action(pairs=lists(tuples(integers(0, 5000), integers(6000, 7000)), max_size=3))
    def put_all(self, pairs: list[tuple[int, int]]) -> None:
        for key, _ in pairs:
            self.put(key)

    @action
    def look(self) -> None:
        pass


def test_a_feature_with_other_arguments_does_the_same():
    subject = MachineSubject(Register)
    for steps in (
        (Step("set", (7, 6001)), Step("set", (7, 6002))),
        (Step("put_all", ([{"$tuple": [7, 6001]}],)), Step("put_all", ([{"$tuple": [7, 6002]}],))),
    ):
        test = MachineTest(subject.name, steps).to_json()
        fault = subject.replay(test).fault
        assert fault is not None
        found = explain_test(subject, test, fault, confirming=False)
        assert found.named == {"set", "put_all"}


class Boxes(Machine):
    """Taking a box by its place or by its size leaves a hole, which `count` finds."""

    steps = 12

    def start(self) -> None:
        self.boxes: list[tuple[int, int]] = []
        self.holes = 0

    @action(width=integers(0, 5000), height=integers(0, 5000))
    def put(self, width: int, height: int) -> None:
        self.boxes.append((width, height))

    @action(which=integers(0, 9))
    def take(self, which: int) -> None:
        if which < len(self.boxes):
            self.boxes.pop(which)
            self.holes += 1

    @action(width=integers(0, 5000), height=integers(0, 5000))
    def take_like(self, width: int, height: int) -> None:
        if (width, height) in self.boxes:
            self.boxes.remove((width, height))
            self.holes += 1

    @action
    def count(self) -> None:
        assert not self.holes


def test_a_feature_may_need_the_arguments_of_another_step():
    steps = (Step("put", (17, 4711)), Step("take", (0,)), Step("count", ()))
    found = explain_test(*steps_of(Boxes, *steps), confirming=False)
    assert found.named == {"put", "take", "take_like", "count"}


class Shop(Machine):
    """An order with the key 3 loses its value."""

    steps = 6

    def start(self) -> None:
        self.orders: dict[int, int] = {}

    @action(orders=sampled_from([{}, {3: 17, 8: 2}, {8: 2}, {1: 1, 2: 2}]))
    def order(self, orders: dict[int, int]) -> None:
        self.orders |= orders

    @action
    def deliver(self) -> None:
        assert 3 not in self.orders


def test_a_dictionary_that_matters_is_neither_exactly_so_nor_of_any_value():
    order = {"$dict": [[3, 17], [8, 2]]}
    found = explain_test(
        *steps_of(Shop, Step("order", (order,)), Step("deliver", ())), confirming=False
    )
    assert found.paragraph.startswith("needs order, then deliver; with some values of order.orders")


# Other failing tests of the same fault.


class Door(Machine):
    """Two bugs that end in the same check: two lost keys, and three coats of paint."""

    steps = 12

    def start(self) -> None:
        self.lost = self.coats = 0

    @action
    def lose(self) -> None:
        self.lost += 1

    @action
    def paint(self) -> None:
        self.coats += 1

    @action
    def wait(self) -> None:
        pass

    @action
    def enter(self) -> None:
        assert self.lost < 2 and self.coats < 3  # noqa: PT018  # two bugs, one check

    @action
    def sleep(self) -> None:
        assert self.coats < 4


def explained_faults(
    machine: type[Machine], tests: int, check: str = "", *, confirming: bool = False
) -> dict[str, Explanation]:
    """The explanations of a machine's faults, or only of those that a check shows."""
    subject = MachineSubject(machine)
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", tests, workers=0, store=store).run().campaign
        for fault in store.faults(campaign):
            if check in fault.signature:
                explain_fault(store, fault.id, subject=subject, confirming=confirming)
        return {e.steps[-1].feature: e for e in explanations_of(store, campaign).values()}


def test_other_failing_tests_follow_the_rule_or_are_said_to_need_something_else(monkeypatch):
    # Forks of a large process take CPU time: fewer than ten tests would fit into the usual time.
    monkeypatch.setattr("swarmtest.why.other_tests._CPU_SECONDS", 60.0)
    found = explained_faults(Door, 60, "Door.enter", confirming=True)["enter"]
    assert found.others is not None
    assert found.others.tests == 10
    # Tests with the other bug do not have the step that this rule needs.
    other = {2: "“3 × paint, enter”", 3: "“2 × lose, enter”"}[len(found.steps) - 1]
    assert 0 < found.others.fitting < 10
    assert [shape.partition(" (")[0] for shape in found.others.shapes] == [other]
    assert f"The rule holds in {found.others.fitting} of 10 other failing tests" in found.paragraph


class Shelf(Machine):
    """One bug that two actions show, each in a check of its own."""

    steps = 12

    def start(self) -> None:
        self.broken = False

    @action
    def overload(self) -> None:
        self.broken = True

    @action
    def dust(self) -> None:
        pass

    @action
    def look(self) -> None:
        assert not self.broken

    @action
    def use(self) -> None:
        assert not self.broken


def test_two_faults_with_the_same_rule_are_probably_the_same_bug():
    found = explained_faults(Shelf, 60)
    assert found["look"].same_as == (found["use"].fault,)
    assert found["use"].same_as == (found["look"].fault,)
    assert "Probably the same bug as" in found["use"].paragraph


def test_what_fails_too_is_not_said_not_to_matter():
    steps = (StepFact("set", "set(1)"), StepFact("items", "items()", alike=("size",)))
    inserted = [InsertionFact(name, IRRELEVANT, 0, 30, 0.0, 0.11) for name in ("look", "size")]
    paragraph = Explanation("4ee18053", steps, insertions=tuple(inserted)).paragraph
    assert "(size fails too)" in paragraph
    assert "Does not matter: look (it changes at most 11% of the tests)" in paragraph


def test_faults_that_need_different_steps_are_not_called_the_same():
    found = explained_faults(Door, 60)
    assert found.keys() == {"enter", "sleep"}
    assert found["sleep"].needed == {"paint": 4, "sleep": 1}
    assert not found["sleep"].same_as


# Fresh tests, and commands.


class Kettle(Machine):
    """Fails when it boils twice; `unplug` keeps it from boiling in the rest of the test."""

    steps = 10

    def start(self) -> None:
        self.boiled = 0
        self.plugged = True

    @action
    def boil(self) -> None:
        self.boiled += self.plugged
        assert self.boiled < 3

    @action
    def unplug(self) -> None:
        self.plugged = False

    @action
    def fill(self) -> None:
        pass

    @action
    def pour(self) -> None:
        pass

    @action
    def look(self) -> None:
        pass

    @action
    def wipe(self) -> None:
        pass


def test_enabling_a_feature_in_fresh_tests_shows_what_it_does():
    subject = MachineSubject(Kettle)
    test = MachineTest(subject.name, (Step("boil"),) * 3).to_json()
    fault = subject.replay(test).fault
    assert fault is not None
    found = explain_test(subject, test, fault)
    fresh = {fact.feature: fact for fact in found.fresh}
    assert fresh.keys() == {"unplug", "fill", "pour", "look", "wipe"}
    assert fresh["unplug"].role == SUPPRESSOR
    assert {fresh[name].role for name in ("fill", "pour", "look", "wipe")} == {IRRELEVANT}
    assert all(
        fact.is_added and fact.low <= fact.hits / fact.tests <= fact.high for fact in found.fresh
    )
    assert Explanation.from_json(found.to_json()) == found


COMMAND = """
[generate]
command = "echo {features}"
seed = "none"

[features]
loops = "loops"
calls = "calls"
tables = "tables"

[[steps]]
run = "sh -c 'if grep -q loops test.txt && grep -q calls test.txt; then exit 3; fi'"
"""


def test_the_features_of_a_command_are_left_out_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from swarmtest.subjects.command.subject import load_command_subject

    # On a busy machine, processes take more CPU time.
    enough = functools.partial(confirmation.find_fresh_roles, cpu_seconds=60.0)
    monkeypatch.setattr(failing_test, "find_fresh_roles", enough)
    monkeypatch.setattr(confirmation, "_GENERATED_SECONDS", 60.0)
    (tmp_path / "tool.toml").write_text(COMMAND.replace("test.txt", "{test}"))
    subject = load_command_subject(str(tmp_path / "tool.toml"))
    failed = subject.execute(subject.space.default(), 1)
    assert failed.fault is not None
    budget = VariantBudget(cpu_seconds=60.0)
    found = explain_test(subject, failed.test, failed.fault, budget=budget)
    without = {fact.feature: fact.role for fact in found.fresh if not fact.is_added}
    assert without == {"loops": TRIGGER, "calls": TRIGGER, "tables": IRRELEVANT}
    assert "Generated tests show it with calls and loops, hardly without" in found.paragraph
