"""Explanations as text: the paragraph, the test with numbered steps, and the experiments.

What is here reads only values; nothing is run.
"""

from __future__ import annotations

import textwrap

from swarmtest.core.formatting import format_percent, percent_interval, plural
from swarmtest.ui.terminal.text import one_line
from swarmtest.why.explanation import (
    BLOCKS,
    IRRELEVANT,
    SUPPRESSOR,
    TRIGGER,
    Explanation,
    InsertionFact,
)
from swarmtest.why.paragraph import step_name
from swarmtest.why.wording import listed

_WIDTH = 96
_ROLE_WORDS = {
    SUPPRESSOR: "makes it disappear",
    IRRELEVANT: "does not matter",
    BLOCKS: "keeps a needed step from running",
}


_FRESH_WORDS = {
    SUPPRESSOR: "shows it less often",
    TRIGGER: "hardly shows it",
    IRRELEVANT: "no difference seen",
}


def explanation_lines(explanation: Explanation, width: int = _WIDTH) -> list[str]:
    """Return the paragraph in lines, with the number of runs behind it.

    >>> from swarmtest.why.explanation import StepFact
    >>> found = Explanation("4ee18053", (StepFact("push", "push(1)"),), runs=80)
    >>> explanation_lines(found)
    ['by experiment: needs push. (80 runs)']
    """
    cost = plural(explanation.runs, "run") + ("" if explanation.is_complete else ", cut short")
    text = f"by experiment: {explanation.paragraph} ({cost})"
    return textwrap.wrap(one_line(text), width, subsequent_indent="  ")


def confirmation_line(explanation: Explanation) -> str:
    """Say how often tests that were generated from the explanation show the fault."""
    confirmation = explanation.confirmation
    if confirmation is None:
        return "not confirmed: no configuration has just the needed features"
    features = ", ".join(confirmation.features)
    length = ""
    if confirmation.steps is not None:
        length = f" and {confirmation.steps[0]} to {confirmation.steps[1]} steps"
    if confirmation.is_reusing:
        length += ", in which arguments repeat,"
    shown = f"{confirmation.hits:,} of {plural(confirmation.tests, 'test')}"
    before = ""
    if confirmation.before_tests:
        before = f"; before: {confirmation.before_hits:,} of {confirmation.before_tests:,}"
    if not confirmation.is_enough:
        return (
            f"not confirmed: {shown} with only {features}{length} show it; what is known holds "
            f"near the failing test{before}"
        )
    interval = percent_interval(confirmation.low, confirmation.high, 0)
    return f"confirmed: {shown} with only {features}{length} show it ({interval}){before}"


def test_lines(explanation: Explanation) -> list[str]:
    """Return the steps of the test that was studied, numbered."""
    width = len(str(len(explanation.steps)))
    return [
        f"{number:>{width}}  {one_line(step.line)}"
        for number, step in enumerate(explanation.steps, 1)
    ]


def experiment_lines(explanation: Explanation) -> list[str]:
    """Return all facts, each with its runs."""
    if explanation.is_schedule:
        return [*_switch_lines(explanation), *_insertion_lines(explanation)]
    return [
        *_order_lines(explanation),
        *_value_lines(explanation),
        *_relation_lines(explanation),
        *_alternative_lines(explanation),
        *_insertion_lines(explanation),
        *_fresh_lines(explanation),
    ]


def _switch_lines(explanation: Explanation) -> list[str]:
    """Say for each switch of a schedule where it may come, and which threads may go on."""
    places = {fact.step: fact for fact in explanation.values}
    lines = []
    for at, step in enumerate(explanation.steps):
        place = places.get(at)
        moved = f"{place.text} ({plural(place.runs, 'run')})" if place else "comes by itself"
        others = ", ".join(step.alternatives) or "no other thread"
        lines.append(f"  switch {at + 1}: gone without it; {moved}; {others} instead of the next")
    return ["switches:", *lines] if lines else []


def _order_lines(explanation: Explanation) -> list[str]:
    if not explanation.order:
        return []
    lines = [
        f"  {step_name(explanation, fact.before)} before {step_name(explanation, fact.after)}: "
        + (f"lost the other way round ({plural(fact.runs, 'run')})" if fact.runs else "uses it")
        for fact in explanation.order
    ]
    return ["order:", *lines]


def _value_lines(explanation: Explanation) -> list[str]:
    lines = [
        f"  step {fact.step + 1}, {fact.label} {fact.text}: {fact.kept} of "
        f"{plural(fact.runs, 'other value')} kept the fault"
        for fact in explanation.values
    ]
    lines += [
        f"  setting {fact.name} {fact.text}: {fact.kept} of {plural(fact.runs, 'other value')} "
        "kept the fault"
        for fact in explanation.settings
    ]
    return ["values:", *lines] if lines else []


def _relation_lines(explanation: Explanation) -> list[str]:
    if not explanation.relations:
        return []
    first = explanation.relations[0]
    return [
        f"relations (fresh variants: {first.shown} of {first.fitting} that fit show the fault, "
        f"{format_percent(first.recall, 0)} of those that show it fit):",
        *(f"  {fact.text}" for fact in explanation.relations),
    ]


def _alternative_lines(explanation: Explanation) -> list[str]:
    lines = [
        f"  step {number}, {step.feature}: {', '.join(step.alternatives) or 'nothing'} instead"
        + (f"; {listed(step.alike)} too, but elsewhere" if step.alike else "")
        + f" ({plural(step.tried, 'run')})"
        for number, step in enumerate(explanation.steps, 1)
        if step.tried
    ]
    return ["other features in place of a step:", *lines] if lines else []


def _insertion_lines(explanation: Explanation) -> list[str]:
    if not explanation.insertions:
        return []
    lines = [f"  {fact.feature}: {_insertion_text(fact)}" for fact in explanation.insertions]
    if explanation.is_schedule:
        return ["one switch more, at any place:", *lines]
    return ["a step more, anywhere before the last one:", *lines]


def _fresh_lines(explanation: Explanation) -> list[str]:
    if not explanation.fresh:
        return []
    lines = [
        f"  {'with' if fact.is_added else 'without'} {fact.feature}: "
        f"{_FRESH_WORDS.get(fact.role, 'unclear')}; {fact.hits} of "
        f"{plural(fact.tests, 'generated test')} "
        f"({percent_interval(fact.low, fact.high, 0)})"
        for fact in explanation.fresh
    ]
    return ["generated tests with a feature more or less:", *lines]


def _insertion_text(fact: InsertionFact) -> str:
    words = _ROLE_WORDS.get(fact.role, "unclear")
    if not fact.runs:
        return words
    interval = percent_interval(fact.low, fact.high, 0)
    where = f", before step {', '.join(str(gap + 1) for gap in fact.gaps)}" if fact.gaps else ""
    return f"{words}; gone in {fact.gone} of {plural(fact.runs, 'variant')} ({interval}){where}"
