"""What came of focused testing as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from swarmtest.analysis.hitting_ratios import HittingRatio, hitting_ratio, rate_ratio
from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.report.focus_rows import (
    aimed_at,
    by_age,
    cautions,
    focus_rows,
    never_hit,
    summaries,
    verdict,
)
from swarmtest.report.quantities import json_text
from swarmtest.report.reduced import reduction_data


def focus_json(outcome: FocusOutcome) -> str:
    """The outcome with ratios, summaries and the verdict, as JSON; what is no number is null."""
    return json_text(focus_data(outcome))


def focus_data(outcome: FocusOutcome) -> dict[str, Any]:
    """The same as dictionaries and lists."""
    result = verdict(outcome)
    plain = {
        name: value
        for name, value in vars(outcome).items()
        if name not in ("targets", "faults") and not name.startswith("_")
    }
    return {
        **plain,
        "verdict": result.level,
        "verdict_text": result.text,
        "targets": [_target(target) for target in outcome.targets],
        "never_hit": [target.target for target in never_hit(outcome)],
        "summary": {
            name.replace(" ", "_"): asdict(one)
            for name, one in summaries(focus_rows(aimed_at(outcome))).items()
        },
        "warnings": cautions(outcome),
        "faults": [_fault(fault) for fault in by_age(outcome.faults)],
    }


def _target(target: FocusedTarget) -> dict[str, Any]:
    return {
        **asdict(target),
        "ratio": _ratio(hitting_ratio(target.directed, target.undirected)),
        "rate_ratio": _ratio(rate_ratio(target.directed, target.undirected)),
        "ratio_to_default": _ratio(hitting_ratio(target.directed, target.default)),
    }


def _ratio(ratio: HittingRatio) -> dict[str, float]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}


def _fault(fault: FocusedFault) -> dict[str, Any]:
    record = fault.record
    return {
        "id": record.id,
        "kind": record.kind,
        "signature": record.signature,
        "details": record.details,
        "count": record.count,
        "trial": record.trial,
        "status": fault.status,
        "why_unknown": fault.why_unknown,
        "file": fault.location[0] if fault.location else None,
        "line": fault.location[1] if fault.location else None,
        "replay": fault.replay,
        "reduced": reduction_data(fault.reduced) if fault.reduced else None,
        "directed": asdict(fault.directed),
        "undirected": asdict(fault.undirected),
    }
