"""From a study and its campaigns to figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.cells import FIXED
from swarmtest.analysis.discovery import Discovery
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.targets import Target
from swarmtest.growth.verdict import counted, words_for
from swarmtest.roles.roles import FeatureRole, RoleTable, feature_shares
from swarmtest.roles.study import Study
from swarmtest.ui.report.figures import (
    Curve,
    Curves,
    HeatGroup,
    HeatMap,
    HeatRow,
    IntervalPlot,
    RoleShares,
)

_POINTS = 400
"""A curve with more steps than this is thinned: no eye sees the difference."""
_FAULTS_IN_HEAT_MAP = 8
_ROWS_PER_FAULT = 8
_PASSING_ROWS = 16
_FREQUENT = 0.1
"""A configuration that more than this share of a group has is always shown."""


def interval_plot(study: Study, target: Target) -> IntervalPlot:
    """The intervals of one target, the features that its tests contain most often at the top."""
    roles = sorted(study.roles(target), key=_place)
    shown = target.detail or target.name
    return IntervalPlot(
        f"intervals-{target.kind}-{_file_name(target.name)}",
        shown,
        tuple(roles),
        study.confidence,
    )


def _place(role: FeatureRole) -> tuple[bool, float, str]:
    return role.role == FIXED, -role.share, role.feature


def _file_name(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in text)[:60]


def role_shares(kind: str, table: RoleTable) -> RoleShares:
    """How often each feature is a trigger or a suppressor of a kind of targets."""
    shares = sorted(
        feature_shares(table), key=lambda s: (s.suppressor - s.trigger, -s.trigger, s.feature)
    )
    return RoleShares(
        f"roles-{_file_name(kind)}",
        f"Triggers and suppressors of {counted(len(table.targets), kind)}",
        tuple(shares),
        len(table.targets),
    )


def discovery_curves(runs: Sequence[Discovery]) -> list[Curves]:
    """For each kind: what was found by tests, and by CPU time."""
    kinds = dict.fromkeys(kind for run in runs for kind in run.kinds())
    return [
        _curves(runs, kind, unit)
        for kind in sorted(kinds, key=lambda kind: (kind != "fault", kind))
        for unit in ("tests", "CPU seconds")
    ]


def _curves(runs: Sequence[Discovery], kind: str, unit: str) -> Curves:
    by = "tests" if unit == "tests" else "cpu-time"
    return Curves(
        f"discovery-{_file_name(kind)}-by-{by}",
        f"{words_for(kind)[1].capitalize()} by {by.replace('-', ' ').replace('cpu', 'CPU')}",
        unit,
        words_for(kind)[1],
        tuple(_curve(run, kind, unit) for run in runs if run.tests),
    )


def _curve(run: Discovery, kind: str, unit: str) -> Curve:
    found = run.curve(kind)
    steps = np.flatnonzero(np.diff(found, prepend=0))
    if len(steps) > _POINTS:
        steps = steps[np.unique(np.geomspace(1, len(steps), _POINTS).astype(int)) - 1]
    at = np.unique(np.concatenate([steps, [run.tests - 1]]))
    effort = at + 1.0 if unit == "tests" else run.cpu_seconds[at]
    return Curve(run.campaign, run.strategy, tuple(effort.tolist()), tuple(found[at].tolist()))


def configurations(study: Study) -> HeatMap:
    """The configurations of failing tests, by fault, and of passing ones."""
    evidence = study.evidence
    counts = np.bincount(evidence.fault[evidence.fault >= 0], minlength=len(study.faults))
    often = np.argsort(-counts, kind="stable")[:_FAULTS_IN_HEAT_MAP]
    groups = [
        _group(
            evidence,
            f"fault {evidence.fault_ids[number]}",
            np.flatnonzero(evidence.fault == number),
            _ROWS_PER_FAULT,
        )
        for number in often.tolist()
    ]
    passing = np.flatnonzero(evidence.fault < 0)
    if len(passing):
        groups.append(_group(evidence, "no fault", passing, _PASSING_ROWS))
    more = len(study.faults) - len(often)
    sampling = (
        f"At most {_ROWS_PER_FAULT} distinct configurations of each fault and {_PASSING_ROWS} of "
        "tests that passed: the frequent ones, and others spread evenly over the trials; sorted "
        "by their weights."
    )
    if more:
        sampling += f" The {more} rarest faults are left out."
    return HeatMap("configurations", "Configurations", evidence.features, tuple(groups), sampling)


def _group(evidence: Evidence, label: str, tests: npt.NDArray[np.intp], most: int) -> HeatGroup:
    _, first, counts = np.unique(
        evidence.configurations(tests), return_index=True, return_counts=True
    )
    order = np.argsort(first)
    first, counts = tests[first[order]], counts[order]
    chosen = _sample(counts, most).tolist()
    chosen.sort(key=lambda i: (-evidence.weights(first[i])).tolist())
    rows = [_row(evidence, int(first[i]), int(counts[i])) for i in chosen]
    enabled = [float(evidence.enabled[tests, i].mean()) for i in range(len(evidence.features))]
    return HeatGroup(label, len(tests), tuple(enabled), tuple(rows))


def _sample(counts: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """The frequent ones, and evenly spread others."""
    often = np.flatnonzero(counts > _FREQUENT * counts.sum())[:most]
    rest = np.setdiff1d(np.arange(len(counts)), often)
    room = min(most - len(often), len(rest))
    spread = rest[np.unique(np.linspace(0, len(rest) - 1, room).astype(int))] if room else rest[:0]
    return np.concatenate([often, spread])


def _row(evidence: Evidence, test: int, count: int) -> HeatRow:
    campaign = evidence.campaigns[evidence.campaign[test]]
    weights = tuple(round(float(weight), 4) for weight in evidence.weights(test))
    return HeatRow(f"{campaign}#{evidence.trial[test]}", weights, count)
