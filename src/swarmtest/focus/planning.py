"""Plan what a focused campaign aims at, from what earlier tests say about each target.

A `AimPlanner` treats each target in this order:

1. More than the share `hot` of the tests hit it anyway: it is dropped, with the reason.
2. It has enough hits for statistics (`ENOUGH`): it gets its own triggers and suppressors.
3. A fault with too few hits that was explained by experiments (`swarmtest why`): it gets the
   features that the explanation names.
4. It has too few hits, or none because the code is new: it gets the roles of the nearest code that
   leads to it and has enough hits (`swarmtest.focus.proxies`); the plan names that code.
5. Nothing with data leads to it: it cannot be aimed at, and the plan says why.

Roles are computed as in the papers: Wilson's interval against the base rate, at 95% and feature by
feature, without correction for many features. A false role costs a little diversity; a role that a
stricter test misses costs hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.role_cells import ROLES, SUPPRESSOR, TRIGGER
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.coverage.scope import shown_path
from swarmtest.focus.history import History
from swarmtest.focus.known_faults import (
    WatchedCode,
    explained_values,
    is_imported,
    known_fault,
)
from swarmtest.focus.proxies import NoProxy, Proxy, implied_by, nearest_with_data
from swarmtest.languages.places import Wanted
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.why.explanation import Explanation, stored_explanation

# The plan, as plain values.

Cause = Literal["", "hot", "at import", "unseen", "no data", "no code"]
"""Why a target is not aimed at; empty if it is."""


@dataclass(frozen=True)
class TestShape:
    """How tests of a fault that was explained are generated: their length, and repeated values.

    >>> TestShape((3, 15), 0.6).words
    'tests of 3 to 15 steps, in which arguments repeat'
    """

    steps: tuple[int, int]
    repeats: float = 0.0
    """The share of values that repeat earlier ones of the same test."""
    values: tuple[Any, ...] = ()
    """The numbers and texts of the explained test, which count as earlier ones."""

    @property
    def words(self) -> str:
        """The shape in words."""
        repeated = ", in which arguments repeat" if self.repeats else ""
        repeated += " or are those of the known test" if self.repeats and self.values else ""
        return f"tests of {self.steps[0]} to {self.steps[1]} steps{repeated}"


@dataclass(frozen=True)
class PlannedTarget:
    """A target, and how to aim at it."""

    name: str
    place: str = ""
    line: int = 0
    function: str = ""
    through: tuple[str, ...] = ()
    """The names of the targets to aim at instead, in the current code."""
    proxy: str = ""
    mapped: str = ""
    dropped: str = ""
    """The reason why it is not aimed at, in words; empty if it is."""
    cause: Cause = ""
    aimed: bool = False
    triggers: tuple[str, ...] = ()
    suppressors: tuple[str, ...] = ()
    certain: tuple[str, ...] = ()
    """The triggers that stay significant after correction for many features."""
    shape: TestShape | None = None
    """The tests that its explanation asks for; None: the subject's own."""

    @property
    def goal(self) -> Goal:
        """Return the target as strategies take it."""
        return Goal(self.name, self.through)


@dataclass(frozen=True)
class FocusPlan:
    """All targets of a focused campaign."""

    targets: tuple[PlannedTarget, ...]

    @property
    def shape(self) -> TestShape | None:
        """The tests that all targets ask for; None if they do not agree."""
        shapes = {target.shape for target in self.targets if target.aimed}
        return next(iter(shapes)) if len(shapes) == 1 else None

    @property
    def aims(self) -> tuple[Aim, ...]:
        """Return the aims; targets with the same triggers and suppressors share one."""
        by_roles: dict[tuple[tuple[str, ...], tuple[str, ...]], list[PlannedTarget]] = {}
        for target in self.targets:
            if target.aimed:
                by_roles.setdefault((target.triggers, target.suppressors), []).append(target)
        return tuple(
            Aim(
                tuple(t.goal for t in targets),
                frozenset(triggers),
                frozenset(suppressors),
                frozenset(name for t in targets for name in t.certain),
            )
            for (triggers, suppressors), targets in by_roles.items()
        )


# Planning.

ENOUGH = 12
"""The hits needed to compute roles: 4 show a perfect trigger, 12 also one that only helps."""
HOT = 0.5
"""Targets that more than this share of the tests hit need no help."""
RARE = 0.1
"""Targets that less than this share of the tests hit are rare."""
# Matches no test: the evidence has -1 for tests without a fault.
_NO_FAULT = -2
NO_CODE = "the compiler made no code of it"
_AT_IMPORT = "it runs when its module is imported, before any test"


class AimPlanner:
    """Plans aims from the earlier tests of a subject."""

    def __init__(self, history: History, watched_code: WatchedCode, hot: float = HOT) -> None:
        self._history = history
        self._study = history.study
        self._watched_code = watched_code
        self._hot = hot
        self._wanted: frozenset[str] = frozenset()
        self._columns: dict[str, Bools] = {}
        """The tests that the roles of each target are computed from, by the target's name."""

    def plan(self, wanted: Sequence[Wanted], names: Sequence[str] = ()) -> FocusPlan:
        """Plan for lines of the current files, and for other targets by name."""
        self._wanted = frozenset(line.place for line in wanted)
        self._history.preload(self._wanted)
        # Lines of one block share a target; reversing twice keeps the first of them, in order.
        heads: dict[tuple[str, int, int], tuple[Wanted, int]] = {}
        for line in reversed(wanted):
            head = self._target_line(line)
            heads[line.place, head, 0 if head else line.line] = line, head
        planned = [self._plan_line(line, head) for line, head in reversed(heads.values())]
        planned += [self._plan_named(name) for name in dict.fromkeys(names)]
        return FocusPlan(tuple(self._with_roles(planned)))

    def rare(self, most: int = 20) -> list[Wanted]:
        """Return the `most` rarest lines with enough hits.

        Of lines that the same tests hit, only the first is returned.
        """
        history, counts = self._history, {}
        history.preload(history.texts())
        tests = int(self._study.evidence.hits_known.sum())
        for place, text in history.texts().items():
            for line in range(1, text.count("\n") + 2):
                count = history.count(place, line)
                if ENOUGH <= count <= RARE * tests:
                    counts[place, line] = count
        chosen: dict[bytes, tuple[str, int]] = {}
        for place, line in sorted(counts, key=lambda key: (counts[key], key)):
            chosen.setdefault(history.column([(place, line)]).tobytes(), (place, line))
            if len(chosen) == most:
                break
        if not chosen:
            raise UserError(
                f"no line was hit by at least {ENOUGH} and at most {RARE:.0%} of the {tests:,} "
                "tests: run more tests, or name lines"
            )
        return [Wanted(place, line, "--rare") for place, line in chosen.values()]

    def _target_line(self, wanted: Wanted) -> int:
        """Return the line that is the target; in native code, not every line has code."""
        if wanted.place.endswith(".py"):
            return wanted.line
        return self._history.block_of(wanted.place, wanted.line)

    def _plan_line(self, wanted: Wanted, line: int) -> PlannedTarget:
        history, place = self._history, wanted.place
        if not line:
            name = f"line:{self._path(place)}:{wanted.line}"
            return PlannedTarget(name, place, wanted.line, dropped=NO_CODE, cause="no code")
        targets = history.targets_at(place, line)
        target = PlannedTarget(
            f"line:{self._path(place)}:{line}",
            place,
            line,
            targets[-1].function if targets else wanted.function,
            mapped=self._how_mapped(wanted, line),
        )
        hit, informed = history.column([(place, line)]), history.knowing(place, line)
        share = float(hit[informed].mean()) if informed.any() else 0.0
        if share > self._hot:
            return replace(target, dropped=_hot(share), cause="hot")
        if int(hit.sum()) >= ENOUGH:
            return self._with_column(target, hit)
        if not targets and not target.function and place.endswith(".py"):
            return replace(target, dropped=_AT_IMPORT, cause="at import")
        unseen = "" if history.versions(place) else self._watched_code.why_unseen(place)
        if unseen:
            return replace(target, dropped=unseen, cause="unseen")
        return self._through_proxy(target, int(hit.sum()))

    def _how_mapped(self, wanted: Wanted, line: int) -> str:
        """Say how the target line relates to the line asked for and to earlier versions."""
        block = f"line {wanted.line} runs with it" if line != wanted.line else ""
        return ", ".join(filter(None, (block, self._history.how_mapped(wanted.place, line))))

    def _through_proxy(self, target: PlannedTarget, hits: int) -> PlannedTarget:
        """Aim at what leads to the target; drop the target if nothing does."""
        history = self._history
        proxy: Proxy | NoProxy = (self._implied(target) if hits else None) or nearest_with_data(
            target.place,
            target.line,
            self._texts(target.place),
            history.count,
            ENOUGH,
            self._watched_code.harness,
        )
        too_few = _too_few(hits)
        if isinstance(proxy, NoProxy):
            return replace(target, **self._why_no_proxy(target.place, too_few, proxy))
        words = f"{proxy.how} ({too_few})"
        if not proxy.places:
            return replace(target, proxy=words, aimed=True, triggers=tuple(sorted(proxy.features)))
        hit = history.column(proxy.places)
        through = tuple(f"line:{self._path(place)}:{line}" for place, line in proxy.places)
        return self._with_column(replace(target, proxy=words, through=through), hit)

    def _why_no_proxy(self, place: str, too_few: str, missing: NoProxy) -> dict[str, Any]:
        is_seen = self._history.versions(place) or not place.endswith(".py") or is_imported(place)
        if not is_seen:
            return {"dropped": "no test imported its file", "cause": "unseen"}
        return {"dropped": f"{too_few}, and {missing.reason}", "cause": "no data"}

    def _implied(self, target: PlannedTarget) -> Proxy | None:
        """Return a line that every test that hit the target also hit.

        Only for native code (C): its text does not tell which lines come before the target.
        """
        if target.place.endswith(".py"):
            return None
        history, place = self._history, target.place
        lines = history.lines_around(place, target.line)
        if not lines:
            return None
        columns = np.stack([history.column([(place, line)]) for line in lines], axis=1)
        line = implied_by(history.column([(place, target.line)]), columns, lines, ENOUGH)
        if line is None:
            return None
        return Proxy(((place, line),), (), f"line {line}, which every test that hit it also hit")

    def _plan_named(self, name: str) -> PlannedTarget:
        if name.startswith("fault:"):
            return self._plan_fault(name.removeprefix("fault:"))
        target = self._study.find(name)
        hit = self._study.hit(target)
        place = self._place_of(target)
        planned = PlannedTarget(str(target), place, target.line, target.function)
        share = float(hit.mean())
        if share > self._hot:
            return replace(planned, dropped=_hot(share), cause="hot")
        hits = int(hit.sum())
        if hits >= ENOUGH:
            return self._with_column(planned, hit)
        if place:
            return self._through_proxy(planned, hits)
        raise UserError(_insufficient(planned.name, hits))

    def _plan_fault(self, start: str) -> PlannedTarget:
        """Plan for a fault; aim at a rare one through the line where it showed."""
        study, history = self._study, self._history
        subject = study.store.campaign(history.campaigns[0]).subject
        fault = known_fault(study.store, start, subject)
        planned = PlannedTarget(f"fault:{fault.id}")
        ids = study.evidence.fault_ids
        hit = study.evidence.fault == (ids.index(fault.id) if fault.id in ids else _NO_FAULT)
        hits = int(hit.sum())
        if float(hit.mean()) > self._hot:
            return replace(planned, dropped=_hot(float(hit.mean())), cause="hot")
        if hits >= ENOUGH:
            return self._with_column(planned, hit)
        explanation = stored_explanation(study.store, fault.id)
        if explanation is not None:
            return self._through_explanation(planned, explanation, hits)
        place = next((p for p in history.texts() if self._path(p) == fault.path), "")
        if not place:
            raise UserError(_insufficient(planned.name, hits))
        target = replace(planned, place=place, line=fault.line)
        if history.count(place, fault.line) >= ENOUGH:
            words = f"{fault.path}:{fault.line}, where it showed ({_too_few(hits)})"
            through = (f"line:{fault.path}:{fault.line}",)
            target = self._with_column(
                replace(target, proxy=words, through=through),
                history.column([(place, fault.line)]),
            )
        else:
            target = self._through_proxy(target, 0)
        # Its hits are counted by the fault's id, not by the line.
        return replace(target, place="", line=0)

    def _through_explanation(
        self, target: PlannedTarget, explanation: Explanation, hits: int
    ) -> PlannedTarget:
        """Aim at a fault with the features that experiments on its test found to matter."""
        known = set(self._study.evidence.spaces[0].feature_names)
        needed = tuple(sorted(explanation.named & known))
        suppressors = {fact.feature for fact in explanation.suppressors} - explanation.named
        shape = _shape_of(explanation, explained_values(self._study.store, explanation.fault))
        words = f"its explanation by {explanation.runs:,} experiments ({_too_few(hits)})"
        return replace(
            target,
            proxy=words + (f", with {shape.words}" if shape else ""),
            shape=shape,
            aimed=True,
            triggers=needed,
            suppressors=tuple(sorted(suppressors & known)),
        )

    def _with_column(self, target: PlannedTarget, hit: Bools) -> PlannedTarget:
        """Mark a target as aimed at; its roles will be computed from the tests in `hit`."""
        self._columns[target.name] = hit
        return replace(target, aimed=True)

    def _with_roles(self, planned: Iterable[PlannedTarget]) -> list[PlannedTarget]:
        """Return the targets with their roles, all counted in one pass: there may be hundreds."""
        if not self._columns:
            return list(planned)
        table = self._study.table_of_tests(
            [Target("focus", name) for name in self._columns],
            [np.flatnonzero(hit) for hit in self._columns.values()],
        )
        features = np.array(table.features)
        codes = dict(zip(self._columns, table.codes, strict=True))
        certain = dict(zip(self._columns, table.certain_triggers, strict=True))
        return [
            replace(
                target,
                triggers=_names_where(features, codes[target.name] == ROLES.index(TRIGGER)),
                suppressors=_names_where(features, codes[target.name] == ROLES.index(SUPPRESSOR)),
                certain=_names_where(features, certain[target.name]),
            )
            if target.name in codes
            else target
            for target in planned
        ]

    def _texts(self, place: str) -> dict[str, str]:
        """Return the texts that may lead to a line: files watched or asked for, and the harness."""
        more = filter(None, (place, self._watched_code.harness, *self._wanted))
        return self._history.texts() | {path: self._history.text(path) for path in more}

    def _path(self, place: str) -> str:
        """Return the name of a file as it appears in the names of targets."""
        versions = self._history.versions(place)
        same = [v.source.path for v in versions if not v.renamed]
        return same[-1] if same else shown_path(place)

    def _place_of(self, target: Target) -> str:
        return next(
            (
                self._history.place_of(source)
                for sources in self._history.watched.values()
                for source in sources
                if source.id == target.source
            ),
            "",
        )


def _hot(share: float) -> str:
    return f"hit by {share:.0%} of the tests anyway"


def _too_few(hits: int) -> str:
    return f"{hits} hit{'s' * (hits != 1)}, {ENOUGH} needed" if hits else "no test hit it"


def _insufficient(name: str, hits: int) -> str:
    return (
        f"{name}: insufficient data ({_too_few(hits)}): run more tests of this subject first, or "
        "name a line near it"
    )


_LONGEST = 5
"""Tests of up to so many times the length of the explained one are generated."""
_REPEATED = 0.5


def _shape_of(explanation: Explanation, values: tuple[Any, ...]) -> TestShape | None:
    """Return the tests that an explanation asks for; None if it is not about steps.

    Short tests hit a fault more often, since fewer steps can get in its way. If values matter that
    have to be equal, or of which nothing is known, arguments repeat, or are `values`, those of the
    explained test: one value of thousands may be the only one that shows the fault.
    """
    if explanation.is_derivation or explanation.is_schedule or not explanation.steps:
        return None
    size = len(explanation.steps)
    values_matter = any(fact.kind != "any" for fact in explanation.values)
    if not values_matter:
        return TestShape((size, _LONGEST * size))
    return TestShape((size, _LONGEST * size), _REPEATED, values)


def _names_where(names: npt.NDArray[np.str_], mask: Bools) -> tuple[str, ...]:
    return tuple(sorted(names[mask].tolist()))
