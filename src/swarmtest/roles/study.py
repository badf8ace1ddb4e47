"""A study: every analysis of features and targets that campaigns allow, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.hit_blocks import hit_blocks
from swarmtest.analysis.intervals import normal_quantile
from swarmtest.analysis.propensities import Propensities, propensities_of
from swarmtest.analysis.role_cells import IRRELEVANT
from swarmtest.analysis.trial_columns import (
    Evidence,
    changed_between,
    read_evidence,
    test_columns,
)
from swarmtest.core.display import Displayed, ShownTable
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import plural
from swarmtest.core.targets import Target
from swarmtest.coverage.kinds import KINDS
from swarmtest.roles.amounts import Amount, amounts
from swarmtest.roles.counting import RoleCounter
from swarmtest.roles.effects import EffectWeights, FeatureEffect
from swarmtest.roles.pairs import Pair, pairs
from swarmtest.roles.roles import FeatureRole, RoleTable
from swarmtest.roles.settings import SettingRole, SettingValues, read_setting_values, setting_roles
from swarmtest.store.interface import Store


class Study(Displayed):
    """The tests of one or more campaigns, and what they say about features and targets.

    Campaigns of the same subject are analysed together, whatever their strategies: every test is
    weighed with the chances with which it was drawn.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> class Tower(Machine):
    ...     def start(self): self.height = 0
    ...     @action
    ...     def build(self): self.height += 1; assert self.height < 40
    ...     @action
    ...     def raze(self): self.height = 0
    ...     @action
    ...     def look(self): pass
    >>> store = open_store(":memory:")
    >>> outcome = Campaign(Tower, "coin", 300, store=store, workers=0).run()
    >>> study = Study(store, [outcome.campaign])
    >>> [(r.feature, r.role) for r in study.roles(study.find("fault"))]
    [('build', 'trigger'), ('raze', 'suppressor'), ('look', 'irrelevant')]
    """

    def __init__(self, store: Store, campaigns: Sequence[int], confidence: float = 0.95) -> None:
        normal_quantile(confidence)  # raises the error for an impossible confidence
        self.store = store
        self.confidence = confidence
        self.evidence: Evidence = read_evidence(store, campaigns)
        self.chances: Propensities = propensities_of(self.evidence)
        self._hits: dict[Target, npt.NDArray[np.intp]] = {}
        self._pairs: dict[Target, list[Pair]] = {}
        self._roles: dict[Target, list[FeatureRole]] = {}
        self._tables: dict[Target, RoleTable] = {}

    def shown_title(self) -> str:
        """Return which tests are studied, and what a reader should know about them."""
        evidence = self.evidence
        numbers = ", ".join(map(str, evidence.campaigns))
        words = (
            f"study of campaign {numbers}: {plural(evidence.n, 'test')}, "
            f"{plural(len(evidence.features), 'feature')}, {plural(len(self.faults), 'fault')}"
        )
        return ". ".join([words, *self.notes])

    def shown_tables(self) -> list[ShownTable]:
        """Return the faults with their triggers and suppressors, if any feature was varied."""
        return self.table("fault").shown_tables() if self.faults and self.chances.vary else []

    def data_columns(self) -> Mapping[str, Any]:
        """Return a row per test: what it was, how it ended, and the weights of features."""
        return test_columns(self.evidence)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the results should know about the data."""
        records = [self.store.campaign(campaign) for campaign in self.evidence.campaigns]
        changed = changed_between(self.store, records)
        note = f"{changed}: a fault is taken for the same in all versions, lines are not"
        return (*self.chances.notes, note) if changed else self.chances.notes

    def require_variation(self) -> None:
        """Raise an error if no feature was ever left to chance."""
        if not self.chances.vary:
            evidence = self.evidence
            always = bool((evidence.enabled.sizes() == len(evidence.features)).all())
            why = "all features were always on" if always else "no feature was left to chance"
            names = ", ".join(map(str, evidence.campaigns))
            raise UserError(
                f"campaign {names}: {why}, so triggers and suppressors cannot be found: run a "
                "swarm (`--strategy coin` or `layered`), or name one target to see whether more "
                "of a feature matters"
            )

    @cached_property
    def targets(self) -> dict[int, Target]:
        """Return all targets that were hit, except faults, by the store's id."""
        return self.store.targets(self.evidence.reached)

    @cached_property
    def _setting_values(self) -> SettingValues:
        return read_setting_values(self.evidence)

    @cached_property
    def faults(self) -> tuple[Target, ...]:
        """Return the faults that were found, as targets."""
        return tuple(map(self.evidence.fault_target, range(len(self.evidence.fault_ids))))

    def kinds(self) -> list[str]:
        """Return the kinds of targets that were hit, faults first."""
        kinds = sorted({target.kind for target in self.targets.values()})
        return ["fault", *kinds] if self.faults else kinds

    def table(self, kind: str = "fault") -> RoleTable:
        """Return the roles of all features for all targets of a kind."""
        return self.tables([kind])[kind]

    def tables(self, kinds: Sequence[str]) -> dict[str, RoleTable]:
        """Return the tables of several kinds, counted in one pass over the tests."""
        counted: dict[str, RoleTable] = {}
        chosen = {
            kind: [(id, target) for id, target in self.targets.items() if target.kind == kind]
            for kind in kinds
            if kind != "fault"
        }
        if chosen:
            tables = self._counter.tables(list(chosen.values()))
            counted = dict(zip(chosen, tables, strict=True))
        return {kind: self._fault_roles if kind == "fault" else counted[kind] for kind in kinds}

    def table_of_tests(
        self, targets: Sequence[Target], hits: Sequence[npt.NDArray[np.intp]]
    ) -> RoleTable:
        """Return the roles of all features for targets of one's own, given the tests that hit."""
        return self._counter.table_of_hits(tuple(targets), hits)

    def find(self, text: str) -> Target:
        """Return the target with this name: ``line:cart.py:12``, ``event:full``, a fault's id.

        A fault's id may be shortened, and ``fault`` alone means the only fault. A target that was
        not hit has no roles; the error suggests similar names of targets that were hit.
        """
        kind, _, name = text.partition(":")
        named = [target for target in self.targets.values() if text in (str(target), target.name)]
        exact = [target for target in named if str(target) == text]
        if kind == "mutant" and not named:
            named = [t for t in self.targets.values() if t.kind == kind and _is_named(t, name)]
        lines = [target for target in named if target.kind == "line"]
        short = name if kind == "fault" else text
        faults = [fault for fault in self.faults if fault.name.startswith(short)]
        matches = exact or lines or named or faults
        if len(matches) == 1:
            return matches[0]
        if matches:
            several = ", ".join(map(str, matches[:5]))
            raise UserError(f"{text!r} may be {several}: say which")
        names = [*map(str, self.faults), *map(str, self.targets.values())]
        near = did_you_mean(text, names) if len(names) < 20_000 else ""
        where = ", ".join(map(str, self.evidence.campaigns))
        if kind in KINDS and kind not in self.kinds():
            raise UserError(
                f"campaign {where} has no coverage of kind {kind!r}: run it with --coverage {kind}"
            )
        raise UserError(f"no test of campaign {where} hit {text!r}{near[:200]}")

    def roles(self, target: Target) -> list[FeatureRole]:
        """Return the role of every feature for one target: does *enabling* it matter?"""
        if target not in self._roles:
            table, row = self._row(target)
            if target.kind != "fault":
                return table.of(row)
            # Several sections ask for those of a fault, of which there are few.
            self._roles[target] = table.of(row)
        return [*self._roles[target]]

    def amounts(self, target: Target) -> list[Amount]:
        """Return whether it matters *how much* of a feature there is, where it is enabled."""
        relevant = {role.feature for role in self.roles(target) if role.role != IRRELEVANT}
        relevant |= {name for pair in self.pairs(target) for name in (pair.feature, pair.other)}
        numbers = [i for i, name in enumerate(self.evidence.features) if name in relevant]
        known = None if target.kind == "fault" else self.evidence.hits_known
        return amounts(self.evidence, numbers, self.hits(target), known, self.confidence)

    def roles_of_either(self, one: Target, other: Target) -> list[FeatureRole]:
        """Return the role of every feature for hitting at least one of two targets."""
        either = np.union1d(self.hits(one), self.hits(other))
        return self.table_of_tests([one], [either]).of(0)

    def effects(self, target: Target) -> list[FeatureEffect]:
        """Return the hitting fraction with each feature, and without it."""
        table, row = self._row(target)
        weights = self._fault_weights if target.kind == "fault" else self._weights
        return weights.effects(self.hits(target), table.counts_alone(row))

    def settings(self, target: Target) -> list[SettingRole]:
        """Return the role of every setting of the space: only with `size` above 40?"""
        if not self.evidence.spaces[0].settings:
            return []
        is_fault = target.kind == "fault"
        known = None if is_fault else self.evidence.hits_known
        targets = len(self.faults) if is_fault else 1
        hits = self.hits(target)
        return setting_roles(
            self.evidence, self._setting_values, hits, known, self.confidence, targets
        )

    def pairs(self, target: Target) -> list[Pair]:
        """Return features that matter only together with another, or only without it."""
        if target not in self._pairs:
            hits = self.hits(target)
            self._pairs[target] = pairs(self.evidence, self.chances, hits, self.confidence)
        return self._pairs[target]

    def hit(self, target: Target) -> Bools:
        """Return which tests hit a target, as a bool for each test."""
        hit = np.zeros(self.evidence.n, bool)
        hit[self.hits(target)] = True
        return hit

    def hits(self, target: Target) -> npt.NDArray[np.intp]:
        """Return the tests that hit a target, ascending."""
        if target.kind == "fault":
            return self.evidence.fault_tests[self.evidence.fault_ids.index(target.name)]
        if target not in self._hits:
            blocks = hit_blocks(self.evidence, [self._id(target)])
            parts = [block.entries()[1] for block in blocks]
            self._hits[target] = np.concatenate([*parts, np.empty(0, np.intp)])
        return self._hits[target]

    def _row(self, target: Target) -> tuple[RoleTable, int]:
        """Return a table that contains the target, and its row in it."""
        if target.kind == "fault":
            return self._fault_roles, self.faults.index(target)
        if target not in self._tables:
            self._tables[target] = self._counter.table_of_one(self._id(target), target)
        return self._tables[target], 0

    def _id(self, target: Target) -> int:
        return next(id for id, candidate in self.targets.items() if candidate == target)

    @cached_property
    def _counter(self) -> RoleCounter:
        return RoleCounter(self.evidence, self.chances, self.confidence)

    @cached_property
    def _fault_roles(self) -> RoleTable:
        return self._counter.fault_table()

    @cached_property
    def _fault_weights(self) -> EffectWeights:
        """Return the weights of all tests: whether a test shows a fault is always known."""
        return EffectWeights(self.evidence, self.chances, None, self.confidence)

    @cached_property
    def _weights(self) -> EffectWeights:
        """Return the weights of the tests whose hits are known."""
        known = self.evidence.hits_known
        if known.all():
            return self._fault_weights
        return EffectWeights(self.evidence, self.chances, known, self.confidence)


def _is_named(mutant: Target, id: str) -> bool:
    """Return whether a mutant's id, which ends its name, begins with `id`."""
    return bool(id) and mutant.name.rpartition(" ")[2].startswith(id)
