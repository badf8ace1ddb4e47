"""What a machine does in a test: actions, guards, pools, invariants, start and stop."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest

from swarmtest import (
    Campaign,
    Choice,
    Feature,
    Flag,
    Integer,
    Machine,
    Pool,
    UserError,
    Verdict,
    action,
    consumes,
    integers,
    invariant,
    just,
    open_store,
    text,
)
from swarmtest.roles import Study
from swarmtest.strategies import Proposal, Stream, parse_strategy
from swarmtest.subjects import MachineSubject


def run(machine, features=None, seed=1, steps=None, **settings):
    subject = MachineSubject(machine, steps=steps)
    names = subject.space.feature_names if features is None else features
    values = dict.fromkeys(names, 1) | settings
    return subject.execute(subject.space.configuration(values), seed)


def test_only_included_actions_run():
    class Two(Machine):
        @action
        def a(self): ...

        @action
        def b(self): raise ValueError  # fmt: skip

    result = run(Two, ["a"], steps=50)
    assert result.verdict == Verdict.PASSED
    assert result.used == (50, 0)


def test_a_guard_keeps_an_action_from_running():
    class Stack(Machine):
        def start(self):
            self.items = []

        @action
        def push(self):
            self.items.append(1)

        @action(when=lambda self: self.items)
        def pop(self):
            self.items.pop()

    assert all(run(Stack, seed=seed).verdict == Verdict.PASSED for seed in range(50))


def test_a_test_ends_when_nothing_is_possible_any_more():
    class Once(Machine):
        def start(self):
            self.left = 3

        @action(when=lambda self: self.left)
        def spend(self):
            self.left -= 1

    result = run(Once, steps=100)
    assert (result.verdict, result.steps) == (Verdict.PASSED, 3)


def test_a_guard_that_raises_is_a_mistake_in_the_machine():
    class Guarded(Machine):
        @action(when=lambda self: self.missing)
        def go(self): ...

    with pytest.raises(UserError, match=r"the guard .* of 'go' raised AttributeError.*\.py:"):
        run(Guarded)


def test_a_value_of_a_pool_was_made_by_an_earlier_action():
    class Files(Machine):
        files = Pool()

        def start(self):
            self.made = []

        @action(into=files)
        def open(self):
            self.made.append(object())
            return self.made[-1]

        @action(file=files)
        def write(self, file):
            assert file in self.made

        @action(file=consumes(files))
        def close(self, file):
            self.made.remove(file)

    for seed in range(30):
        result = run(Files, seed=seed)
        assert result.verdict == Verdict.PASSED, result.fault
        assert result.used[2] <= result.used[0]


def test_an_action_that_returns_none_puts_nothing_into_the_pool():
    class Nothing(Machine):
        things = Pool()

        @action(into=things)
        def make(self): ...

        @action(thing=things)
        def use(self, thing):
            raise AssertionError

    assert run(Nothing).used == (100, 0)


def test_two_consumed_arguments_of_one_pool_are_two_values():
    class Pairs(Machine):
        things = Pool()

        def start(self):
            self.count = 0

        @action(into=things)
        def make(self):
            self.count += 1
            return self.count

        @action(one=consumes(things), other=consumes(things))
        def pair(self, one, other):
            assert one != other

    for seed in range(30):
        result = run(Pairs, seed=seed)
        assert result.verdict == Verdict.PASSED, result.fault
        assert 2 * result.used[1] <= result.used[0]


def test_a_consumed_and_a_kept_argument_of_one_pool_are_two_values_also_when_replayed():
    class Merge(Machine):
        things = Pool()

        @action(into=things)
        def make(self):
            return []

        @action(one=consumes(things), other=things)
        def merge(self, one, other):
            assert one is not other
            if len(self.things) > 3:
                raise RuntimeError("many left")

    subject = MachineSubject(Merge)
    failed = [r for s in range(30) if (r := subject.execute(subject.space.default(), s)).fault]
    assert failed
    for result in failed:
        assert result.fault
        assert "many left" in result.fault.signature
        again = subject.replay(result.test)
        assert (again.fault, again.skipped) == (result.fault, 0)


def test_the_live_pool_has_a_length_and_can_be_iterated():
    class Live(Machine):
        things = Pool()

        @action(into=things)
        def make(self):
            assert len(self.things) == len(list(self.things))
            return 5

        @action(when=lambda self: len(self.things) > 2)
        def look(self):
            assert set(self.things) == {5}

    result = run(Live)
    assert result.verdict == Verdict.PASSED
    assert result.used[1]


def test_pools_start_empty_in_each_test():
    class Fresh(Machine):
        things = Pool()

        def start(self):
            assert not self.things

        @action(into=things)
        def make(self):
            return 1

    subject = MachineSubject(Fresh)
    for seed in range(3):
        assert subject.execute(subject.space.default(), seed).verdict == Verdict.PASSED


def test_a_pool_that_is_no_attribute_of_the_machine_is_refused():
    elsewhere = Pool()

    class Lost(Machine):
        @action(into=elsewhere)
        def make(self):
            return 1

    with pytest.raises(UserError, match=r"[Pp]ool"):
        MachineSubject(Lost)


def test_an_expected_exception_is_a_correct_outcome():
    class Refuses(Machine):
        @action(raises=(KeyError, ValueError))
        def ask(self):
            raise ValueError

    assert run(Refuses).verdict == Verdict.PASSED


def test_an_unexpected_exception_is_a_fault():
    class Refuses(Machine):
        @action(raises=KeyError)
        def ask(self):
            raise ValueError("no 17")

    fault = run(Refuses).fault
    assert fault.kind == "exception"
    assert fault.signature.startswith("ValueError: no 17 [")


def test_an_invariant_fails_by_raising():
    class Bounded(Machine):
        def start(self):
            self.size = 0

        @action
        def grow(self):
            self.size += 1

        @invariant
        def small(self):
            assert self.size < 5

    result = run(Bounded)
    assert (result.fault.kind, result.steps) == ("invariant", 5)
    assert "small" in result.fault.signature


def test_an_invariant_fails_by_returning_false_but_not_by_returning_nothing():
    class Bounded(Machine):
        def start(self):
            self.size = 0

        @action
        def grow(self):
            self.size += 1

        @invariant
        def says_nothing(self):
            return None

        @invariant
        def zero_is_not_false(self):
            return 0

        @invariant
        def small(self):
            return self.size < 5

    result = run(Bounded)
    assert (result.fault.kind, result.steps) == ("invariant", 5)
    assert "small" in result.fault.signature


def test_an_invariant_is_checked_after_the_start():
    class Broken(Machine):
        @action
        def a(self): ...

        @invariant
        def never(self):
            return False

    result = run(Broken)
    assert (result.fault.kind, result.steps) == ("invariant", 0)


def test_the_second_of_three_invariants_is_the_one_that_is_named():
    class Three(Machine):
        @action
        def a(self): ...

        @invariant
        def first(self): ...

        @invariant
        def second(self):
            raise KeyError("x")

        @invariant
        def third(self):
            return False

    assert "invariant second" in run(Three).fault.signature


def stopping(fail):
    class Stops(Machine):
        log = []

        def start(self):
            self.log.append("start")

        def stop(self):
            self.log.append("stop")

        @action
        def go(self):
            if fail:
                raise fail

    return Stops


@pytest.mark.parametrize("fail", [None, ValueError("x"), SystemExit(1)])
def test_stop_is_called_also_after_a_failure(fail):
    machine = stopping(fail)
    result = run(machine, steps=3)
    assert machine.log == ["start", "stop"]
    assert (result.fault is not None) == (fail is not None)


def test_stop_is_called_when_start_fails():
    class Stops(Machine):
        log = []

        def start(self):
            raise OSError("no port")

        def stop(self):
            self.log.append("stop")

        @action
        def go(self): ...

    result = run(Stops)
    assert Stops.log == ["stop"]
    assert "OSError: no port" in result.fault.signature


def test_a_failure_of_stop_is_a_fault():
    class Stops(Machine):
        def stop(self):
            raise OSError("busy")

        @action
        def go(self): ...

    assert "OSError: busy" in run(Stops).fault.signature


def test_a_machine_whose_constructor_fails_is_a_fault_not_a_crash():
    class Constructed(Machine):
        def __init__(self):
            raise OSError("no display")

        @action
        def go(self): ...

    assert "OSError: no display" in run(Constructed).fault.signature


def test_events_are_the_hits_of_a_test():
    class Talks(Machine):
        @action
        def a(self):
            self.event("one")
            self.event("two words")

    assert run(Talks).hits == ("event:one", "event:two words")


def test_events_of_a_failing_test_are_kept():
    class Talks(Machine):
        @action
        def a(self):
            self.event("seen")
            raise ValueError

    assert run(Talks).hits == ("event:seen",)


def test_an_event_may_be_a_number():
    class Talks(Machine):
        @action
        def a(self):
            self.event("one")
            self.event(2)  # type: ignore[arg-type]

    assert set(run(Talks).hits) == {"event:one", "event:2"}


def test_settings_are_what_the_configuration_says():
    class Set(Machine):
        dimensions = [Choice("level", ("low", "high")), Flag("sync"), Integer("size", 1, 9)]
        seen = []

        def start(self):
            self.seen.append(dict(self.settings))

        @action
        def a(self): ...

    run(Set, level="high", sync=True, size=4)
    assert Set.seen == [{"level": "high", "sync": True, "size": 4}]


class Box(Machine):
    steps = (2, 6)
    dimensions = [Feature("sealed"), Feature("painted"), Integer("size", 1, 9)]
    starts: list[Any] = []

    def start(self):
        self.full = 0
        self.starts.append(self.settings)

    @action
    def put(self):
        self.full += 1
        assert not (self.settings["sealed"] and self.full > 1), "put into a sealed box"

    @action
    def empty(self):
        self.full = 0


def test_a_feature_among_the_dimensions_is_a_mode_of_the_whole_test():
    subject = MachineSubject(Box)
    assert subject.modes == ("sealed", "painted")
    result = run(Box, ["put", "sealed"], size=3)
    assert Box.starts[-1] == {"size": 3, "sealed": True, "painted": False}
    assert result.fault.signature.startswith("AssertionError: put into a sealed box")
    assert subject.replay(result.test).fault == result.fault
    assert "'sealed': True" in subject.code(result.test)
    nothing = run(Box, ["sealed", "painted"], size=3)
    assert (nothing.steps, nothing.fault) == (0, None)


@pytest.mark.parametrize("strategy", ["coin", "layered", "activation"])
def test_a_mode_is_never_picked_as_an_action_and_can_be_a_trigger(strategy, tmp_path):
    store = tmp_path / "box.db"
    outcome = Campaign(Box, strategy, 300, seed=1, workers=0, store=str(store)).run()
    assert outcome.unused == {}
    (fault,) = outcome.faults
    assert json.loads(fault.test or "{}")["settings"]["sealed"] is True
    if strategy == "coin":
        with open_store(str(store)) as opened:
            study = Study(opened, [outcome.campaign])
            roles = study.roles(study.find("fault"))
        assert {role.feature for role in roles if role.role == "trigger"} == {"put", "sealed"}


def test_steps_can_be_a_number_a_range_or_a_function():
    class Steps(Machine):
        @action
        def a(self): ...

    def lengths(steps):
        subject = MachineSubject(type("M", (Steps,), {"steps": steps}))
        stream, coin, found = Stream(1), parse_strategy("coin"), set()
        for trial in range(200):
            stream.rekey(trial)
            proposal = coin.ask(subject.space, trial, stream)
            assert isinstance(proposal, Proposal)
            found.add(subject.execute(proposal.configuration, trial).steps)
        return found

    assert lengths(7) == {7}
    assert lengths((3, 6)) == {3, 4, 5, 6}
    assert lengths(lambda rng: rng.choice([2, 9])) == {2, 9}


@pytest.mark.parametrize("steps", [0, -3, (5, 2), "many", 2.5])
def test_steps_that_make_no_sense_are_refused(steps):
    class Steps(Machine):
        @action
        def a(self): ...

    with pytest.raises(UserError, match="steps"):
        MachineSubject(type("M", (Steps,), {"steps": steps}))


def test_a_subclass_has_the_actions_of_its_base_first():
    class Base(Machine):
        @action
        def a(self): ...

        @action
        def b(self): ...

    class Sub(Base):
        @action
        def c(self): ...

        @action
        def a(self): ...

    assert MachineSubject(Sub).space.feature_names == ("a", "b", "c")


def test_an_overriding_action_is_the_one_that_runs():
    class Base(Machine):
        @action
        def a(self):
            raise ValueError

        @invariant
        def fine(self):
            return False

    class Sub(Base):
        @action(value=integers(3, 3))
        def a(self, value):  # type: ignore[override]
            assert value == 3

        @invariant
        def fine(self):
            return True

    assert run(Sub).verdict == Verdict.PASSED


def test_a_pool_of_the_base_class_can_be_used_by_a_subclass():
    class Base(Machine):
        things = Pool()

        @action(into=things)
        def make(self):
            return 1

    class Sub(Base):
        @action(thing=consumes(Base.things))
        def take(self, thing):
            self.event("taken")

    assert run(Sub).hits == ("event:taken",)


def test_a_parameter_may_be_called_name():
    class Names(Machine):
        @action(name=text())
        def create(self, name):
            assert isinstance(name, str)

    assert MachineSubject(Names).space.feature_names == ("create",)
    assert run(Names).verdict == Verdict.PASSED


def test_a_parameter_whose_name_is_an_option_is_given_by_args():
    class Odd(Machine):
        @action(args={"when": integers(1, 1), "rate": integers(2, 2)})
        def go(self, when, rate):
            assert (when, rate) == (1, 2)

    assert run(Odd).verdict == Verdict.PASSED


def test_positional_only_and_keyword_only_parameters_get_their_values_also_when_replayed():
    class Kinds(Machine):
        @action(a=just(1), b=just(2), c=just(3))
        def go(self, a, /, b, *, c):
            raise ValueError(((a, b, c) == (1, 2, 3) and "all right") or "mixed up")

    subject = MachineSubject(Kinds)
    result = subject.execute(subject.space.default(), 1)
    assert result.fault
    assert "all right" in result.fault.signature
    assert subject.replay(result.test).fault == result.fault


def test_a_parameter_with_a_default_needs_no_generator():
    class Defaults(Machine):
        @action(b=integers(5, 5))
        def go(self, a=1, b=2, *rest, c=3, **more):
            assert (a, b, rest, c, more) == (1, 5, (), 3, {})

    assert run(Defaults).verdict == Verdict.PASSED


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "say where 'value' comes from"),
        ({"value": 3}, "expected a generator"),
        ({"value": integers(), "vlaue": integers()}, "no parameter 'vlaue'"),
        ({"value": integers(), "when": True}, "when is a function"),
        ({"value": integers(), "into": []}, "into is a Pool"),
        ({"value": integers(), "raises": "ValueError"}, "raises"),
    ],
)
def test_a_mistake_in_an_action_is_explained(options, words):
    class Mistaken(Machine):
        @action(**options)
        def go(self, value): ...

    with pytest.raises(UserError, match=words):
        MachineSubject(Mistaken)


def test_a_machine_without_actions_is_refused():
    class Empty(Machine):
        def helper(self): ...

    with pytest.raises(UserError, match=r"Empty.*no actions"):
        MachineSubject(Empty)


# How actions are chosen. Margins: five standard deviations of a binomial count.


def counts(machine, weights, renormalised=False, tests=300):
    subject = MachineSubject(machine)
    total: Counter[Any] = Counter()
    for seed in range(tests):
        configuration = subject.space.configuration(weights | {"*renormalised": renormalised})
        result = subject.execute(configuration, seed)
        total.update(dict(zip(subject.space.feature_names, result.used, strict=True)))
        total["skipped"] += result.skipped
        total["steps"] += sum(result.used) + result.skipped
    return total


def close(count, trials, p):
    return abs(count - trials * p) <= 5 * math.sqrt(trials * p * (1 - p)) + 1e-9


class Guards(Machine):
    """Three actions are possible, two never are."""

    steps = 40

    @action(when=lambda self: False)
    def never(self): ...

    @action
    def a(self): ...

    @action
    def b(self): ...

    @action(when=lambda self: True)
    def c(self): ...

    @action(when=lambda self: False)
    def nor_this(self): ...


def test_the_choice_among_possible_actions_is_uniform():
    total = counts(Guards, {"never": 1, "a": 1, "b": 1, "c": 1, "nor_this": 1})
    assert total["steps"] == 300 * 40
    assert not total["never"] + total["nor_this"] + total["skipped"]
    for name in "abc":
        assert close(total[name], total["steps"], 1 / 3), (name, total)


def test_a_weight_below_one_spends_the_step():
    total = counts(Guards, {"never": 1, "a": 1, "b": 0.25, "c": 0.5})
    assert total["steps"] == 300 * 40
    for name, p in {"a": 1 / 3, "b": 1 / 12, "c": 1 / 6, "skipped": 5 / 12}.items():
        assert close(total[name], total["steps"], p), (name, total)


def test_renormalised_weights_are_odds_and_spend_no_step():
    weights = {"never": 1, "a": 0.8, "b": 0.2, "c": 0.6, "nor_this": 0.5}
    total = counts(Guards, weights, renormalised=True)
    assert total["steps"] == 300 * 40
    assert not total["skipped"]
    for name, p in {"a": 0.5, "b": 0.125, "c": 0.375}.items():
        assert close(total[name], total["steps"], p), (name, total)


@pytest.mark.parametrize("renormalised", [False, True])
def test_an_action_of_weight_zero_is_never_chosen(renormalised):
    total = counts(Guards, {"a": 0, "b": 0.3, "c": 0.001}, renormalised)
    assert total["a"] == 0
    assert total["b"] > 0


def test_the_choice_stays_uniform_when_a_guard_changes_with_the_state():
    class Alternating(Machine):
        steps = 200

        def start(self):
            self.open = False

        @action(when=lambda self: not self.open)
        def enter(self):
            self.open = True

        @action(when=lambda self: self.open)
        def leave(self):
            self.open = False

        @action
        def look(self): ...

    total = counts(Alternating, {"enter": 1, "leave": 1, "look": 1})
    # In each state two actions are possible, each with odds one half.
    assert close(total["look"], total["steps"], 1 / 2), total
    assert abs(total["enter"] - total["leave"]) <= 300


def test_the_choice_from_a_pool_is_uniform():
    class Draws(Machine):
        steps = 60
        things = Pool()
        seen: Counter[Any] = Counter()

        def start(self):
            self.n = 0

        @action(into=things, when=lambda self: self.n < 4)
        def make(self):
            self.n += 1
            return self.n

        @action(thing=things, when=lambda self: self.n == 4)
        def use(self, thing):
            self.seen[thing] += 1

    counts(Draws, {"make": 1, "use": 1})
    total = sum(Draws.seen.values())
    for thing in (1, 2, 3, 4):
        assert close(Draws.seen[thing], total, 1 / 4), Draws.seen
