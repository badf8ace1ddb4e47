"""Where an aim goes when its configurations give no valid test.

Some generators make nothing valid of very few features (directed swarm, section 4.1: triggers-only
"may frequently fail"). After a few tests that were all invalid, an aim goes down one rung:

    triggers-only -> half-swarm -> no-suppressors -> coin-without-suppressors -> coin

Each rung leaves the generator more freedom than the one before; the last is undirected swarm
testing, and no longer keeps the suppressors out. Rungs that come to the same for an aim are one
(an aim without triggers and suppressors has only the coin, or everything). One valid test, and
the aim stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from swarmtest.result import Verdict
from swarmtest.space import Space
from swarmtest.strategies.directed.aim import Aim
from swarmtest.strategies.directed.single import RUNGS, fitted

ENOUGH = 5
"""So many tests of a rung, all invalid, and it is given up."""


def rungs_of(single: str, aim: Aim, space: Space) -> tuple[str, ...]:
    """The rungs from `single` down that differ for this aim.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), suppressors={"pop"})
    >>> rungs_of("triggers-only", full, Space(["push", "pop", "add"]))
    ('half-swarm', 'no-suppressors', 'coin')
    """
    found: dict[tuple[float, ...], str] = {}
    for kind in RUNGS[RUNGS.index(single) :]:
        plan = fitted(kind, aim.triggers, aim.suppressors, space)
        found.setdefault(plan.rates, plan.kind)
    return tuple(found.values())


@dataclass
class Ladder:
    """The rungs of one aim, and on which one it stands."""

    name: str
    """The aim's, for notes."""
    rungs: tuple[str, ...]
    at: int = 0
    _invalid: int = 0
    _holds: bool = False
    """Whether a test of this rung was valid."""
    _asked: dict[int, int] = field(default_factory=dict)
    """On which rung each trial was asked for that has not been told yet."""

    @property
    def kind(self) -> str:
        """The kind of configuration that comes next."""
        return self.rungs[self.at]

    def asked(self, trial: int) -> None:
        """A test of the present rung is on its way."""
        if not self._holds:
            self._asked[trial] = self.at

    def told(self, trial: int, verdict: Verdict, why: str) -> str:
        """What came of a test; a note when that makes the aim go down a rung, else nothing.

        Trials that nobody asked for are those of an earlier run that is resumed.
        """
        if self._holds or self._asked.pop(trial, self.at) != self.at:
            return ""
        if verdict is not Verdict.INVALID:
            self._holds = True
            self._asked.clear()
            return ""
        self._invalid += 1
        if self._invalid < ENOUGH or self.at + 1 == len(self.rungs):
            return ""
        given_up = self.kind
        self.at, self._invalid = self.at + 1, 0
        reason = f" ({why})" if why else ""
        return f"{self.name}: {given_up} gave only invalid tests{reason}; {self.kind} instead"
