"""Classes of argument values as features: what a configuration leaves out is not drawn."""

from __future__ import annotations

import enum
from typing import Any

from swarmtest import Feature, Machine, action, booleans, integers, lists, sampled_from, text
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.loading import SubjectReference


class Mode(enum.Enum):
    READ = 1
    WRITE = 2


KEYS = integers(0, 3)


class Store(Machine):
    value_features = True
    dimensions = [Feature("cached")]

    def start(self) -> None:
        self.seen: list[Any] = []

    @action(key=KEYS, value=integers(-1000, 10**6))
    def put(self, key: int, value: int) -> None:
        self.seen.append(("put", key, value))

    @action(key=KEYS)
    def get(self, key: int) -> None:
        self.seen.append(("get", key))

    @action(line=text("ab\n", 6), mode=sampled_from(list(Mode)), now=booleans())
    def load(self, line: str, mode: Mode, now: bool) -> None:
        self.seen.append(("load", line, mode, now))

    @action(items=lists(integers(0, 99), 6))
    def fill(self, items: list[int]) -> None:
        self.seen.append(("fill", items))


def arguments(*features: str, name: str, at: int = 0) -> list[Any]:
    """Return the values that tests with these features draw for an argument."""
    subject = MachineSubject(Store)
    subject.keep_tests = True
    configuration = subject.space.configuration([name, *features])
    steps = [
        step
        for seed in range(4)
        for step in subject.parts(subject.test_of(configuration, seed))
        if step.action == name
    ]
    return [step.arguments[at] for step in steps]


def test_the_classes_of_all_arguments_are_features() -> None:
    names = MachineSubject(Store).space.feature_names
    assert names[:5] == ("put", "get", "load", "fill", "cached")
    assert {"key=0", "key=3", "put.value: negative", "put.value: repeated"} <= set(names)
    assert {"load.line: empty", "load.line: no final newline"} <= set(names)
    assert {"load.mode=READ", "load.now=True", "fill.items: long"} <= set(names)
    assert "put.key=0" not in names  # `get` draws from the same generator


def test_a_value_that_is_left_out_is_not_drawn() -> None:
    assert set(arguments("key=2", "key=3", name="get")) == {2, 3}
    assert {v["name"] for v in arguments("load.mode=WRITE", name="load", at=1)} == {"WRITE"}
    assert set(arguments("load.now=True", name="load", at=2)) == {True}
    assert all(v < 0 for v in arguments("put.value: negative", name="put", at=1))
    assert all(v == 0 for v in arguments("put.value: zero", name="put", at=1))


def test_texts_are_left_out_by_their_length_and_end() -> None:
    lines = arguments("load.line: no final newline", "load.line: long", name="load")
    assert sum(len(line) < 4 for line in lines) < len(lines) / 50
    assert sum(line.endswith("\n") for line in lines) < len(lines) / 50
    assert all(len(items) == 0 for items in arguments("fill.items: empty", name="fill"))


def test_without_any_class_an_argument_is_not_restricted() -> None:
    assert set(arguments(name="get")) == {0, 1, 2, 3}


def test_values_repeat_in_tests_with_that_feature() -> None:
    values = arguments("put.value: repeated", "put.value: huge", name="put", at=1)
    assert len(set(values)) < len(values) * 0.8


def test_a_mode_is_a_setting_and_a_class_of_values_is_not() -> None:
    subject = MachineSubject(Store)
    configuration = subject.space.configuration(["get", "cached", "key=1"])
    assert subject.settings_of(configuration) == {"cached": True}
    result = subject.execute(configuration, 1)
    assert len(result.used) == len(subject.space.feature_names)


def test_a_trial_is_repeated_from_its_seed_whatever_ran_before() -> None:
    subject, other = MachineSubject(Store), MachineSubject(Store)
    layered = parse_strategy("layered")
    for trial in range(12):
        proposal: Any = layered.ask(subject.space, trial, Stream(trial))
        subject.execute(proposal.configuration, trial)
    again: Any = layered.ask(other.space, 3, Stream(3))
    assert other.test_of(again.configuration, 3) == subject.test_of(again.configuration, 3)


def test_the_option_is_kept_with_the_reference() -> None:
    reference = SubjectReference("shop.py::Shop", value_features=True)
    assert SubjectReference.from_json(reference.to_json()) == reference
    assert "value_features" not in SubjectReference("shop.py").to_json()
    plain = MachineSubject(Store).with_value_features(False)
    assert plain.space.feature_names == ("put", "get", "load", "fill", "cached")
