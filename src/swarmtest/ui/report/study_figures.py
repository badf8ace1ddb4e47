"""The figures of a study: interval plots, role shares, discovery curves and the heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.cells import FIXED
from swarmtest.analysis.discovery import Discovery
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.formatting import counted, words_for
from swarmtest.core.targets import Target
from swarmtest.roles.roles import FeatureRole, RoleTable, feature_shares
from swarmtest.roles.study import Study
from swarmtest.ui.report.figures import (
    DiscoveryCurve,
    DiscoveryPlot,
    HeatGroup,
    HeatMap,
    HeatRow,
    IntervalPlot,
    RoleShares,
)

_MAX_POINTS = 400
"""Curves with more steps are thinned, which makes no visible difference."""
_FAULTS_IN_HEAT_MAP = 8
_ROWS_PER_FAULT = 8
_PASSING_ROWS = 16
_FREQUENT = 0.1
"""A configuration that occurs in more than this share of a group is always shown."""


def interval_plot(study: Study, target: Target) -> IntervalPlot:
    """Return the intervals of one target, with the features most frequent in its tests first."""
    roles = sorted(study.roles(target), key=_plot_order)
    title = target.detail or target.name
    return IntervalPlot(
        f"intervals-{target.kind}-{_file_name(target.name)}",
        title,
        tuple(roles),
        study.confidence,
    )


def _plot_order(role: FeatureRole) -> tuple[bool, float, str]:
    return role.role == FIXED, -role.share, role.feature


def _file_name(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in text)[:60]


def role_shares(kind: str, table: RoleTable) -> RoleShares:
    """Return how often each feature is a trigger or a suppressor of a kind of target."""
    shares = sorted(
        feature_shares(table), key=lambda s: (s.suppressor - s.trigger, -s.trigger, s.feature)
    )
    return RoleShares(
        f"roles-{_file_name(kind)}",
        f"Triggers and suppressors of {counted(len(table.targets), kind)}",
        tuple(shares),
        len(table.targets),
    )


def discovery_curves(runs: Sequence[Discovery]) -> list[DiscoveryPlot]:
    """Return curves of what was found by tests and by CPU time, in turn, for each kind."""
    kinds = dict.fromkeys(kind for run in runs for kind in run.kinds())
    return [
        _curves(runs, kind, unit)
        for kind in sorted(kinds, key=lambda kind: (kind != "fault", kind))
        for unit in ("tests", "CPU seconds")
    ]


def _curves(runs: Sequence[Discovery], kind: str, unit: str) -> DiscoveryPlot:
    by = "tests" if unit == "tests" else "cpu-time"
    return DiscoveryPlot(
        f"discovery-{_file_name(kind)}-by-{by}",
        f"{words_for(kind)[1].capitalize()} by {by.replace('-', ' ').replace('cpu', 'CPU')}",
        unit,
        words_for(kind)[1],
        tuple(_curve(run, kind, unit) for run in runs if run.tests),
    )


def _curve(run: Discovery, kind: str, unit: str) -> DiscoveryCurve:
    found = run.curve(kind)
    steps = np.flatnonzero(np.diff(found, prepend=0))
    if len(steps) > _MAX_POINTS:
        steps = steps[np.unique(np.geomspace(1, len(steps), _MAX_POINTS).astype(int)) - 1]
    indices = np.unique(np.concatenate([steps, [run.tests - 1]]))
    effort = indices + 1.0 if unit == "tests" else run.cpu_seconds[indices]
    return DiscoveryCurve(
        run.campaign, run.strategy, tuple(effort.tolist()), tuple(found[indices].tolist())
    )


def configurations(study: Study) -> HeatMap:
    """Return the configurations of failing tests, by fault, and of passing ones."""
    evidence = study.evidence
    counts = np.bincount(evidence.fault[evidence.fault >= 0], minlength=len(study.faults))
    frequent = np.argsort(-counts, kind="stable")[:_FAULTS_IN_HEAT_MAP]
    groups = [
        _group(
            evidence,
            f"fault {evidence.fault_ids[number]}",
            np.flatnonzero(evidence.fault == number),
            _ROWS_PER_FAULT,
        )
        for number in frequent.tolist()
    ]
    passing = np.flatnonzero(evidence.fault < 0)
    if len(passing):
        groups.append(_group(evidence, "no fault", passing, _PASSING_ROWS))
    unlisted = len(study.faults) - len(frequent)
    sampling = (
        f"At most {_ROWS_PER_FAULT} distinct configurations of each fault and {_PASSING_ROWS} of "
        "tests that passed: the frequent ones, and others spread evenly over the trials; sorted "
        "by their weights."
    )
    if unlisted:
        sampling += f" The {unlisted} rarest faults are not shown."
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
    """Return the indices of the frequent configurations, and of others spread evenly."""
    frequent = np.flatnonzero(counts > _FREQUENT * counts.sum())[:most]
    rest = np.setdiff1d(np.arange(len(counts)), frequent)
    room = min(most - len(frequent), len(rest))
    spread = rest[np.unique(np.linspace(0, len(rest) - 1, room).astype(int))] if room else rest[:0]
    return np.concatenate([frequent, spread])


def _row(evidence: Evidence, test: int, count: int) -> HeatRow:
    campaign = evidence.campaigns[evidence.campaign[test]]
    weights = tuple(round(float(weight), 4) for weight in evidence.weights(test))
    return HeatRow(f"{campaign}#{evidence.trial[test]}", weights, count)
