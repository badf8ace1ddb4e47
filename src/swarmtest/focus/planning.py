"""From places in the code to aims: what is known of each target, and what stands in for it.

For each target, in this order:

1. Hit by more than `hot` of the tests anyway: dropped, and said.
2. Hit often enough for statistics (`ENOUGH` hits): its own triggers and suppressors.
3. Too few hits, or none (new code): those of the nearest code that leads to it and has enough
   (`swarmtest.focus.proxies`), which is named. If that is hot, there is nothing to aim by.
4. Nothing leads to it: it cannot be aimed at, and that is said.

Roles are the papers': Wilson's interval against the base rate, at 95% and feature by feature. A
false role costs a little diversity; a role that a stricter test misses costs hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools
from swarmtest.analysis.cells import ROLES, SUPPRESSOR, TRIGGER
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.coverage.scope import shown_path
from swarmtest.focus.history import History
from swarmtest.focus.known_faults import Sight, is_imported, known_fault
from swarmtest.focus.proxies import NoStandIn, StandIn, implied_by, nearest_with_data
from swarmtest.languages.places import Wanted
from swarmtest.roles.counting import table_of_hits
from swarmtest.strategies.directed.aim import Aim, Goal

# -------------------------------------------------------------------------------------------------
# What is to be aimed at, as plain values: what planning makes and running reads.

Cause = Literal["", "hot", "at import", "unseen", "no data"]
"""Why a target is not aimed at."""


@dataclass(frozen=True)
class PlannedTarget:
    """A target, and how it is aimed at."""

    name: str
    place: str = ""
    line: int = 0
    function: str = ""
    through: tuple[str, ...] = ()
    """The names of what stands in for it, in today's code."""
    stand_in: str = ""
    mapped: str = ""
    dropped: str = ""
    """In words, why it is not aimed at; empty if it is."""
    cause: Cause = ""
    aimed: bool = False
    triggers: tuple[str, ...] = ()
    suppressors: tuple[str, ...] = ()
    certain: tuple[str, ...] = ()
    """The triggers that are beyond doubt."""

    @property
    def goal(self) -> Goal:
        """What a strategy is told of it."""
        return Goal(self.name, self.through)


@dataclass(frozen=True)
class FocusPlan:
    """All targets of a focus."""

    targets: tuple[PlannedTarget, ...]

    @property
    def aims(self) -> tuple[Aim, ...]:
        """What is aimed at: targets with the same triggers and suppressors are one aim."""
        by_roles: dict[tuple[tuple[str, ...], tuple[str, ...]], list[PlannedTarget]] = {}
        for target in self.targets:
            if target.aimed:
                by_roles.setdefault((target.triggers, target.suppressors), []).append(target)
        return tuple(
            Aim(
                tuple(t.goal for t in some),
                frozenset(triggers),
                frozenset(suppressors),
                frozenset(name for t in some for name in t.certain),
            )
            for (triggers, suppressors), some in by_roles.items()
        )


# -------------------------------------------------------------------------------------------------

ENOUGH = 12
"""Hits from which roles are told: four show a perfect trigger, a dozen also one that helps much."""
HOT = 0.5
"""The share of tests above which a target needs no help."""
RARE = 0.1
"""The share of tests below which a target is rare."""
_NO_FAULT = -2
_AT_IMPORT = "it runs when its module is imported, before any test"


class Planner:
    """Plans aims from the history of a subject."""

    def __init__(self, history: History, sight: Sight, hot: float = HOT) -> None:
        self._history = history
        self._study = history.study
        self._sight = sight
        self._hot = hot
        self._wanted: frozenset[str] = frozenset()
        self._columns: dict[str, Bools] = {}
        """The tests that show the roles of targets, by their names."""

    def plan(self, wanted: Sequence[Wanted], names: Sequence[str] = ()) -> FocusPlan:
        """Plan for lines of today's files, and for other targets by their names."""
        self._wanted = frozenset(one.place for one in wanted)
        self._history.preload(self._wanted)
        heads = {(one.place, self._head(one)): one for one in reversed(wanted)}
        planned = [self._line(one, line) for (_, line), one in reversed(heads.items())]
        planned += [self._named(name) for name in dict.fromkeys(names)]
        return FocusPlan(tuple(self._with_roles(planned)))

    def rare(self, most: int = 20) -> list[Wanted]:
        """The lines that are hit rarest, but often enough; of lines hit together, the first."""
        history, found = self._history, {}
        history.preload(history.texts())
        tests = int(self._study.evidence.known.sum())
        for place, text in history.texts().items():
            for line in range(1, text.count("\n") + 2):
                count = history.count(place, line)
                if ENOUGH <= count <= RARE * tests:
                    found[place, line] = count
        chosen: dict[bytes, tuple[str, int]] = {}
        for place, line in sorted(found, key=lambda one: (found[one], one)):
            chosen.setdefault(history.column([(place, line)]).tobytes(), (place, line))
            if len(chosen) == most:
                break
        if not chosen:
            raise UserError(
                f"no line was hit by at least {ENOUGH} and at most {RARE:.0%} of the {tests:,} "
                "tests: run more tests, or name lines"
            )
        return [Wanted(place, line, "--rare") for place, line in chosen.values()]

    def _head(self, wanted: Wanted) -> int:
        """The line that is the target; compilers only tell where blocks begin."""
        if wanted.place.endswith(".py"):
            return wanted.line
        return self._history.block_of(wanted.place, wanted.line)

    def _line(self, wanted: Wanted, line: int) -> PlannedTarget:
        history, place = self._history, wanted.place
        known = history.targets_at(place, line)
        target = PlannedTarget(
            f"line:{self._path(place)}:{line}",
            place,
            line,
            known[-1].function if known else wanted.function,
            mapped=self._how_mapped(wanted, line),
        )
        hit, knowing = history.column([(place, line)]), history.knowing(place, line)
        share = float(hit[knowing].mean()) if knowing.any() else 0.0
        if share > self._hot:
            return replace(target, dropped=_hot(share), cause="hot")
        if int(hit.sum()) >= ENOUGH:
            return self._aimed(target, hit)
        if not known and not target.function and place.endswith(".py"):
            return replace(target, dropped=_AT_IMPORT, cause="at import")
        unseen = "" if history.versions(place) else self._sight.why_unseen(place)
        if unseen:
            return replace(target, dropped=unseen, cause="unseen")
        return self._through_stand_in(target, int(hit.sum()))

    def _how_mapped(self, wanted: Wanted, line: int) -> str:
        block = f"where the block of line {wanted.line} begins" if line != wanted.line else ""
        return ", ".join(filter(None, (block, self._history.how_mapped(wanted.place, line))))

    def _through_stand_in(self, target: PlannedTarget, hits: int) -> PlannedTarget:
        history = self._history
        found: StandIn | NoStandIn = (self._implied(target) if hits else None) or nearest_with_data(
            target.place,
            target.line,
            self._texts(target.place),
            history.count,
            ENOUGH,
            self._sight.harness,
        )
        too_few = _too_few(hits)
        if isinstance(found, NoStandIn):
            return replace(target, **self._why_no_stand_in(target.place, too_few, found))
        words = f"{found.how} ({too_few})"
        if not found.places:
            return replace(
                target, stand_in=words, aimed=True, triggers=tuple(sorted(found.features))
            )
        hit = history.column(found.places)
        through = tuple(f"line:{self._path(place)}:{line}" for place, line in found.places)
        return self._aimed(replace(target, stand_in=words, through=through), hit)

    def _why_no_stand_in(self, place: str, too_few: str, found: NoStandIn) -> dict[str, Any]:
        known = self._history.versions(place) or not place.endswith(".py") or is_imported(place)
        if not known:
            return {"dropped": "no test imported its file", "cause": "unseen"}
        return {"dropped": f"{too_few}, and {found.reason}", "cause": "no data"}

    def _implied(self, target: PlannedTarget) -> StandIn | None:
        """Where the text does not tell what comes before a line (C), the tests that hit it do."""
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
        return StandIn(((place, line),), (), f"line {line}, which every test that hit it hit, too")

    def _named(self, name: str) -> PlannedTarget:
        if name.startswith("fault:"):
            return self._fault(name.removeprefix("fault:"))
        target = self._study.find(name)
        hit = self._study.hit(target)
        place = self._place_of(target)
        planned = PlannedTarget(str(target), place, target.line, target.function)
        share = float(hit.mean())
        if share > self._hot:
            return replace(planned, dropped=_hot(share), cause="hot")
        hits = int(hit.sum())
        if hits >= ENOUGH:
            return self._aimed(planned, hit)
        if place:
            return self._through_stand_in(planned, hits)
        raise UserError(_insufficient(planned.name, hits))

    def _fault(self, start: str) -> PlannedTarget:
        """A fault; one that showed too seldom is aimed at through the line where it showed."""
        study, history = self._study, self._history
        subject = study.store.campaign(history.campaigns[0]).subject
        known = known_fault(study.store, start, subject)
        planned = PlannedTarget(f"fault:{known.id}")
        ids = study.evidence.fault_ids
        hit = study.evidence.fault == (ids.index(known.id) if known.id in ids else _NO_FAULT)
        hits = int(hit.sum())
        if float(hit.mean()) > self._hot:
            return replace(planned, dropped=_hot(float(hit.mean())), cause="hot")
        if hits >= ENOUGH:
            return self._aimed(planned, hit)
        place = next((p for p in history.texts() if self._path(p) == known.path), "")
        if not place:
            raise UserError(_insufficient(planned.name, hits))
        at = replace(planned, place=place, line=known.line)
        if history.count(place, known.line) >= ENOUGH:
            words = f"{known.path}:{known.line}, where it showed ({_too_few(hits)})"
            through = (f"line:{known.path}:{known.line}",)
            at = self._aimed(
                replace(at, stand_in=words, through=through), history.column([(place, known.line)])
            )
        else:
            at = self._through_stand_in(at, 0)
        return replace(at, place="", line=0)

    def _aimed(self, target: PlannedTarget, hit: Bools) -> PlannedTarget:
        """A target whose roles are those of the tests that hit it, or what stands in for it."""
        self._columns[target.name] = hit
        return replace(target, aimed=True)

    def _with_roles(self, planned: Iterable[PlannedTarget]) -> list[PlannedTarget]:
        """All targets with their roles, counted in one go: there may be hundreds."""
        if not self._columns:
            return list(planned)
        table = table_of_hits(
            self._study.evidence,
            self._study.chances,
            [Target("focus", name) for name in self._columns],
            np.stack(list(self._columns.values()), axis=1),
            self._study.confidence,
        )
        named = np.array(table.features)
        codes = dict(zip(self._columns, table.codes, strict=True))
        certain = dict(zip(self._columns, table.certain_triggers, strict=True))
        return [
            replace(
                one,
                triggers=_chosen(named, codes[one.name] == ROLES.index(TRIGGER)),
                suppressors=_chosen(named, codes[one.name] == ROLES.index(SUPPRESSOR)),
                certain=_chosen(named, certain[one.name]),
            )
            if one.name in codes
            else one
            for one in planned
        ]

    def _texts(self, place: str) -> dict[str, str]:
        """What may lead to a line: all that was watched or is wanted, and the harness."""
        more = filter(None, (place, self._sight.harness, *self._wanted))
        return self._history.texts() | {one: self._history.text(one) for one in more}

    def _path(self, place: str) -> str:
        """How a file is called in the names of targets."""
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


def _chosen(names: npt.NDArray[np.str_], which: Bools) -> tuple[str, ...]:
    return tuple(sorted(names[which].tolist()))
