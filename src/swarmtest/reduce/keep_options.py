"""What a smaller test has to keep, written as text: ``fault``, ``coverage=90``, ``mutants=8``.

`parse_keep_option` reads one such text, and `KeepOptions` turns all of them into a `Keep` for the
test that is to be reduced.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Fault
from swarmtest.core.targets import Target
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.kill_matrix import minimal_mutants, minimal_tests
from swarmtest.mutate.killing import Killing, NativeKilling, chosen_mutants
from swarmtest.processes.fork_pool import IsolatedRun, wait_for_any
from swarmtest.reduce.keep_criteria import HitObserver, Keep
from swarmtest.reduce.named_tests import NamedTest
from swarmtest.store import open_store
from swarmtest.store.interface import Store

KEEP_KINDS = ("fault", "coverage", "targets", "mutants", "minimal-mutants", "command")


@dataclass(frozen=True)
class KeepOption:
    """One ``--keep`` option: the kind of criterion and its value.

    >>> parse_keep_option("coverage=90")
    KeepOption(kind='coverage', value='90')
    """

    kind: str
    value: str = ""


def parse_keep_option(text: str) -> KeepOption:
    """Parse the text of one ``--keep`` option."""
    kind, equals, value = text.partition("=")
    if kind not in KEEP_KINDS:
        raise UserError(
            f"--keep {text}: choose from {', '.join(KEEP_KINDS)}{did_you_mean(kind, KEEP_KINDS)}"
        )
    if kind in ("targets", "command") and not value:
        raise UserError(f"--keep {kind}=... needs to say which")
    if equals and not value:
        raise UserError(f"--keep {text}: nothing follows the =")
    return KeepOption(kind, value)


def parse_runs(text: str) -> tuple[int, int]:
    """Parse the ``K/N`` of ``--runs``.

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


class KeepOptions:
    """All ``--keep`` options of one reduction, for the test that is to be reduced."""

    def __init__(
        self, options: Sequence[KeepOption], named: NamedTest, seconds: float, seed: int
    ) -> None:
        self._options = options
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
        """Return the criteria of all options.

        `fault` is the fault that the test shows; `killing` runs the mutants that were drawn.
        """
        keep = Keep()
        for option in self._options:
            match option.kind:
                case "fault":
                    keep = replace(keep, fault=option.value or self._shown(fault))
                case "coverage":
                    keep = replace(keep, coverage=_share(option))
                case "targets":
                    keys = self._targets(option.value, coverage)
                    keep = replace(keep, targets=keep.targets | keys)
                case "mutants" | "minimal-mutants":
                    assert killing is not None
                    mutants = self._mutants(option, killing, store)
                    keep = replace(keep, mutants=(*keep.mutants, *mutants))
                case "command":
                    keep = replace(keep, command=option.value)
        return keep

    @property
    def needs_mutants(self) -> bool:
        """Whether mutants are to be kept."""
        return any("mutants" in option.kind for option in self._options)

    def minimal_mutants(self, store: str | None) -> list[str]:
        """Return the ids of the campaign's minimal mutants, if ``--keep`` asks for any."""
        if not any(option.kind == "minimal-mutants" for option in self._options):
            return []
        if self._named.campaign is None:
            raise UserError("--keep minimal-mutants: name a test of a campaign, like 3#17")
        with open_store(store, must_exist=True, read_only=True) as opened:
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

    def _mutants(
        self, option: KeepOption, killing: Killing | NativeKilling, store: str | None
    ) -> Any:
        count = _count(option)
        minimal = self.minimal_mutants(store) if option.kind == "minimal-mutants" else None
        return chosen_mutants(killing.killed(self._named.data), count, self._seed, minimal)


def targets_hit(named: NamedTest, coverage: Coverage | None, seconds: float) -> list[Target]:
    """Run a test in its own process and return the targets that it hits."""
    watch = HitObserver(named.subject, coverage)
    run = IsolatedRun(lambda: watch.targets(named.data), seconds, quiet=True)
    wait_for_any([run])
    outcome = run.outcome()
    if isinstance(outcome, Fault):
        raise UserError("the test ends its process, so what it hits is not known")
    return outcome


def minimal_ids(store: Store, campaign: int) -> list[str]:
    """Return the ids of the minimal mutants by a campaign's recorded kills (section 3.5.1.3)."""
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
    minimal = minimal_mutants(killed, minimal_tests(killed)[0])
    ids = [target.name.rpartition(" ")[2] for target in mutants.values()]
    return [ids[i] for i in minimal]


def _share(option: KeepOption) -> float:
    text = option.value.removesuffix("%") or "100"
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"--keep coverage={option.value}: a percentage, like 90") from None
    if not 0 < percent <= 100:
        raise UserError(f"--keep coverage={option.value}: above 0, up to 100 (percent)")
    return percent / 100


def _count(option: KeepOption) -> int:
    if not (option.value or "1").isdigit() or option.value == "0":
        raise UserError(f"--keep {option.kind}={option.value}: how many, at least 1")
    return int(option.value or "1")
