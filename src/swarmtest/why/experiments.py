"""Experiments on one failing test: leave out, reorder, change values, replace, insert.

Each function runs variants and returns facts. Only a variant whose fault is *gone* is evidence that
something matters: a variant that fails elsewhere, or in which a step of the test could not run,
says nothing. The order of the experiments follows from what they gave per run on real faults: order
first, then values, then the features that replace or suppress.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from swarmtest.core.seeds import key_of
from swarmtest.why.editing import EditableTest, Slot, Steps, distinct
from swarmtest.why.explanation import (
    BLOCKS,
    IRRELEVANT,
    SUPPRESSOR,
    UNCLEAR,
    InsertionFact,
    OrderFact,
    SettingFact,
    ValueFact,
    share_interval,
)
from swarmtest.why.variant_runs import VariantOutcome, VariantRuns

LEAST_EFFECT = 0.1
"""The share of insertions that must make the fault disappear before a feature is a suppressor."""
_MOST_INSERTIONS = 40
"""Insertions of one feature, unless its role is clear before."""
_FEWEST_IN_GAP = 3
"""Insertions in one gap before they say something, unless there are no more."""
_STALE = 12
"""Known variants in a row after which a feature is taken to have no more."""
_MOST_GAPS = 6
"""Gaps in which every feature is inserted; of more, some are chosen."""
MOST_ORDERED = 12
"""Steps of the longest test in which every pair is reordered; in longer ones, neighbours are."""
_DRAWN_ALTERNATIVES = 3
_BORROWED_ALTERNATIVES = 3
_FIRST_ALTERNATIVES = 2
"""How often a feature is tried in place of a step before all others were."""
_TRIED_WHOLE = (dict, set, frozenset)
"""What has parts that are not changed one by one, so that other values differ in all of them."""
_BISECTIONS = 12
"""Runs to find the exact bound of a value."""


@dataclass
class Study:
    """A failing test under study: its editor, its steps, and the runs of its variants."""

    editor: EditableTest
    runs: VariantRuns
    seed: int = 0
    steps: Steps = ()
    used: Counter[VariantOutcome] = field(default_factory=Counter)
    """How the variants ended so far."""

    def __post_init__(self) -> None:
        self.steps = self.steps or self.editor.steps

    @property
    def features(self) -> list[str]:
        """The features of the steps, in order."""
        return [self.editor.feature(step) for step in self.steps]

    def rng(self, purpose: str) -> random.Random:
        """Return a random source that depends on the seed and the purpose alone."""
        return random.Random(key_of(f"why:{self.seed}:{purpose}"))

    def outcome(self, steps: Steps, without: Iterable[int] = ()) -> VariantOutcome:
        """Run a variant with these steps; `without` are steps of the test that are not in it."""
        gone = set(without)
        needed = Counter(f for at, f in enumerate(self.features) if at not in gone)
        outcome = self.runs.outcome(self.editor.test(steps), needed)
        self.used[outcome] += 1
        return outcome


# Which steps are needed.


def drop_unneeded_steps(study: Study) -> None:
    """Leave out steps that the fault does not need.

    The test is reduced already, so usually nothing can be left out; this is what shows it.
    """
    for at in reversed(range(len(study.steps))):
        shorter = study.steps[:at] + study.steps[at + 1 :]
        if study.editor.is_fixed(study.steps[at]) or not study.editor.is_possible(shorter):
            continue
        if study.outcome(shorter, [at]).is_kept:
            study.steps = shorter


# Order.


def find_order(study: Study) -> Iterator[OrderFact]:
    """Yield the pairs of steps whose order matters: both ways to swap them lose the fault."""
    steps = study.steps
    pairs: Iterable[tuple[int, int]] = combinations(range(len(steps)), 2)
    if len(steps) > MOST_ORDERED:
        pairs = ((i, i + 1) for i in range(len(steps) - 1))
    for i, j in sorted(pairs, key=lambda pair: (pair[1] - pair[0], pair)):
        if steps[i] == steps[j] or study.editor.is_fixed(steps[i]):
            continue
        later = (*steps[:i], *steps[i + 1 : j + 1], steps[i], *steps[j + 1 :])
        sooner = (*steps[:i], steps[j], *steps[i:j], *steps[j + 1 :])
        outcomes = []
        runs = 0
        for variant in (later,) if j == i + 1 else (later, sooner):  # neighbours: the same test
            if not study.editor.is_possible(variant):
                outcomes.append(VariantOutcome.BLOCKED)
                continue
            outcomes.append(study.outcome(variant))
            runs += 1
            if outcomes[-1] not in (VariantOutcome.GONE, VariantOutcome.BLOCKED):
                break
        else:
            yield OrderFact(i, j, runs)


# Values.


def find_values(study: Study) -> Iterator[ValueFact]:
    """Yield for each value of the test which other values keep the fault."""
    free: set[tuple[int, str]] = set()
    slots = study.editor.slots(study.steps)
    for slot in slots:
        if slot.path and (slot.step, slot.name) in free:
            continue
        fact = _scan(study, slot)
        if fact is None:
            continue
        if not slot.path and fact.kind == "any":
            free.add((slot.step, slot.name))
        elif not slot.path and any(
            (s.step, s.name) == (slot.step, slot.name) and s.path for s in slots
        ):
            continue  # its parts say more
        yield fact


def _scan(study: Study, slot: Slot) -> ValueFact | None:
    """Try other values in a slot; None if there are none to try."""
    editor, steps = study.editor, study.steps
    current = editor.value(steps, slot)
    kept: list[Any] = []
    gone: list[Any] = []

    def holds(value: Any) -> bool | None:
        variant = editor.with_values(steps, {slot: value})
        if variant is None:
            return None
        outcome = study.outcome(variant)
        if outcome.is_kept:
            kept.append(value)
            return True
        if outcome is VariantOutcome.GONE:
            gone.append(value)
            return False
        return None

    for value in editor.candidates(steps, slot, study.rng(f"value:{slot}")):
        holds(value)
    if not kept and not gone:
        return None
    kind, text = _in_words(current, kept, gone, holds)
    return ValueFact(slot.step, slot.label, kind, text, len(kept), len(kept) + len(gone))


def _in_words(
    current: Any, kept: list[Any], gone: list[Any], holds: Callable[[Any], bool | None]
) -> tuple[str, str]:
    """Return which values keep the fault: a kind and words."""
    if not gone:
        return "any", "any value"
    if not kept and isinstance(current, _TRIED_WHOLE):
        return "some", f"none of the others that were tried ({len(gone)})"
    if not kept:
        return "exactly", f"= {_shown(current)}"
    if type(current) in (int, float):
        low = max((v for v in gone if v < current), default=None)
        high = min((v for v in gone if v > current), default=None)
        inside = all((low is None or v > low) and (high is None or v < high) for v in kept)
        if inside:
            return _bounds_in_words(current, kept, (low, high), holds)
    several = [current, *kept]
    if type(current) in (bool, str, bytes) or current is None:
        return "one of", f"in {{{', '.join(map(_shown, several[:5]))}{', …' * (len(several) > 5)}}}"
    return "some", f"one of some values ({len(kept)} of {len(kept) + len(gone)} that were tried)"


def _bounds_in_words(
    current: Any, kept: list[Any], bounds: tuple[Any, Any], holds: Callable[[Any], bool | None]
) -> tuple[str, str]:
    low, high = bounds
    least = _bisected(min([current, *kept]), low, holds) if low is not None else None
    most = _bisected(max([current, *kept]), high, holds) if high is not None else None
    if least is not None and most is not None:
        if least == most:
            return "exactly", f"= {_shown(least)}"
        return "from", f"from {_shown(least)} to {_shown(most)}"
    if least is not None:
        return "at least", f"≥ {_shown(least)}"
    return "at most", f"≤ {_shown(most)}"


def _bisected(good: Any, bad: Any, holds: Callable[[Any], bool | None]) -> Any:
    """Return the value next to `bad` that keeps the fault; for floats, nearly so."""
    for _ in range(_BISECTIONS):
        middle = (good + bad) // 2 if isinstance(good, int) else (good + bad) / 2
        if isinstance(good, int) and abs(good - bad) <= 1:
            break
        if middle in (good, bad):
            break
        answer = holds(middle)
        if answer is None:
            break
        good, bad = (middle, bad) if answer else (good, middle)
    return good


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:29]}…"


def find_settings(study: Study) -> Iterator[SettingFact]:
    """Yield for each setting of the test which other values keep the fault."""
    needed = Counter(study.features)
    for name, others in study.editor.settings.items():
        kept, gone = [], []
        for value in others:
            test = study.editor.test(study.steps, {name: value})
            outcome = study.runs.outcome(test, needed)
            if outcome.is_kept:
                kept.append(value)
            elif outcome is VariantOutcome.GONE:
                gone.append(value)
        if kept or gone:
            text = "may have any value"
            if gone:
                text = "not " + " or ".join(map(_shown, gone[:4]))
            yield SettingFact(name, text, len(kept), len(kept) + len(gone))


# Alternatives.


@dataclass(frozen=True)
class Replacement:
    """What another feature in place of a step does."""

    step: int
    feature: str
    """Empty for a step for which nothing else does."""
    runs: int
    """Runs for this step so far."""
    is_alike: bool = False
    """Whether it fails at a place of its own: perhaps the same bug, perhaps another one."""


def find_alternatives(study: Study) -> Iterator[Replacement]:
    """Yield other features that keep the fault in place of a step.

    Of several steps of a feature, the first and the last are tried, and all of them at once. Every
    feature is tried once or twice everywhere before any is tried with more arguments, so that a
    budget that ends leaves nothing out altogether.
    """
    rng = study.rng("alternatives")
    features = study.features
    yield from _replaced_together(study)
    ends = {at for f in features for at in (features.index(f), _last_index(features, f))}
    places = [at for at in sorted(ends, reverse=True) if not study.editor.is_fixed(study.steps[at])]
    waiting = {
        (at, feature): _replacements(study, at, feature, rng)
        for at in places
        for feature in study.editor.features
        if feature != features[at]
    }
    runs: Counter[int] = Counter()
    for chosen in (slice(_FIRST_ALTERNATIVES), slice(_FIRST_ALTERNATIVES, None)):
        for at in places:
            for feature in [feature for place, feature in waiting if place == at]:
                for step in waiting[at, feature][chosen]:
                    variant = (*study.steps[:at], step, *study.steps[at + 1 :])
                    if not study.editor.is_possible(variant):
                        continue
                    runs[at] += 1
                    outcome = study.outcome(variant, [at])
                    alike = outcome is VariantOutcome.OTHER and _shows_it_too(study, variant, at)
                    if outcome.is_kept or alike:
                        yield Replacement(at, feature, runs[at], alike)
                        del waiting[at, feature]
                        break
            yield Replacement(at, "", runs[at])


def _replaced_together(study: Study) -> Iterator[Replacement]:
    """Yield features that keep the fault in place of all the steps of another one."""
    editor, steps, features = study.editor, study.steps, study.features
    for feature, count in Counter(features).items():
        places = [at for at, other in enumerate(features) if other == feature]
        if count < 2 or any(editor.is_fixed(steps[at]) for at in places):
            continue
        for other in editor.features:
            if other == feature:
                continue
            new = {at: editor.replacement(other, steps[at], steps, at) for at in places}
            variant = tuple(new.get(at, step) for at, step in enumerate(steps))
            if None in new.values() or not editor.is_possible(variant):
                continue
            if study.outcome(variant, places).is_kept:
                yield from (Replacement(at, other, 1) for at in places)


def _shows_it_too(study: Study, variant: Steps, at: int) -> bool:
    """Return whether another last step shows what the test has broken, at a place of its own.

    It has to fail with the same type, and only after all other steps: without any of them, the
    variant passes.
    """
    if at != len(variant) - 1 or not study.runs.fails_alike(study.editor.test(variant)):
        return False
    for other in range(at):
        shorter = variant[:other] + variant[other + 1 :]
        if study.editor.is_fixed(variant[other]) or not study.editor.is_possible(shorter):
            continue
        if study.outcome(shorter, [other, at]) is not VariantOutcome.GONE:
            return False
    return True


def _last_index(features: Sequence[str], feature: str) -> int:
    return len(features) - 1 - list(reversed(features)).index(feature)


def _replacements(study: Study, at: int, feature: str, rng: random.Random) -> list[Any]:
    steps = study.steps
    copied = study.editor.replacement(feature, steps[at], steps, at)
    borrowed = study.editor.borrowed(feature, steps, at)[:_BORROWED_ALTERNATIVES]
    drawn = [
        study.editor.new_step(feature, steps, at, rng, copied=number == 0)
        for number in range(_DRAWN_ALTERNATIVES)
    ]
    found = (copied, *drawn[:1], *borrowed, *drawn[1:])
    return distinct(step for step in found if step is not None)


# Insertions.


@dataclass
class _Tally:
    """What insertions of one feature did, by gap; a variant counts once."""

    gone: Counter[int] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)
    blocked: Counter[int] = field(default_factory=Counter)
    variants: set[tuple[int, str]] = field(default_factory=set)
    stale: int = 0
    """How many insertions in a row gave a variant that was known."""

    @property
    def runs(self) -> int:
        return self.gone.total() + self.kept.total()

    def interval(self) -> tuple[float, float]:
        return share_interval(self.gone.total(), self.runs)

    def suppressing_gaps(self, gaps: Sequence[int]) -> tuple[int, ...]:
        """Return the gaps in which insertions make the fault disappear often enough."""
        found = []
        for gap in gaps:
            runs = self.gone[gap] + self.kept[gap]
            enough = runs >= _FEWEST_IN_GAP or (runs and self.stale >= _STALE)
            if enough and share_interval(self.gone[gap], runs)[0] > LEAST_EFFECT:
                found.append(gap)
        return tuple(found)

    def is_clear(self, gaps: Sequence[int]) -> bool:
        """Whether more insertions would hardly change the role, or there are no more."""
        if self.stale >= _STALE or self.runs >= _MOST_INSERTIONS:
            return True
        if not self.gone:
            return self.interval()[1] < 1.2 * LEAST_EFFECT
        return len(self.suppressing_gaps(gaps)) == sum(self.gone[gap] > 0 for gap in gaps)


def find_insertions(study: Study, bases: Sequence[Steps], most_runs: int) -> list[InsertionFact]:
    """Insert steps of every feature everywhere; return what that does, the strongest first.

    `bases` are tests with other values that show the fault too. The last step is where the fault
    shows, so nothing is inserted after it.
    """
    tallies = {feature: _Tally() for feature in study.editor.features}
    rng = study.rng("insertions")
    first = next((i for i, s in enumerate(study.steps) if not study.editor.is_fixed(s)), 0)
    gaps = list(range(first, len(study.steps)))
    if len(gaps) > _MOST_GAPS:
        gaps = sorted({gaps[0], gaps[-1], *rng.sample(gaps, _MOST_GAPS - 2)})
    with study.runs.limited(most_runs):
        unclear = list(tallies)
        for number in range(_MOST_INSERTIONS):
            for feature in unclear:
                for gap in gaps:
                    steps = study.steps if number < 2 else rng.choice(bases)
                    _insert(study, steps, feature, gap, tallies[feature], rng, number % 2 == 1)
            unclear = [f for f in unclear if not tallies[f].is_clear(gaps)]
            if not unclear:
                break
    facts = [_insertion_fact(feature, tally, gaps) for feature, tally in tallies.items()]
    return sorted(
        (fact for fact in facts if fact is not None),
        key=lambda fact: (fact.role != SUPPRESSOR, -fact.low, -fact.gone),
    )


def _insert(
    study: Study,
    steps: Steps,
    feature: str,
    gap: int,
    tally: _Tally,
    rng: random.Random,
    copied: bool,
) -> None:
    step = study.editor.new_step(feature, steps, gap, rng, copied=copied)
    if step is None:
        tally.stale += 1
        return
    variant = (*steps[:gap], step, *steps[gap:])
    key = gap, repr(variant)
    if key in tally.variants:
        tally.stale += 1
        return
    tally.variants.add(key)
    tally.stale = 0
    outcome = study.outcome(variant)
    if outcome.is_kept:
        tally.kept[gap] += 1
    elif outcome is VariantOutcome.GONE:
        tally.gone[gap] += 1
    elif outcome is VariantOutcome.BLOCKED:
        tally.blocked[gap] += 1


def _insertion_fact(feature: str, tally: _Tally, gaps: Sequence[int]) -> InsertionFact | None:
    if not tally.runs and not tally.blocked.total():
        return None
    low, high = tally.interval()
    where = tally.suppressing_gaps(gaps)
    blocked = tuple(g for g in gaps if tally.blocked[g] and not tally.gone[g] + tally.kept[g])
    if where:
        role = SUPPRESSOR
    elif blocked:
        role, where = BLOCKS, blocked
    elif not tally.gone and tally.runs:
        role = IRRELEVANT
    else:
        role = UNCLEAR
    return InsertionFact(feature, role, tally.gone.total(), tally.runs, low, high, where)
