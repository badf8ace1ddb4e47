"""How soon each strategy finds each fault, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.comparison import Comparison
from swarmtest.analysis.detection import ANY, Detection, Waiting
from swarmtest.analysis.survival import Survival
from swarmtest.report.quantities import amount, grouped, number, p_value
from swarmtest.report.terminal import plural, table

_SHOWN_FAULTS = 20
_LISTED = 3
_BARS = "▁▂▃▄▅▆▇█"
_BARS_IN_A_CURVE = 16


def detection_parts(comparison: Comparison) -> list[str]:
    """A table in tests, one in CPU time, and what the faults are."""
    if not comparison.faults:
        return ["no run found a fault"]
    names = [(fault.id, fault.signature) for fault in comparison.faults[:_SHOWN_FAULTS]]
    hidden = len(comparison.faults) - len(names)
    more = f"\n... and {plural(hidden, 'fault')} more; --json has them all" if hidden else ""
    shown = {id for id, _ in names} | ({ANY} if len(names) > 1 else set())
    detections = [one for one in comparison.detections if one.fault in shown]
    return [
        "TO THE FIRST DETECTION: whole runs; a run that never found it counts as waiting longer",
        _in_tests(detections, max(run.tests for run in comparison.runs)),
        _in_cpu_time(detections, max(run.cpu_seconds for run in comparison.runs)),
        table(("fault", "signature"), names) + more,
    ]


def _in_tests(detections: Sequence[Detection], longest: float) -> str:
    waits = [one.tests for one in detections]
    columns = {
        **_names(detections),
        "found in": _found_in(waits),
        "median tests": [_median(wait.survival, "tests") for wait in waits],
        "hits per run": [number(one.hits) for one in detections],
        f"found by 1 … {amount(longest, 'tests')}": _curves(waits, 1.0, longest),
        **_p_values(waits),
    }
    return _table(columns, right="    r rr")


def _in_cpu_time(detections: Sequence[Detection], longest: float) -> str:
    waits = [one.cpu_seconds for one in detections]
    first = min(time for wait in waits for time in wait.survival.times)
    ends = " … ".join(amount(end, "cpu_seconds") for end in (first, longest))
    columns = {
        **_names(detections),
        "median CPU time": [_median(wait.survival, "cpu_seconds") for wait in waits],
        f"found by {ends}": _curves(waits, first, longest),
        **_p_values(waits),
    }
    return _table(columns, right="    rr")


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


def _table(columns: dict[str, list[str]], right: str) -> str:
    return table(tuple(columns), grouped([*zip(*columns.values(), strict=True)]), right)


def _median(survival: Survival, unit: str) -> str:
    if survival.median is None:
        return "not reached"
    if survival.runs == 1:
        return amount(survival.median, unit)
    ends = (survival.median_low, survival.median_high)
    told = ("∞" if end is None else amount(end, unit) for end in ends)
    return f"{amount(survival.median, unit)} [{', '.join(told)}]"


def _curves(waits: Sequence[Waiting], low: float, high: float) -> list[str]:
    return [_curve(wait.survival, low, high) for wait in waits]


def _curve(survival: Survival, low: float, high: float) -> str:
    """The share of runs that have found it, from `low` to `high` on a log scale."""
    ratio = (high / low) ** (1 / (_BARS_IN_A_CURVE - 1))
    # A little late, for what was found exactly at the end has to be in, whatever the rounding.
    times = (low * ratio**k * (1 + 1e-9) for k in range(_BARS_IN_A_CURVE))
    shares = [survival.found_by(time) for time in times]
    return "".join("·" if not s else _BARS[min(7, int(s * 8))] for s in shares)


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
