"""How soon each strategy finds each fault, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.comparison import Comparison
from swarmtest.analysis.detection import ANY, Detection, Waiting
from swarmtest.analysis.equal_effort import Cut
from swarmtest.analysis.survival import Survival
from swarmtest.report.fitting import fitted, widest, wrapped
from swarmtest.report.quantities import amount, can_show, grouped, number, p_value
from swarmtest.report.terminal import plural

_SHOWN_FAULTS = 20
_LISTED = 3
_BARS = "·▁▂▃▄▅▆▇█"
_PLAIN_BARS = ".:-=+*x%#"
"""For terminals that cannot show blocks."""
_BARS_IN_A_CURVE = (16, 12, 8)
"""As many as there is room for."""


def detection_parts(comparison: Comparison, width: int = 0) -> list[str]:
    """A table in tests, one in CPU time, and what the faults are."""
    if not comparison.faults:
        return ["no run found a fault"]
    names = [(fault.id, fault.signature) for fault in comparison.faults[:_SHOWN_FAULTS]]
    hidden = len(comparison.faults) - len(names)
    more = f"\n... and {plural(hidden, 'fault')} more; --json has them all" if hidden else ""
    shown = {id for id, _ in names} | ({ANY} if len(names) > 1 else set())
    detections = [one for one in comparison.detections if one.fault in shown]
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
    waits = [one.tests for one in detections]
    before = {
        **_names(detections),
        "found in": _found_in(waits),
        "median tests": [median_text(wait.survival, "tests") for wait in waits],
        "hits per run": [number(one.hits) for one in detections],
    }
    title = f"found by 1 to {amount(longest, 'tests')}"
    return _table(before, title, waits, (1.0, longest), width, right="    r rr")


def _in_cpu_time(detections: Sequence[Detection], longest: float, width: int) -> str:
    waits = [one.cpu_seconds for one in detections]
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
        "fault": [one.fault for one in detections],
        "strategy": [one.strategy for one in detections],
    }


def _found_in(waits: Sequence[Waiting]) -> list[str]:
    return [f"{wait.survival.found} of {wait.survival.runs}" for wait in waits]


def _p_values(waits: Sequence[Waiting]) -> dict[str, list[str]]:
    if all(wait.p is None for wait in waits):
        return {}
    return {
        "p": [p_value(wait.p) for wait in waits],
        "q": [p_value(wait.q) for wait in waits],
    }


def _table(
    before: dict[str, list[str]],
    title: str,
    waits: Sequence[Waiting],
    ends: tuple[float, float],
    width: int,
    right: str,
) -> str:
    """With curves as long as there is room for, on a log scale between the ends."""
    text = ""
    for bars in _BARS_IN_A_CURVE:
        curves = [_curve(wait.survival, *ends, bars) for wait in waits]
        columns = {**before, title: curves, **_p_values(waits)}
        rows = grouped([*zip(*columns.values(), strict=True)])
        text = fitted(tuple(columns), rows, right, width, cut=[1])
        if not width or (widest(text) <= width and not _is_cut(columns["strategy"], text)):
            break
    return text


def _is_cut(names: Sequence[str], text: str) -> bool:
    return any(name not in text for name in names)


def median_text(survival: Survival, unit: str) -> str:
    """The median with its interval; "over" all that was seen, where it is not reached."""
    median, low, high = survival.median, survival.median_low, survival.median_high
    told = f"over {amount(survival.longest, unit)}" if median is None else amount(median, unit)
    if survival.runs == 1 or low is None:
        return told
    endless = "∞" if can_show("∞") else "inf"
    ends = [amount(low, unit), endless if high is None else amount(high, unit)]
    _, space, same = told.rpartition(" ") if unit == "cpu_seconds" else ("", "", "")
    return f"{told} [{', '.join(end.removesuffix(space + same) for end in ends)}]"


def _curve(survival: Survival, low: float, high: float, bars: int) -> str:
    """The share of runs that have found it, from `low` to `high` on a log scale."""
    low = low or high / 1000
    ratio = (high / low) ** (1 / (bars - 1)) if low else 1.0
    # A little late, for what was found exactly at the end has to be in, whatever the rounding.
    times = (low * ratio**k * (1 + 1e-9) for k in range(bars))
    shares = [survival.found_by(time) for time in times]
    marks = _BARS if can_show(_BARS) else _PLAIN_BARS
    return "".join(marks[min(8, int(s * 8) + 1)] if s else marks[0] for s in shares)


def told_apart(comparison: Comparison, strategy: str) -> list[str]:
    """The faults that a strategy was shown to find sooner, or later, than the baseline."""
    own = [one for one in comparison.detections if one.strategy == strategy and one.fault != ANY]
    answer = []
    for words, unit in (("in tests", "tests"), ("in CPU time", "cpu_seconds")):
        waits: dict[str, Waiting] = {one.fault: getattr(one, unit) for one in own}
        shown = {
            fault: wait
            for fault, wait in waits.items()
            if wait.q is not None and wait.q <= 1 - comparison.confidence
        }
        told = [
            f"{word} for {_listed([fault for fault, wait in shown.items() if wait.sooner == fast])}"
            for word, fast in (("sooner", True), ("later", False))
            if any(wait.sooner == fast for wait in shown.values())
        ]
        answer += [f"{words} {', '.join(told)}"] if told else []
    return answer


def _listed(faults: Sequence[str]) -> str:
    more = f" and {len(faults) - _LISTED} more" if len(faults) > _LISTED else ""
    return " ".join(faults[:_LISTED]) + more
