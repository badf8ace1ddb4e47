"""A comparison of strategies as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from swarmtest.compare.comparison import Comparison
from swarmtest.compare.detection import ANY, Detection, Survival, TimeToDetection
from swarmtest.compare.equal_effort import SHARES, Cut, Difference
from swarmtest.core.formatting import (
    amount,
    duration,
    format_percent,
    number,
    p_value,
    plural,
    with_interval,
)
from swarmtest.ui.terminal.tables import fitted, widest, wrapped
from swarmtest.ui.terminal.text import can_show, grouped

_SHOWN_FAULTS = 20
_LISTED = 3
_BARS = "·▁▂▃▄▅▆▇█"
_PLAIN_BARS = ".:-=+*x%#"
"""For terminals that cannot show block characters."""
_BARS_IN_A_CURVE = (16, 12, 8)
"""The lengths of curves; the longest that fits is used."""
_SHOWN_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def comparison_text(comparison: Comparison, width: int = 0) -> str:
    """Return the whole report: what was found, at what cost, how soon, and conclusions.

    `width` is the width of the screen in columns; 0 means no limit.
    """
    counts = {effort.runs for effort in comparison.equal_tests.efforts}
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
    if not any(difference.p is not None for difference in comparison.equal_tests.differences):
        return []
    return [
        f"[ ] {format_percent(comparison.confidence, 2)} interval; A12: chance that a run finds "
        f"more than a run of {comparison.baseline}, ties as half;",
        "p: Mann-Whitney, log-rank for detection; q: p corrected for all of this report",
    ]


# What was found with equal effort.


def _cut_text(cut: Cut, comparison: Comparison, width: int) -> str:
    title = "AT EQUAL TESTS" if cut.unit == "tests" else "AT EQUAL CPU TIME"
    parts = [
        wrapped(f"{title}: {_part_of_runs(cut)}", width),
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
    together = ", ".join(f"{kind} {count:,}" for kind, count in cut.together.items())
    head = ("kind", "strategy", "found per run", "in any run", "only here", everywhere)
    text = fitted((*head, "hits/target"), grouped(rows), "   rrrr", width, cut=[1])
    return f"{text}\n{wrapped(f'all strategies together: {together}', width, '  ')}"


def _differences(cut: Cut, comparison: Comparison, width: int) -> str:
    tested = [difference for difference in cut.differences if difference.p is not None]
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
            difference.kind,
            difference.strategy,
            with_interval(difference.more, sign="+"),
            effect(difference),
            p_value(difference.p),
            p_value(difference.q),
        )
        for difference in tested
    ]
    head = ("kind", f"against {comparison.baseline}", "more per run", "A12", "p", "q")
    return fitted(head, grouped(rows), "    rr", width, cut=[1])


def _effect(difference: Difference) -> str:
    if difference.effect is None:
        return "-"
    effect = difference.effect
    return f"{effect.a12:.2f} {effect.word} [{effect.low:.2f}, {effect.high:.2f}]"


def _short_effect(difference: Difference) -> str:
    return (
        "-"
        if difference.effect is None
        else f"{difference.effect.a12:.2f} {difference.effect.word}"
    )


def _growth(cut: Cut, width: int) -> str:
    """Return how many faults and other targets were found within shares of the effort."""
    shown = {amount(_at_share(cut, share), cut.unit): share for share in _SHOWN_SHARES}
    columns = [SHARES.index(share) for share in shown.values()]
    rows = [
        (curve.kind, curve.strategy, *(number(curve.mean[column]) for column in columns))
        for curve in cut.curves
    ]
    right = "  " + "r" * len(shown)
    return fitted(("kind", "found within", *shown), grouped(rows), right, width, cut=[1])


def _at_share(cut: Cut, share: float) -> float:
    return math.ceil(share * cut.limit) if cut.unit == "tests" else share * cut.limit


# Conclusions.


def conclusions(comparison: Comparison) -> list[str]:
    """Return one line per strategy: how it differs from the baseline, as far as is shown."""
    pairs = zip(comparison.equal_tests.differences, _at_cpu(comparison), strict=True)
    words: dict[str, list[str]] = {}
    for at_tests, at_cpu in pairs:
        if at_tests.q is not None:
            allowed = 1 - comparison.confidence
            words.setdefault(at_tests.strategy, []).append(_verdict(at_tests, at_cpu, allowed))
    return [
        f"{strategy} against {comparison.baseline}: "
        + "; ".join([*verdicts, *fault_verdicts(comparison, strategy)])
        for strategy, verdicts in words.items()
    ]


def _at_cpu(comparison: Comparison) -> list[Difference]:
    """Return the differences at equal CPU time, in the order of those at equal tests."""
    at_cpu = {
        (difference.strategy, difference.kind): difference
        for difference in comparison.equal_cpu.differences
    }
    return [
        at_cpu[difference.strategy, difference.kind]
        for difference in comparison.equal_tests.differences
    ]


def _verdict(at_tests: Difference, at_cpu: Difference, allowed: float) -> str:
    tests, cpu = (_direction(difference, allowed) for difference in (at_tests, at_cpu))
    kind = "faults" if at_tests.kind == "fault" else f"{at_tests.kind} targets"
    if tests == cpu:
        return f"{tests.format(kind)} at equal tests and at equal CPU time"
    return f"{tests.format(kind)} at equal tests, {cpu.format(kind)} at equal CPU time"


def _direction(difference: Difference, allowed: float) -> str:
    if difference.q is None or difference.q > allowed:
        return "no difference in {} shown"
    return "more {}" if difference.more.value > 0 else "fewer {}"


# How soon each strategy finds each fault.


def detection_parts(comparison: Comparison, width: int = 0) -> list[str]:
    """Return a table in tests, one in CPU time, and what the faults are."""
    if not comparison.faults:
        return ["no run found a fault"]
    names = [(fault.id, fault.signature) for fault in comparison.faults[:_SHOWN_FAULTS]]
    hidden = len(comparison.faults) - len(names)
    more = f"\n... and {plural(hidden, 'fault')} more; --json has them all" if hidden else ""
    shown = {id for id, _ in names} | ({ANY} if len(names) > 1 else set())
    detections = [detection for detection in comparison.detections if detection.fault in shown]
    whole = "whole runs; a run that never found it counts as waiting longer"
    by_clock = comparison.detection_tests is not None
    by_tests = _part_of_runs(comparison.equal_tests) if by_clock else whole
    longest = comparison.detection_tests or max(run.tests for run in comparison.runs)
    by_cpu = _part_of_runs(comparison.equal_cpu)
    return [
        wrapped(f"TO THE FIRST DETECTION, IN TESTS: {by_tests}", width),
        _in_tests(detections, longest, width),
        wrapped(f"TO THE FIRST DETECTION, IN CPU TIME: {by_cpu}", width),
        _in_cpu_time(detections, comparison.equal_cpu.limit, width),
        fitted(("fault", "signature"), names, width=width, cut=[1]) + more,
    ]


def _part_of_runs(cut: Cut) -> str:
    return (
        f"the first {amount(cut.limit, cut.unit)} of each run (campaign {cut.shortest} has no more)"
    )


def _in_tests(detections: Sequence[Detection], longest: float, width: int) -> str:
    waits = [detection.tests for detection in detections]
    before = {
        **_names(detections),
        "found in": _found_in(waits),
        "median tests": [median_text(wait.survival, "tests") for wait in waits],
        "hits per run": [number(detection.hits) for detection in detections],
    }
    title = f"found by 1 to {amount(longest, 'tests')}"
    return _table(before, title, waits, (1.0, longest), width, right="    r rr")


def _in_cpu_time(detections: Sequence[Detection], longest: float, width: int) -> str:
    waits = [detection.cpu_seconds for detection in detections]
    first = min((time for wait in waits for time in wait.survival.times), default=longest)
    ends = " to ".join(amount(end, "cpu_seconds") for end in (first, longest))
    before = {
        **_names(detections),
        "found in": _found_in(waits),
        "median CPU time": [median_text(wait.survival, "cpu_seconds") for wait in waits],
    }
    return _table(before, f"found by {ends}", waits, (first, longest), width, right="     rr")


def _names(detections: Sequence[Detection]) -> dict[str, list[str]]:
    return {
        "fault": [detection.fault for detection in detections],
        "strategy": [detection.strategy for detection in detections],
    }


def _found_in(waits: Sequence[TimeToDetection]) -> list[str]:
    return [f"{wait.survival.found} of {wait.survival.runs}" for wait in waits]


def _p_values(waits: Sequence[TimeToDetection]) -> dict[str, list[str]]:
    if all(wait.p is None for wait in waits):
        return {}
    return {
        "p": [p_value(wait.p) for wait in waits],
        "q": [p_value(wait.q) for wait in waits],
    }


def _table(
    before: dict[str, list[str]],
    title: str,
    waits: Sequence[TimeToDetection],
    ends: tuple[float, float],
    width: int,
    right: str,
) -> str:
    """Return a table with curves as long as there is room for, on a log scale between the ends."""
    text = ""
    for bars in _BARS_IN_A_CURVE:
        curves = [_curve(wait.survival, *ends, bars) for wait in waits]
        columns = {**before, title: curves, **_p_values(waits)}
        rows = grouped([*zip(*columns.values(), strict=True)])
        text = fitted(tuple(columns), rows, right, width, cut=[1])
        if not width or (widest(text) <= width and not _is_cut(columns["strategy"], text)):
            return text
    if widest(text) > width:  # the screen is too narrow for any curve
        columns = {**before, **_p_values(waits)}
        rows = grouped([*zip(*columns.values(), strict=True)])
        right = right[: len(before)] + right[len(before) + 1 :]
        text = fitted(tuple(columns), rows, right, width, cut=[1])
    return text


def _is_cut(names: Sequence[str], text: str) -> bool:
    return any(name not in text for name in names)


def median_text(survival: Survival, unit: str) -> str:
    """Return the median with its interval; "over" the longest wait if it was not reached."""
    median, low, high = survival.median, survival.median_low, survival.median_high
    text = f"over {amount(survival.longest, unit)}" if median is None else amount(median, unit)
    if survival.runs == 1 or low is None:
        return text
    endless = "∞" if can_show("∞") else "inf"
    ends = [amount(low, unit), endless if high is None else amount(high, unit)]
    _, space, shared_unit = text.rpartition(" ") if unit == "cpu_seconds" else ("", "", "")
    return f"{text} [{', '.join(end.removesuffix(space + shared_unit) for end in ends)}]"


def _curve(survival: Survival, low: float, high: float, bars: int) -> str:
    """Draw the share of runs that have found it, from `low` to `high` on a log scale."""
    low = low or high / 1000
    ratio = (high / low) ** (1 / (bars - 1)) if low else 1.0
    # Slightly late, so that what was found exactly at the end is included despite rounding.
    times = (low * ratio**k * (1 + 1e-9) for k in range(bars))
    shares = [survival.found_by(time) for time in times]
    marks = _BARS if can_show(_BARS) else _PLAIN_BARS
    return "".join(marks[min(8, int(s * 8) + 1)] if s else marks[0] for s in shares)


def fault_verdicts(comparison: Comparison, strategy: str) -> list[str]:
    """Say which faults a strategy was shown to find sooner, or later, than the baseline."""
    own = [
        detection
        for detection in comparison.detections
        if detection.strategy == strategy and detection.fault != ANY
    ]
    result = []
    for words, unit in (("in tests", "tests"), ("in CPU time", "cpu_seconds")):
        waits: dict[str, TimeToDetection] = {
            detection.fault: getattr(detection, unit) for detection in own
        }
        shown = {
            fault: wait
            for fault, wait in waits.items()
            if wait.q is not None and wait.q <= 1 - comparison.confidence
        }
        parts = [
            f"{word} for {_listed([fault for fault, wait in shown.items() if wait.sooner == fast])}"
            for word, fast in (("sooner", True), ("later", False))
            if any(wait.sooner == fast for wait in shown.values())
        ]
        result += [f"{words} {', '.join(parts)}"] if parts else []
    return result


def _listed(faults: Sequence[str]) -> str:
    more = f" and {len(faults) - _LISTED} more" if len(faults) > _LISTED else ""
    return " ".join(faults[:_LISTED]) + more
