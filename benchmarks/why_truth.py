"""What is known about bugs of PyPI releases, written down before any of them was explained.

The truth comes from the line in the changelog and from the code that the fix changed. `needs` has a
group of features for each thing that the bug needs; the features of a group do the same. `setup`
has features that only build the state, or only look at it: naming them is neither right nor wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from changelogs import BUGS


@dataclass(frozen=True)
class KnownCause:
    """A bug of a release, and what it takes to show it."""

    title: str
    package: str
    release: str
    fixed: str
    quote: str
    machine: str
    fault: str  # part of the signature of the fault that shows this bug
    needs: tuple[frozenset[str], ...]
    setup: frozenset[str]
    tests: int  # of the campaign in which its first hit is found
    relation: tuple[str, str] | None = None  # arguments that have to be equal, whatever the step
    also: tuple[tuple[str, str], ...] = ()  # packages and releases that it needs
    quick_tests: int = 0  # of a quick run, enough for the first hit; 0: it is not in it
    source: bool = False  # whether its archive is unpacked, since pip cannot build it any more
    judged: bool = False

    def is_shown_by(self, signature: str) -> bool:
        """Return whether a fault with this signature is the bug.

        Brackets may go on with the statement that failed: ``[Machine.action: assert x]``.
        """
        text = self.fault.removesuffix("]")
        ends = ("]", ":") if text != self.fault else ("",)
        return any(text + end in signature for end in ends)

    @property
    def is_rare(self) -> bool:
        """Whether fewer than one test in 2,000 shows it; the tests of its campaign tell."""
        return self.tests >= 20_000

    @property
    def features(self) -> frozenset[str]:
        return frozenset().union(*self.needs)


def group(*features: str) -> frozenset[str]:
    return frozenset(features)


SETUP = {
    "indexed_set_machine.py": group("add", "update"),
    "barrel_list_machine.py": group("append", "extend", "insert", "set_slice"),
    "pmap_machine.py": group(),
    "bit_array_machine.py": group("append"),
    "tlru_cache_machine.py": group("wait"),
}
"""How the machines of `known_bugs.py` get something into their containers."""

TUNING = [
    KnownCause(
        bug.title,
        bug.package,
        bug.broken,
        bug.claims[0].release,
        bug.claims[0].quote,
        bug.machine,
        bug.fault,
        # A feature that is named, but explained there as not taking part, is not part of the truth.
        tuple(frozenset(names) - set(bug.remarks) for names in bug.named.values()),
        SETUP[bug.machine] - bug.expected | {n for n in bug.remarks if n not in bug.expected},
        tests=3_000,
        quick_tests=bug.quick_tests if bug.machine == "indexed_set_machine.py" else 0,
    )
    for bug in BUGS
] + [
    KnownCause(
        "Interval: contains",
        "portion",
        "2.0.1",
        "2.0.2",
        "Fix occasional `StopIteration` exception when checking for containment",
        "portion_machine.py",
        "StopIteration",
        (group("contains_closed", "contains_two"),),
        group("closed", "open", "closedopen", "openclosed", "singleton", "join", "cut"),
        tests=3_000,
    )
]
"""Frequent faults, on which the experiments were developed."""

RARE = [
    KnownCause(
        "Interval: join",
        "portion",
        "2.1.1",
        "2.1.2",
        "Fix invalid simplification of 3+ intervals when a closed interval shares the lower bound "
        "of an open one",
        "portion_machine.py",
        "[PortionMachine.join",
        (group("open", "openclosed"), group("closed", "closedopen", "singleton"), group("join")),
        group(),
        tests=40_000,
        relation=("low", "low"),
    ),
    KnownCause(
        "IntervalDict: items",
        "portion",
        "2.1.1",
        "2.1.2",
        "Fix the order in which items are returned from an `IntervalDict` when a closed interval "
        "shares the lower bound of an open one",
        "interval_dict_machine.py",
        "[IntervalDictMachine.items",
        (group("open", "openclosed"), group("closed", "closedopen", "singleton"), group("items")),
        group(),
        tests=40_000,
        relation=("low", "low"),
    ),
    KnownCause(
        "Radix: remove",
        "py-radix",
        "0.9.1",
        "0.9.2",
        "fix the bug in remove (pull request 18): does the parent of a removed node have a prefix?",
        "radix_machine.py",
        "[RadixTree.add < Radix.add < RadixMachine.add]",
        (group("add"), group("delete")),
        group("search_known", "search_exact", "search_best", "prefixes"),
        tests=60_000,
    ),
    KnownCause(
        "PMap: reallocation",
        "pyrsistent",
        "0.11.1",
        "0.11.2",
        "Fix bug causing potential element loss when reallocating PMap",
        "pmap_evolver_machine.py",
        "PMapEvolverMachine.has_every_item",
        (group("update", "evolve"),),
        group("set"),
        tests=40_000,
        also=(("six", "1.17.0"),),
    ),
    KnownCause(
        "LRI: overwriting",
        "boltons",
        "23.0.0",
        "23.1.0",
        "Fix cache eviction for cacheutils.LRU: setting a key again did not set it in the dict",
        "lri_machine.py",
        "AssertionError [LRIMachine.",
        (group("set", "update"), group("items", "values", "pop")),
        group("setdefault"),
        tests=40_000,
        relation=("key", "key"),
    ),
    KnownCause(
        "LRUCache: larger value",
        "cachetools",
        "7.1.6",
        "7.1.7",
        "Improve `Cache.__setitem__` behavior when replacing an existing cache item with a larger "
        "value",
        "sized_cache_machine.py",
        "SizedCacheMachine.holds_the_same",
        (group("put", "update"),),
        group("setdefault", "get"),
        tests=40_000,
        relation=("key", "key"),
    ),
]
"""Rare faults, under one test in 2,000.

They judged the first version. Two of their machines were changed between runs, and one figure was
improved after they had been seen, so they count as faults for tuning now. `why_judged` has those
that were never seen.
"""
