"""A campaign as the columns of an export, some trials at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from swarmtest.core.space import Space
from swarmtest.store.blocks.block import TrialBlock
from swarmtest.store.blocks.hits import BlockHits
from swarmtest.store.export import columns as cells
from swarmtest.store.export.columns import Cells
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord

_Row: TypeAlias = dict[str, Any]

PLAIN = {
    "campaign": "int64",
    "trial": "int64",
    "seed": "int64",
    "verdict": "string",
    "fault": "string",
    "signature": "string",
    "fault_state": "string",
    "steps": "int64",
    "skipped": "int64",
    "cpu_ms": "float64",
    "wall_ms": "float64",
    "origin": "string",
}
"""The columns that every campaign has, with their types in Parquet."""
REDUCED = {"before": "int64", "size": "int64", "runs": "int64", "complete": "bool"}
REDUCED |= {"test": "string"}
"""The columns about a fault's reduced test, in the row of the trial with the original test."""


class ExportTable:
    """A campaign's trials as the columns of an export, block by block."""

    def __init__(self, store: Store, campaign: int) -> None:
        self._store = store
        self._campaign = campaign
        self._signatures: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._targets: dict[int, str] = {}
        self._reductions = {r.trial: r for r in store.reductions(campaign) if r.test}
        self.space = Space.from_json(store.campaign(campaign).space)

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the flat form with their types in Parquet."""
        names = self.space.feature_names
        columns = PLAIN | {f"weight.{name}": "float64" for name in names}
        for setting in self.space.settings:
            columns[f"setting.{setting.name}"] = _type_of(setting.values)
        columns |= {f"used.{name}": "int64" for name in names}
        columns |= {f"propensity.{name}": "float64" for name in names}
        columns |= {"hits": "hits"}
        return columns | {f"reduced.{name}": kind for name, kind in REDUCED.items()}

    def parts(self) -> Iterator[ExportPart]:
        """Yield the trials, some at a time."""
        for block in self._store.blocks(self._campaign):
            for part in cells.export_parts(block):
                yield self._part(part)

    def _part(self, block: TrialBlock) -> ExportPart:
        hits = cells.complete_hits(block)
        self._learn(block, hits)
        plain = cells.plain_cells(block)
        settings, renormalised = cells.setting_cells(block, self.space)
        names = [self._targets[id] for id in hits.targets.tolist()]
        # In an order that does not depend on the store.
        order = sorted(range(len(names)), key=names.__getitem__)
        same = cells.distinct(block.numbers * 0)
        return ExportPart(
            block.size,
            plain
            | {
                "campaign": same.replaced(lambda _: self._campaign),
                "signature": plain["fault"].replaced(lambda id: self._signatures.get(id or "")),
                "fault_state": plain["fault"].replaced(lambda id: self._states.get(id or "")),
            },
            cells.weight_cells(block, self.space),
            settings,
            renormalised,
            cells.used_cells(block),
            cells.propensity_cells(block),
            self._reduced(block),
            [names[place] for place in order],
            BlockHits(
                hits.size,
                np.arange(len(order)),
                hits.classes[order],
                hits.starts,
                hits.positions,
            ),
        )

    def _reduced(self, block: TrialBlock) -> Cells:
        """Return the reduced tests; None for most trials."""
        wanted = {t: r for t, r in self._reductions.items() if block.first <= t <= block.last}
        found: list[_Row | None] = [None]
        index = cells.distinct(block.numbers * 0).places
        for trial, reduction in wanted.items():
            index[block.numbers == trial] = len(found)
            found.append(_reduced(reduction))
        return Cells(found, index)

    def _learn(self, block: TrialBlock, hits: BlockHits) -> None:
        """Look up the faults and targets that these trials refer to and earlier ones did not."""
        if set(block.faults) - self._signatures.keys():
            faults = self._store.faults(self._campaign)
            self._signatures = {fault.id: fault.signature for fault in faults}
            lives = fault_lives(self._store, self._store.campaign(self._campaign).subject)
            self._states = {life.fault: life.state for life in lives.values()}
        new = set(hits.targets.tolist()) - self._targets.keys()
        if new:
            names = {id: str(target) for id, target in self._store.targets(new).items()}
            self._targets |= dict.fromkeys(new, "unknown:target") | names


@dataclass(frozen=True)
class ExportPart:
    """Some trials as columns."""

    size: int
    plain: dict[str, Cells]
    """The columns `PLAIN`, by name."""
    weights: list[Cells]
    settings: list[Cells]
    renormalised: Cells
    used: list[Cells]
    propensities: list[Cells]
    reduced: Cells
    targets: list[str]
    """The targets that these trials hit, sorted by name."""
    hits: BlockHits
    """Who hit them; a target is its place in `targets`."""

    def flat(self, space: Space) -> dict[str, Cells]:
        """Return the columns of the flat form by name, all but the hits."""
        columns = {name: self.plain[name] for name in PLAIN}
        for beginning, names, values in (
            ("weight", space.feature_names, self.weights),
            ("setting", space.setting_names, self.settings),
            ("used", space.feature_names, self.used),
            ("propensity", space.feature_names, self.propensities),
        ):
            keys = [f"{beginning}.{name}" for name in names]
            columns |= dict(zip(keys, values, strict=True))
        for name in REDUCED:
            columns[f"reduced.{name}"] = self.reduced.replaced(partial(_flat_reduced, name))
        return columns


def _reduced(reduction: ReductionRecord) -> _Row:
    values = {name: getattr(reduction, name) for name in REDUCED}
    return values | {"test": json.loads(str(reduction.test))}


def _flat_reduced(name: str, reduced: _Row | None) -> Any:
    if reduced is None:
        return None
    return json.dumps(reduced[name]) if name == "test" else reduced[name]


def _type_of(values: Iterable[Any]) -> str:
    """Return the Parquet type for the values that a setting may have."""
    if isinstance(values, range):
        return "int64"
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64"
    return "float64" if kinds <= {int, float} else "string"
