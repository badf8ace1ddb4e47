"""An explanation in a few words: one paragraph that a colleague understands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from swarmtest.why.explanation import (
    IRRELEVANT,
    SUPPRESSOR,
    TRIGGER,
    Explanation,
    InsertionFact,
    StepFact,
    short_name,
)
from swarmtest.why.wording import layers_of, listed, ordinal, reduced_order

_MAX_LISTED = 6
_MAX_PAIRS = 3
_LARGEST_BOUND = 0.25
_MAX_VALUES = 4
_MAX_SUPPRESSORS = 4
_MAX_SHAPES = 2
_MAX_INSTEAD = 3


def paragraph_of(found: Explanation) -> str:
    """Return an explanation in a few words.

    >>> paragraph_of(Explanation("4ee18053", (StepFact("push", "push(1)"),)))
    'needs push.'
    """
    if found.is_schedule:
        return "; ".join(_schedule_text(found)) + "."
    rule = [
        "needs " + _steps_text(found) if found.steps else "an empty test shows it",
        *_values_text(found),
        *_suppressors_text(found),
        *_alike_text(found),
    ]
    evidence = [*_irrelevant_text(found), *_fresh_text(found), *_others_text(found)]
    return ". ".join(["; ".join(rule), *evidence]) + "."


def step_name(found: Explanation, step: int) -> str:
    """Return a step's feature, with a number if the test has several steps of it.

    >>> from swarmtest.why.explanation import Explanation
    >>> steps = (StepFact("add", "add(1)"), StepFact("add", "add(2)"))
    >>> step_name(Explanation("4ee18053", steps), 1)
    'the 2nd add'
    """
    feature = found.steps[step].feature
    same = [i for i, other in enumerate(found.steps) if other.feature == feature]
    if len(same) == 1:
        return feature
    return f"the {ordinal(same.index(step) + 1)} {feature}"


def _schedule_text(found: Explanation) -> list[str]:
    """Say which switches a race needs."""
    if not found.steps:
        return ["needs no switch: each thread runs until it ends or waits", *_alike_text(found)]
    count = f"{len(found.steps)} switches" if len(found.steps) > 1 else "one switch"
    shown = [step.feature for step in found.steps[:_MAX_LISTED]]
    if len(found.steps) > _MAX_LISTED:
        shown.append(f"{len(found.steps) - _MAX_LISTED} more")
    texts = [f"needs {count}: {', then '.join(shown)}"]
    for number, step in enumerate(found.steps[:_MAX_LISTED]):
        name = f"the {ordinal(number + 1)} switch" if len(found.steps) > 1 else "it"
        texts += [f"{name} {fact.text}" for fact in found.values if fact.step == number]
        if step.alternatives:
            texts.append(f"{name} may also go to {listed(step.alternatives, 'or')}")
    for fact in found.suppressors[:_MAX_SUPPRESSORS]:
        texts.append(f"{fact.feature} made it disappear in {fact.gone} of {fact.runs} runs")
    if found.variants:
        texts.append(f"seen in {found.kept:,} of {found.variants:,} runs with a further switch")
    return texts


def _steps_text(found: Explanation) -> str:
    needed = [at for at, step in enumerate(found.steps) if step.is_needed]
    layers = layers_of(needed, {(o.before, o.after) for o in found.order})
    if layers is None:
        text = listed(_counted(found, needed))
        pairs = reduced_order({(o.before, o.after) for o in found.order})
        if len(pairs) > _MAX_PAIRS:
            return f"{text}, of which {len(pairs)} pairs have to keep their order"
        before = [f"{step_name(found, i)} before {step_name(found, j)}" for i, j in sorted(pairs)]
        return text + (", " + listed(before) if before else "")
    counted = [_counted(found, layer) for layer in layers]
    text = ", then ".join(map(listed, counted))
    any_order = found.is_ordered and len(counted[0]) > 1 and len(layers) == 1
    return text + ", in any order" if any_order else text


def _counted(found: Explanation, steps: Sequence[int]) -> list[str]:
    counts: Counter[str] = Counter()
    for step in steps:
        fact = found.steps[step]
        text = fact.feature + _in_brackets(fact)
        counts[text] += 1
    texts = [text if count == 1 else f"{count} × {text}" for text, count in counts.items()]
    if len(texts) > _MAX_LISTED:
        return [*texts[:_MAX_LISTED], f"{len(texts) - _MAX_LISTED} more steps"]
    return texts


def _values_text(found: Explanation) -> list[str]:
    if found.is_derivation:  # it may be empty, and have no step to name
        free = dict.fromkeys(fact.text for fact in found.values if fact.kind == "any")
        return ["with " + ", ".join(free)] * bool(free)
    texts = [fact.text for fact in found.relations]
    bound = {name for fact in found.relations for name in fact.text.split()}
    for fact in found.values:
        name = f"{_short(found, fact.step)}.{fact.label}"
        if fact.kind not in ("any", "some") and name not in bound:
            texts.append(f"{name} {fact.text}")
    texts += [f"{fact.name} {fact.text}" for fact in found.settings if fact.kept < fact.runs]
    for fact in found.values:
        name = f"{_short(found, fact.step)}.{fact.label}"
        if fact.kind == "some" and name not in bound:
            texts.append(f"some values of {name}")
    more = len(texts) - _MAX_VALUES
    shown = texts[:_MAX_VALUES]
    if more > 0:
        shown.append(f"{more} more {'value matters' if more == 1 else 'values matter'}")
    if shown:
        return ["with " + listed(shown)]
    return ["with any values"] * bool(found.values and found.are_values_known)


def _short(found: Explanation, step: int) -> str:
    """Return a step's name as it is written in relations."""
    return short_name([fact.feature for fact in found.steps], step)


def _suppressors_text(found: Explanation) -> list[str]:
    """Say which features make the fault disappear, and where they do; or that nearly all do."""
    tried = len(found.insertions)
    if len(found.suppressors) > _MAX_SUPPRESSORS and len(found.suppressors) >= 0.8 * tried:
        return [f"often lost by any insertion ({len(found.suppressors)} of {tried} features)"]
    places: dict[str, list[str]] = {}
    for fact in found.suppressors[:_MAX_SUPPRESSORS]:
        places.setdefault(_place(found, fact), []).append(fact.feature)
    texts = [listed(features, "or") + place for place, features in places.items()]
    more = len(found.suppressors) - _MAX_SUPPRESSORS
    if more > 0:
        texts.append(f"{more} more {'feature' if more == 1 else 'features'}")
    return ["never with " + ", or ".join(texts)] if texts else []


def _irrelevant_text(found: Explanation) -> list[str]:
    """Say which other features do not matter, and how much they could at most.

    A feature of which only a few variants exist is left out: its bound says nothing.
    """
    named = found.named.union(*(step.alike for step in found.steps))
    others = [
        fact
        for fact in found.insertions
        if fact.role == IRRELEVANT and fact.feature not in named and fact.high <= _LARGEST_BOUND
    ]
    if not others:
        return []
    most = f"{max(fact.high for fact in others):.0%}"
    if len(others) == 1:
        return [f"Does not matter: {others[0].feature} (it changes at most {most} of the tests)"]
    names = listed(_few([fact.feature for fact in others]))
    return [f"Does not matter: {names} (each changes at most {most} of the tests)"]


def _fresh_text(found: Explanation) -> list[str]:
    """Say what features do to newly generated tests, as far as insertions did not show it."""
    known = {fact.feature for fact in found.suppressors}
    needed = [fact.feature for fact in found.fresh if fact.role == TRIGGER]
    rarer = [
        fact.feature
        for fact in found.fresh
        if fact.role == SUPPRESSOR and fact.feature not in known
    ]
    texts = []
    if needed:
        texts.append(f"Generated tests show it with {listed(needed)}, hardly without")
    if rarer:
        texts.append(f"Generated tests show it less often with {listed(rarer, 'or')}")
    return texts


def _place(found: Explanation, fact: InsertionFact) -> str:
    """Return where an insertion suppresses the fault; empty if anywhere."""
    gaps = set(fact.gaps)
    if not gaps or len(gaps) == len(found.steps):
        return ""
    first, last = min(gaps), max(gaps)
    if gaps != set(range(first, last + 1)):
        return ""
    if last == len(found.steps) - 1:
        return f" after {step_name(found, first - 1)}" if first else ""
    if first == 0:
        return f" before {step_name(found, last)}"
    return f" between {step_name(found, first - 1)} and {step_name(found, last)}"


def _alike_text(found: Explanation) -> list[str]:
    if not found.variants:
        return []
    return [f"seen in {found.kept:,} of {found.variants:,} variants"]


def _others_text(found: Explanation) -> list[str]:
    texts = []
    if found.others is not None and found.others.tests:
        fitting, tests = found.others.fitting, found.others.tests
        text = f"The rule holds in {fitting} of {tests} other failing tests"
        if found.others.shapes:
            shown = list(found.others.shapes[:_MAX_SHAPES])
            more = len(found.others.shapes) - len(shown)
            shown += [f"{more} more {'kind' if more == 1 else 'kinds'}"] * bool(more)
            text += f"; not in {listed(shown)}"
        texts.append(text)
    if found.same_as:
        texts.append(f"Probably the same bug as {listed(found.same_as)}: the rule is the same")
    return texts


def _in_brackets(step: StepFact) -> str:
    """Return what can be in place of a step, for the text after its name.

    >>> _in_brackets(StepFact("pop", "pop()", alternatives=("get",), alike=("top",)))
    ' (or get; top fails too)'
    """
    texts = []
    if step.alternatives:
        texts.append("or " + ", ".join(_few(step.alternatives)))
    if step.alike:
        verb = "fails" if len(step.alike) == 1 else "fail"
        texts.append(f"{listed(_few(step.alike))} {verb} too")
    return f" ({'; '.join(texts)})" if texts else ""


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _MAX_INSTEAD
    return [*names[:_MAX_INSTEAD], *([f"{more} more"] if more > 0 else [])]
