"""A comparison of strategies as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from swarmtest.analysis.comparison import Comparison
from swarmtest.analysis.equal_effort import SHARES, Cut, Difference
from swarmtest.report.detection import detection_parts, told_apart
from swarmtest.report.fitting import fitted, widest, wrapped
from swarmtest.report.quantities import amount, duration, grouped, number, p_value, with_interval
from swarmtest.report.terminal import plural

_SHOWN_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def comparison_text(comparison: Comparison, width: int = 0) -> str:
    """Everything, in the order in which a reader asks: what, at what cost, how soon, so what.

    `width`: columns of the screen; 0: no limit.
    """
    counts = {cut.runs for cut in comparison.equal_tests.efforts}
    each = f", {plural(counts.pop(), 'run')} each" if len(counts) == 1 else ""
    title = f"{comparison.subject}: {', '.join(comparison.strategies)}{each}; "
    parts = [
        wrapped(f"{title}baseline {comparison.baseline}", width),
        _cut_text(comparison.equal_tests, comparison, width),
        _cut_text(comparison.equal_cpu, comparison, width),
        *detection_parts(comparison, width),
        "\n".join(wrapped(line, width) for line in _legend(comparison)),
        "\n".join(wrapped(f"note: {note}", width, "  ") for note in comparison.notes),
        "\n".join(wrapped(line, width, "  ") for line in conclusions(comparison)),
    ]
    return "\n\n".join(part for part in parts if part)


def _legend(comparison: Comparison) -> list[str]:
    if not any(one.p is not None for one in comparison.equal_tests.differences):
        return []
    return [
        f"[ ] {100 * comparison.confidence:g}% interval; A12: chance that a run finds more than a "
        f"run of {comparison.baseline}, ties as half;",
        "p: Mann-Whitney, log-rank for detection; q: p corrected for all comparisons of its table",
    ]


# What was found with equal effort


def _cut_text(cut: Cut, comparison: Comparison, width: int) -> str:
    title = "AT EQUAL TESTS" if cut.unit == "tests" else "AT EQUAL CPU TIME"
    parts = [
        f"{title}: the first {amount(cut.limit, cut.unit)} of each run "
        f"(campaign {cut.shortest} has no more)",
        _efforts(cut, width),
        _reaches(cut, comparison, width),
        _differences(cut, comparison, width),
        _growth(cut, width),
    ]
    return "\n\n".join(part for part in parts if part)


def _efforts(cut: Cut, width: int) -> str:
    rows = [
        (e.strategy, str(e.runs), number(e.tests), number(e.steps), duration(e.cpu_seconds))
        for e in cut.efforts
    ]
    head = ("strategy", "runs", "tests per run", "steps per run", "CPU per run")
    return fitted(head, rows, " rrrr", width, cut=[0])


def _reaches(cut: Cut, comparison: Comparison, width: int) -> str:
    everywhere = "in both" if len(comparison.strategies) == 2 else "in all"
    rows = [
        (
            reach.kind,
            reach.strategy,
            with_interval(reach.per_run),
            number(reach.in_any_run),
            number(reach.only_here),
            number(reach.everywhere),
            "-" if reach.hits_per_target is None else number(reach.hits_per_target),
        )
        for reach in cut.reaches
    ]
    told = ", ".join(f"{kind} {count:,}" for kind, count in cut.together.items())
    head = ("kind", "strategy", "found per run", "in any run", "only here", everywhere)
    found = fitted((*head, "hits/target"), grouped(rows), "   rrrr", width, cut=[1])
    return f"{found}\n{wrapped(f'all strategies together: {told}', width, '  ')}"


def _differences(cut: Cut, comparison: Comparison, width: int) -> str:
    tested = [one for one in cut.differences if one.p is not None]
    if not tested:
        return ""
    text = _difference_table(tested, comparison, width, _effect)
    if width and widest(text) > width:
        return _difference_table(tested, comparison, width, _short_effect)
    return text


def _difference_table(
    tested: Sequence[Difference],
    comparison: Comparison,
    width: int,
    effect: Callable[[Difference], str],
) -> str:
    rows = [
        (
            one.kind,
            one.strategy,
            with_interval(one.more, sign="+"),
            effect(one),
            p_value(one.p),
            p_value(one.q),
        )
        for one in tested
    ]
    head = ("kind", f"against {comparison.baseline}", "more per run", "A12", "p", "q")
    return fitted(head, grouped(rows), "    rr", width, cut=[1])


def _effect(one: Difference) -> str:
    if one.effect is None:
        return "-"
    effect = one.effect
    return f"{effect.a12:.2f} {effect.word} [{effect.low:.2f}, {effect.high:.2f}]"


def _short_effect(one: Difference) -> str:
    return "-" if one.effect is None else f"{one.effect.a12:.2f} {one.effect.word}"


def _growth(cut: Cut, width: int) -> str:
    """Faults, or whatever else was found, over time."""
    shown = {amount(_at_share(cut, share), cut.unit): share for share in _SHOWN_SHARES}
    places = [SHARES.index(share) for share in shown.values()]
    rows = [
        (curve.kind, curve.strategy, *(number(curve.mean[place]) for place in places))
        for curve in cut.curves
    ]
    right = "  " + "r" * len(shown)
    return fitted(("kind", "found within", *shown), grouped(rows), right, width, cut=[1])


def _at_share(cut: Cut, share: float) -> float:
    return math.ceil(share * cut.limit) if cut.unit == "tests" else share * cut.limit


# So what


def conclusions(comparison: Comparison) -> list[str]:
    """One line per strategy: in what it differs from the baseline, as far as is shown."""
    pairs = zip(comparison.equal_tests.differences, _at_cpu(comparison), strict=True)
    words: dict[str, list[str]] = {}
    for at_tests, at_cpu in pairs:
        if at_tests.q is not None:
            allowed = 1 - comparison.confidence
            words.setdefault(at_tests.strategy, []).append(_verdict(at_tests, at_cpu, allowed))
    return [
        f"{strategy} against {comparison.baseline}: "
        + "; ".join([*told, *told_apart(comparison, strategy)])
        for strategy, told in words.items()
    ]


def _at_cpu(comparison: Comparison) -> list[Difference]:
    """The differences at equal CPU time, in the order of those at equal tests."""
    known = {(one.strategy, one.kind): one for one in comparison.equal_cpu.differences}
    return [known[one.strategy, one.kind] for one in comparison.equal_tests.differences]


def _verdict(at_tests: Difference, at_cpu: Difference, allowed: float) -> str:
    tests, cpu = (_direction(one, allowed) for one in (at_tests, at_cpu))
    kind = "faults" if at_tests.kind == "fault" else f"{at_tests.kind} targets"
    if tests == cpu:
        return f"{tests.format(kind)} at equal tests and at equal CPU time"
    return f"{tests.format(kind)} at equal tests, {cpu.format(kind)} at equal CPU time"


def _direction(one: Difference, allowed: float) -> str:
    if one.q is None or one.q > allowed:
        return "no difference in {} shown"
    return "more {}" if one.more.value > 0 else "fewer {}"
