"""Confirm an explanation as a swarm: generate tests from it, and count how many show the fault.

The configuration has the needed features and those that can stand in for them; everything else is
off. Several lengths are tried, from a little more than the reduced test to the subject's own. If
that is not enough, short tests of the same features are made in which arguments are often values
that the test has used before, since faults often need equal values. If enough tests hit the fault,
the explanation describes more than the neighbourhood of one test. Then each other feature is
enabled in such tests (`find_fresh_roles`).

A command's generator says nothing about the lines of its tests. There, the features that were on
for the failing test are the configuration, and each of them is left out, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.seeds import key_of
from swarmtest.processes.fork_pool import ForkPool, wait_for_any
from swarmtest.processes.tree import children_cpu_ns
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject
from swarmtest.why.experiments import Study
from swarmtest.why.explanation import (
    IRRELEVANT,
    SUPPRESSOR,
    TRIGGER,
    UNCLEAR,
    Confirmation,
    Explanation,
    FreshFact,
    share_interval,
)
from swarmtest.why.variant_runs import harness_name, is_kin

_LENGTHS = (2, 5)
"""Tests of so many times the reduced test's length are tried, besides the subject's own length."""
_BATCH = 25
_REUSING = 300
"""Tests that use values again."""
_REUSED = 0.6
"""The share of steps of these tests whose arguments are values that the test has used."""
_ENOUGH = 12
"""Hits after which no more tests are run."""
_GENERATED, _GENERATED_SECONDS = 60, 3.0
"""Tests of a command's generator, and their CPU seconds."""
_WANTED_HITS = 8
"""A configuration with one feature more gets so many tests that these hits are expected."""
_MOST_FRESH = 300
_FEWEST_OTHERS = 3
"""Other features that have to be enabled, too, before one of them is called a suppressor."""


def confirm(
    subject: Subject,
    explanation: Explanation,
    fault: Fault,
    *,
    tests: int = 900,
    cpu_seconds: float = 2.0,
    seconds: float = 10.0,
) -> tuple[Confirmation | None, float]:
    """Return how often tests of the best configuration show the fault, and the CPU seconds.

    Return None if the space allows no such configuration.
    """
    features = configuration_features(subject, explanation)
    if features is None:
        return None, 0.0
    configuration = subject.space.configuration(features)
    size = max(len(explanation.steps), 1)
    variants: list[tuple[tuple[int, int] | None, Subject]] = [(None, subject)]
    for times in _LENGTHS:
        length = (size, times * size)
        resized = _resized(subject, length)
        if resized is not None:
            variants.append((length, resized))
    best: Confirmation | None = None
    spent = 0.0
    for steps, sized in variants:
        hits, done, cpu = _count(
            sized,
            configuration,
            fault,
            explanation.seed,
            (tests // len(variants), cpu_seconds / len(variants)),
            seconds,
        )
        spent += cpu
        low, high = share_interval(hits, done)
        found = Confirmation(tuple(features), steps, hits, done, low, high)
        if best is None or found.low > best.low:
            best = found
    return best, spent


def confirm_generator(
    subject: Subject, features: Sequence[str], fault: Fault, seed: int, *, seconds: float = 10.0
) -> tuple[Confirmation, float]:
    """Return how often a generator's tests show the fault with the features of the failing test."""
    configuration = subject.space.configuration(features)
    limits = _GENERATED, _GENERATED_SECONDS
    hits, done, cpu = _count(subject, configuration, fault, seed, limits, seconds)
    low, high = share_interval(hits, done)
    return Confirmation(tuple(configuration.included), None, hits, done, low, high), cpu


def find_fresh_roles(
    subject: Subject,
    explanation: Explanation,
    fault: Fault,
    *,
    leaving_out: bool = False,
    cpu_seconds: float = 1.5,
    seconds: float = 10.0,
) -> tuple[list[FreshFact], float]:
    """Enable each other feature in tests of the confirmation; return what that does, and CPU time.

    A feature more takes steps from those that are needed. So a feature is compared with the other
    ones that were enabled, all together, and not with tests without it. With `leaving_out`, each
    feature of the configuration is left out, too, and compared with the tests that have it.
    """
    confirmation = explanation.confirmation
    if confirmation is None or not confirmation.is_enough:
        return [], 0.0
    base = set(confirmation.features)
    generating = _generating_subject(subject, confirmation)
    tests = min(math.ceil(_WANTED_HITS * confirmation.tests / confirmation.hits), _MOST_FRESH)
    changes = [(name, True) for name in subject.space.feature_names if name not in base]
    changes += [(name, False) for name in sorted(base)] if leaving_out else []
    counts: dict[tuple[str, bool], tuple[int, int]] = {}
    spent = 0.0
    for name, is_added in changes:
        left = cpu_seconds - spent
        if left <= 0:
            break
        try:
            changed = subject.space.configuration(base | {name} if is_added else base - {name})
        except UserError:
            continue  # the constraints of the space do not allow it
        if (name in changed.included) != is_added:
            continue
        seed = key_of(f"{explanation.seed}:{name}:{is_added}")
        hits, done, cpu = _count(generating, changed, fault, seed, (tests, left), seconds, tests)
        counts[name, is_added] = hits, done
        spent += cpu
    facts = [_fresh_fact(change, counts, confirmation) for change in counts]
    return facts, spent


def _fresh_fact(
    change: tuple[str, bool], counts: Mapping[tuple[str, bool], tuple[int, int]], base: Confirmation
) -> FreshFact:
    hits, tests = counts[change]
    low, high = share_interval(hits, tests)
    if change[1]:
        others = [counts[other] for other in counts if other[1] and other != change]
        pooled = share_interval(sum(h for h, _ in others), sum(t for _, t in others))
        role = UNCLEAR if len(others) < _FEWEST_OTHERS else IRRELEVANT
        if len(others) >= _FEWEST_OTHERS and high < pooled[0]:
            role = SUPPRESSOR
    else:
        role = TRIGGER if high < base.low else IRRELEVANT
    return FreshFact(change[0], change[1], role, hits, tests, low, high)


def _generating_subject(subject: Subject, confirmation: Confirmation) -> Subject:
    """Return the subject that generates tests as for a confirmation."""
    sized = _resized(subject, confirmation.steps) if confirmation.steps else None
    chosen = sized or subject
    if confirmation.is_reusing and isinstance(chosen, MachineSubject):
        return chosen.repeating(_REUSED)
    return chosen


def confirm_reusing(study: Study, explanation: Explanation) -> Confirmation | None:
    """Return how often short tests that use values again show the fault; None if there are none.

    Features come in random order, as often as the test has them; each argument is drawn, or is a
    value that the test has used.
    """
    editor, rng = study.editor, study.rng("confirmation")
    named = [
        choice
        for step in explanation.steps
        for choice in (step.feature, *step.alternatives)
        if choice in editor.features
    ]
    if not named or not editor.slots(study.steps):
        return None
    fixed = tuple(step for step in study.steps if editor.is_fixed(step))
    size = len(explanation.steps)
    length = (size, _LENGTHS[-1] * size)
    hits = tests = 0
    while hits < _ENOUGH and tests < _REUSING and not study.runs.is_spent:
        steps = fixed
        for _ in range(rng.randint(*length)):
            copied = rng.random() < _REUSED
            step = editor.new_step(rng.choice(named), steps, len(steps), rng, copied=copied)
            steps = steps if step is None else (*steps, step)
        tests += 1
        hits += study.outcome(steps).is_kept
    low, high = share_interval(hits, tests)
    features = tuple(sorted(set(named)))
    return Confirmation(features, length, hits, tests, low, high, is_reusing=True)


def configuration_features(subject: Subject, explanation: Explanation) -> list[str] | None:
    """Return the features of the configuration that an explanation asks for; None if impossible.

    Suppressors that are needed at another place of the test stay on.
    """
    names = subject.space.feature_names
    wanted = [name for name in names if name in explanation.named]
    if not wanted:
        return None
    try:
        return sorted(subject.space.configuration(wanted).included)
    except UserError:
        return None  # the constraints of the space do not allow it


def _resized(subject: Subject, steps: tuple[int, int]) -> Subject | None:
    kind = type(subject)
    if kind is MachineSubject or kind.__name__ == "RuleBasedSubject":
        return kind(subject.machine, subject.name, steps)  # type: ignore[attr-defined]
    return None


def _count(
    subject: Subject,
    configuration: Configuration,
    fault: Fault,
    seed: int,
    limits: tuple[int, float],
    seconds: float,
    enough: int = _ENOUGH,
) -> tuple[int, int, float]:
    """Return how many of how many tests show the fault, and the CPU seconds that it took.

    `limits` are the number of tests and the CPU seconds; `enough` hits end it before.
    """

    def is_it(shown: Fault | None) -> bool:
        if shown is None:
            return False
        return shown == fault or is_kin(shown, fault, harness_name(subject))

    def show(seeds: Iterable[int]) -> tuple[int, int, float]:
        begun, children = time.process_time(), children_cpu_ns()
        subject.interruptible = False
        hits = done = 0
        elsewhere = 0.0
        for number in seeds:
            result = subject.execute(configuration, number)
            hits += is_it(result.fault)
            elsewhere += result.cpu_seconds
            done += 1
        elsewhere = max(elsewhere, (children_cpu_ns() - children) / 1e9)
        return hits, done, time.process_time() - begun + elsewhere

    most, left = limits
    hits = done = 0
    size = 1
    with ForkPool(show, seconds) as pool:
        while done < most and left > 0 and hits < enough:
            numbers = range(done, min(done + size, most))
            asked = pool.ask([key_of(f"confirm:{seed}:{n}") for n in numbers])
            begun = time.monotonic()
            wait_for_any([asked])
            answer: Any = asked.outcome()
            if isinstance(answer, Fault):  # one of the tests ended the process
                hits += len(numbers) == 1 and is_it(answer)
                done += len(numbers)
                left -= time.monotonic() - begun
                size = 1
                continue
            hits, done, left = hits + answer[0], done + answer[1], left - answer[2]
            size = _BATCH
    return hits, done, limits[1] - left
