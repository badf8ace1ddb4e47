"""Tests in which values repeat: for faults that need equal values."""

from __future__ import annotations

import random

from swarmtest import Campaign, Machine, action, integers, lists, open_store, tuples
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.subject import named_fault

MOST = 10**6


def draw_key(rng: random.Random) -> int:
    return int(rng.random() * (MOST + 1))


KEYS = Generator(
    draw_key,
    f"int(random() * {MOST + 1})",
    allows=lambda key: type(key) is int and 0 <= key <= MOST,
)
"""Numbers that are hardly ever drawn twice by chance: `integers` of so many repeats some by itself,
and draws those of the source. They count as values that may change, of which `lists` repeats
none."""


class Keys(Machine):
    """Notes the keys that it is given."""

    steps = 20

    def start(self) -> None:
        self.seen: list[int] = []

    @action(key=KEYS)
    def one(self, key: int) -> None:
        self.seen.append(key)

    @action(pairs=lists(tuples(KEYS, integers(-9, -1)), max_size=3))
    def several(self, pairs: list[tuple[int, int]]) -> None:
        self.seen += [key for key, _ in pairs]

    def stop(self) -> None:
        assert len(set(self.seen)) == len(self.seen), "repeated"


def share_of_repeating(subject: MachineSubject) -> float:
    default = subject.space.default()
    results = [subject.execute(default, seed) for seed in range(100)]
    return sum(result.fault is not None for result in results) / len(results)


def test_values_repeat_only_if_asked():
    subject = MachineSubject(Keys)
    assert share_of_repeating(subject) < 0.05
    assert share_of_repeating(subject.repeating(0.5)) > 0.95


def test_values_of_another_test_count_as_used_from_the_beginning():
    class Vault(Machine):
        """Opens with one number of a million."""

        steps = 3

        @action(number=KEYS)
        def turn(self, number: int) -> None:
            assert number != 735_201, "open"

    subject = MachineSubject(Vault)
    assert share_of_repeating(subject.repeating(0.5)) == 0
    assert share_of_repeating(subject.repeating(0.5, [735_201])) > 0.5


def test_values_repeat_inside_of_lists_where_the_generator_allows_them():
    subject = MachineSubject(Keys).repeating(0.9)
    result = subject.execute(subject.space.configuration(["several"]), 1)
    pairs = [tuple(pair["$tuple"]) for step in result.test["steps"] for pair in step[1][0]]
    assert len({key for key, _ in pairs}) < len(pairs) / 2
    assert all(key >= 0 and value < 0 for key, value in pairs)


def test_the_seed_alone_decides_what_repeats():
    first, second = (MachineSubject(Keys).repeating(0.5) for _ in range(2))
    first.execute(first.space.default(), 7)  # what it used is forgotten
    default = first.space.default()
    assert first.execute(default, 3).test == second.execute(default, 3).test


def test_a_reference_keeps_the_share_and_older_ones_have_none():
    reference = SubjectReference("keys.py", repeats=0.5, values=(7, "a"))
    assert SubjectReference.from_json(reference.to_json()) == reference
    plain = SubjectReference("keys.py")
    assert "repeats" not in plain.to_json()
    assert SubjectReference.from_json(plain.to_json()) == plain


def test_a_stored_trial_with_repeated_values_replays():
    subject = MachineSubject(Keys).repeating(0.5)
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", 10, workers=0, store=store).run().campaign
        [fault] = store.faults(campaign)
        trial = store.trial(campaign, fault.trial)
    replayed = subject.replay(subject.test_of(subject.space.default(), trial.seed))
    assert replayed.fault is not None
    assert named_fault(subject, replayed.fault).id == fault.id
