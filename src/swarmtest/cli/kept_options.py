"""What ``--keep`` can say, and what it means for the test at hand."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.campaign.isolated import IsolatedRun, wait_for_any
from swarmtest.campaign.kept import Keep, Watch
from swarmtest.cli.named_tests import NamedTest
from swarmtest.cli.options import existing_store
from swarmtest.errors import UserError, did_you_mean
from swarmtest.instrument.watch import Coverage
from swarmtest.mutation.chosen import chosen_mutants
from swarmtest.mutation.killing import Killing, NativeKilling
from swarmtest.mutation.minimal import minimal_mutants, minimal_tests
from swarmtest.result import Fault
from swarmtest.store import Store
from swarmtest.targets import Target

KINDS = ("fault", "coverage", "targets", "mutants", "minimal-mutants", "command")


@dataclass(frozen=True)
class Wish:
    """One ``--keep``.

    >>> parse_wish("coverage=90")
    Wish(kind='coverage', value='90')
    """

    kind: str
    value: str = ""


def parse_wish(text: str) -> Wish:
    """One ``--keep`` as a user wrote it."""
    kind, equals, value = text.partition("=")
    if kind not in KINDS:
        raise UserError(f"--keep {text}: choose from {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    if kind in ("targets", "command") and not value:
        raise UserError(f"--keep {kind}=... needs to say which")
    if equals and not value:
        raise UserError(f"--keep {text}: nothing follows the =")
    return Wish(kind, value)


def parse_runs(text: str) -> tuple[int, int]:
    """``K/N``.

    >>> parse_runs("2/5")
    (2, 5)
    """
    words = text.split("/")
    if len(words) != 2 or not all(word.strip().isdigit() for word in words):
        raise UserError(f"--runs {text}: write K/N, like 2/5 for two of five runs")
    k, n = map(int, words)
    if not 1 <= k <= n:
        raise UserError(f"--runs {text}: K is from 1 to N")
    return k, n


class Wishes:
    """What a user wants to keep of one test."""

    def __init__(self, wishes: Sequence[Wish], named: NamedTest, seconds: float, seed: int) -> None:
        self._wishes = wishes
        self._named = named
        self._seconds = seconds
        self._seed = seed

    def keep(
        self,
        fault: str | None,
        coverage: Coverage | None,
        killing: Killing | NativeKilling | None,
        store: str | None,
    ) -> Keep:
        """All wishes together; `fault` is what the test shows, `killing` knows the mutants."""
        keep = Keep()
        for wish in self._wishes:
            match wish.kind:
                case "fault":
                    keep = replace(keep, fault=wish.value or self._shown(fault))
                case "coverage":
                    keep = replace(keep, coverage=_share(wish))
                case "targets":
                    found = self._targets(wish.value, coverage)
                    keep = replace(keep, targets=keep.targets | found)
                case "mutants" | "minimal-mutants":
                    assert killing is not None
                    mutants = self._mutants(wish, killing, store)
                    keep = replace(keep, mutants=(*keep.mutants, *mutants))
                case "command":
                    keep = replace(keep, command=wish.value)
        return keep

    def hard(self, store: str | None) -> list[str]:
        """The ids of the minimal mutants, if any of them are to be kept."""
        if not any(wish.kind == "minimal-mutants" for wish in self._wishes):
            return []
        if self._named.campaign is None:
            raise UserError("--keep minimal-mutants: name a test of a campaign, like 3#17")
        with existing_store(store) as opened:
            return minimal_ids(opened, self._named.campaign)

    def _shown(self, fault: str | None) -> str:
        if not fault:
            raise UserError("the test passes, so it has no fault to keep: --keep coverage=90, ...")
        return fault

    def _targets(self, pattern: str, coverage: Coverage | None) -> frozenset[int]:
        hit = targets_hit(self._named, coverage, self._seconds)
        matching = [t for t in hit if fnmatch.fnmatchcase(str(t), pattern) or t.name == pattern]
        if not matching:
            near = did_you_mean(pattern, [*map(str, hit)]) if len(hit) < 20_000 else ""
            raise UserError(f"--keep targets={pattern}: the test hits no such target{near[:200]}")
        return frozenset(target.key for target in matching)

    def _mutants(self, wish: Wish, killing: Killing | NativeKilling, store: str | None) -> Any:
        count = _count(wish)
        hard = self.hard(store) if wish.kind == "minimal-mutants" else None
        return chosen_mutants(killing.killed(self._named.data), count, self._seed, hard)


def targets_hit(named: NamedTest, coverage: Coverage | None, seconds: float) -> list[Target]:
    """What a test hits, from a run in a process of its own."""
    watch = Watch(named.subject, coverage)
    run = IsolatedRun(lambda: watch.targets(named.data), seconds, quiet=True)
    wait_for_any([run])
    outcome = run.outcome()
    if isinstance(outcome, Fault):
        raise UserError("the test ends its process, so what it hits is not known")
    return outcome


def minimal_ids(store: Store, campaign: int) -> list[str]:
    """The ids of the minimal mutants by the kills that a campaign has recorded (3.5.1.3)."""
    import numpy as np
    from pyroaring import BitMap

    rows = [BitMap.deserialize(t.hits) for t in store.trials(campaign) if t.hits]
    hit = BitMap.union(*rows) if rows else BitMap()
    mutants = {id: t for id, t in store.targets(hit).items() if t.kind == "mutant"}
    if not mutants:
        raise UserError(
            f"campaign {campaign} has no mutants yet: `swarmtest mutate --campaign {campaign}` "
            "first"
        )
    killed = np.array([[id in row for row in rows] for id in mutants], bool)
    chosen = minimal_mutants(killed, minimal_tests(killed)[0])
    names = [target.name.rpartition(" ")[2] for target in mutants.values()]
    return [names[i] for i in chosen]


def _share(wish: Wish) -> float:
    text = wish.value.removesuffix("%") or "100"
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"--keep coverage={wish.value}: a percentage, like 90") from None
    if not 0 < percent <= 100:
        raise UserError(f"--keep coverage={wish.value}: above 0, up to 100 (percent)")
    return percent / 100


def _count(wish: Wish) -> int:
    if not (wish.value or "1").isdigit() or wish.value == "0":
        raise UserError(f"--keep {wish.kind}={wish.value}: how many, at least 1")
    return int(wish.value or "1")
