"""Roles: which features make a target more likely, and which less (directed swarm, section 2.2).

Take the tests that hit target t and in which feature f was left to chance. A share of them
contains f; chance alone would give the share r, the base rate. If Wilson's interval (l, h) for the
first share lies above r, f is a trigger of t; if it lies below, f is a suppressor; otherwise f is
irrelevant, or there is too little data. In a plain coin-toss campaign r is the coin's rate, and
this is the papers' definition. In any other campaign r is the mean chance *over the tests that hit
t*: the share tends to that mean if f does not matter, whatever made the strategy include f more
often in some tests than in others. A base rate over all tests would make every feature that a
directed campaign prefers a trigger.

`swarmtest.analysis.role_cells` computes roles from counts. A role says that a feature matters; a
`FeatureEffect` says how much, in words that need no statistics: "1 test in 8 with it, 1 in 900
without".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.intervals import (
    Floats,
    binomial_p_value,
    hits_needed,
)
from swarmtest.analysis.role_cells import (
    FIXED,
    INSUFFICIENT,
    IRRELEVANT,
    ROLES,
    SUPPRESSOR,
    TRIGGER,
    Codes,
    RoleCells,
    RoleCellSource,
    RoleRows,
)
from swarmtest.core.display import MOST_ROWS, Displayed, ShownTable
from swarmtest.core.formatting import plural
from swarmtest.core.targets import Target

__all__ = [
    "FIXED",
    "INSUFFICIENT",
    "IRRELEVANT",
    "ROLES",
    "SUPPRESSOR",
    "TRIGGER",
    "FeatureRole",
    "FeatureShare",
    "RoleCells",
    "RoleTable",
    "feature_shares",
]

MARKS = {
    TRIGGER: "▲",
    SUPPRESSOR: "▼",
    f"{TRIGGER} before correction": "△",
    f"{SUPPRESSOR} before correction": "▽",
    IRRELEVANT: "○",
    INSUFFICIENT: "◇",
    FIXED: "×",
}
"""The symbol of each role: shapes differ, so colour is not needed. Hollow symbols are uncertain."""


@dataclass(frozen=True)
class FeatureRole:
    """The role of one feature for one target.

    >>> FeatureRole("pop", "suppressor", 0.02, 0.0, 0.09, 0.5, 60, 1e-9, 1e-8, 4).estimate
    0.09
    """

    feature: str
    role: str
    """trigger, suppressor, irrelevant, insufficient data, or no variation."""
    share: float
    """The share of the hits with the feature left to chance that contain it."""
    low: float
    high: float
    """Wilson's interval for that share."""
    base: float
    """The share that chance alone would give."""
    hits: float
    """The number of these hits; not whole if tests share configurations and count for less."""
    p_value: float
    adjusted: float
    """The p-value after correction for all comparisons of the table (Benjamini-Hochberg)."""
    needed: int
    """The hits needed to show either role; 0 without variation."""

    @property
    def estimate(self) -> float:
        """Return the papers' F(f, t): the bound nearest to the base rate, or that rate."""
        return {TRIGGER: self.low, SUPPRESSOR: self.high}.get(self.role, self.base)

    @property
    def missing_hits(self) -> int:
        """Return how many more hits are needed; 0 if there are enough."""
        return max(self.needed - int(self.hits), 0) if self.role == INSUFFICIENT else 0

    def is_discovery(self, rate: float = 0.05) -> bool:
        """Return whether the role survives the correction with this false discovery rate."""
        return self.role in (TRIGGER, SUPPRESSOR) and self.adjusted <= rate

    def to_json(self) -> dict[str, object]:
        """Return plain data; a base rate that does not exist is None."""
        return {**vars(self), "base": None if isnan(self.base) else self.base}


@dataclass(frozen=True)
class RoleTable(Displayed):
    """The role of every feature for every target of a table.

    It prints as a row per target with its triggers and suppressors; `to_pandas` has a row per
    target and feature, and `plot` draws the share of targets that each feature has a role for.

    Targets that the same tests hit share a row of `cells`. The arrays here have a row for each
    target: for tables of many thousands of targets, use `of` for one target, or `rows`.
    """

    targets: tuple[Target, ...]
    features: tuple[str, ...]
    hits: npt.NDArray[np.int64]
    """How many tests hit each target."""
    cells: RoleCellSource
    confidence: float = 0.95
    row: npt.NDArray[np.intp] | None = None
    """The row of each target in `cells`; None if each target has its own."""

    @cached_property
    def rows(self) -> RoleRows:
        """Return the roles of each row."""
        targets = np.bincount(self.row_of, minlength=self.cells.shape[0])
        return RoleRows(self.cells, targets, self.confidence)

    @cached_property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Return the row of each target in `cells`."""
        return np.arange(len(self.targets)) if self.row is None else self.row

    @property
    def counted(self) -> RoleCells:
        """Return the counts for each target."""
        return self.cells.of(self.row_of)

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """Return Wilson's interval for each share."""
        return self.counted.interval(self.confidence)

    @property
    def codes(self) -> Codes:
        """Return each role as an index into `ROLES`."""
        return self.rows.codes[self.row_of]

    @property
    def p_values(self) -> Floats:
        """Return exact two-sided p-values of triggers and suppressors; 1 for the rest."""
        return self.rows.spread(self.rows.claims.p_value)[self.row_of]

    @property
    def adjusted(self) -> Floats:
        """Return the p-values after Benjamini-Hochberg correction over all cells with variation."""
        return self.rows.spread(self.rows.claims.adjusted)[self.row_of]

    @property
    def certain_triggers(self) -> Bools:
        """Return the triggers at a level of 1% per target (Bonferroni over features).

        Unlike `discoveries`, this does not depend on which other targets are in the table.
        """
        triggers = self.codes == ROLES.index(TRIGGER)
        certain: Bools = triggers & (self.p_values <= 0.01 / len(self.features))
        return certain

    def discoveries(self, rate: float | None = None) -> Codes:
        """Return `codes` with only the roles that survive the correction; the rest is irrelevant.

        `rate` is the accepted share of false discoveries; by default 1 - confidence.
        """
        rate = 1 - self.confidence if rate is None else rate
        return self.rows.discoveries(rate)[self.row_of]

    def of(self, target: int) -> list[FeatureRole]:
        """Return the roles of all features for one target, by its position in `targets`."""
        row = int(self.row_of[target])
        cells = self.cells.of(slice(row, row + 1))
        base, hits = cells.base[0], cells.informative[0]
        fixed = np.isnan(base)
        shares = np.divide(cells.containing[0], hits, out=np.zeros(len(hits)), where=hits > 0)
        p_values = binomial_p_value(shares * hits, hits, np.where(fixed, 0.5, base))
        low, high = cells.interval(self.confidence)
        adjusted, codes = self.rows.adjusted_of(row), self.rows.codes[row]
        return [
            FeatureRole(
                feature=feature,
                role=ROLES[codes[i]],
                share=float(shares[i]),
                low=float(low[0, i]),
                high=float(high[0, i]),
                base=float(base[i]),
                hits=float(hits[i]),
                p_value=1.0 if fixed[i] else float(p_values[i]),
                adjusted=float(adjusted[i]),
                needed=0 if fixed[i] else hits_needed(float(base[i]), self.confidence),
            )
            for i, feature in enumerate(self.features)
        ]

    def counts_alone(self, target: int) -> Bools:
        """Return by feature whether hits of tests with only that feature count for a target."""
        row = int(self.row_of[target])
        counts: Bools = self.cells.of(slice(row, row + 1)).alone[0]
        return counts

    def discovered(self, target: int, role: str) -> list[str]:
        """Return the features that have this role for a target and survive the correction."""
        has_role = self._discovered[self.row_of[target]] == ROLES.index(role)
        return [
            feature for feature, is_wanted in zip(self.features, has_role, strict=True) if is_wanted
        ]

    @cached_property
    def _discovered(self) -> Codes:
        return self.rows.discoveries(1 - self.confidence)

    def shown_title(self) -> str:
        """Return what the table is about."""
        kinds = ", ".join(sorted({target.kind for target in self.targets})) or "none"
        return (
            f"roles of {plural(len(self.features), 'feature')} for "
            f"{plural(len(self.targets), 'target')} ({kinds}), after correction for many "
            "comparisons"
        )

    def shown_tables(self) -> list[ShownTable]:
        """Return a row per target: how many tests hit it, its triggers and its suppressors."""
        rows = [
            (
                f"{target} {target.detail}".rstrip(),
                int(self.hits[number]),
                ", ".join(self.discovered(number, TRIGGER)),
                ", ".join(self.discovered(number, SUPPRESSOR)),
            )
            for number, target in enumerate(self.targets[:MOST_ROWS])
        ]
        head = ("target", "tests", "triggers", "suppressors")
        return [ShownTable("", head, rows, len(self.targets))] if rows else []

    def data_columns(self) -> Mapping[str, Any]:
        """Return a row per target and feature."""
        cells = self.counted
        low, high = self.interval
        shape = low.shape
        with np.errstate(invalid="ignore"):
            share = cells.containing / cells.informative
        names = np.array([str(target) for target in self.targets], dtype=object)
        columns = {
            "role": np.array(ROLES, dtype=object)[self.codes],
            "sure": self.discoveries() == self.codes,
            "share": share,
            "low": low,
            "high": high,
            "base": cells.base,
            "hits": cells.informative,
            "p": self.p_values,
            "q": self.adjusted,
        }
        flat = {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
        return {
            "target": np.repeat(names, len(self.features)),
            "feature": np.tile(np.array(self.features, dtype=object), len(self.targets)),
            **flat,
        }

    def __iter__(self) -> Iterator[tuple[Target, list[FeatureRole]]]:
        return ((target, self.of(number)) for number, target in enumerate(self.targets))


@dataclass(frozen=True)
class FeatureShare:
    """The shares of targets for which a feature is a trigger and a suppressor.

    The papers' tables 2 and 6.
    """

    feature: str
    trigger: float
    suppressor: float
    targets: int
    """The number of targets with enough hits."""


def feature_shares(table: RoleTable, corrected: bool = True) -> list[FeatureShare]:
    """Summarise a table by feature, with only corrected roles or with all."""
    rows = table.rows
    codes = rows.discoveries(1 - table.confidence) if corrected else rows.codes
    shares = []
    for i, feature in enumerate(table.features):
        can_tell = rows.codes[:, i] <= ROLES.index(SUPPRESSOR)
        targets = int(can_tell @ rows.targets)
        trigger, suppressor = (
            int((codes[:, i] == ROLES.index(role)) @ rows.targets) / max(targets, 1)
            for role in (TRIGGER, SUPPRESSOR)
        )
        shares.append(FeatureShare(feature, trigger, suppressor, targets))
    return shares
