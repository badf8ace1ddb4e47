"""Bugs of PyPI releases, and what the changelogs say about them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
    """A release that claims to fix a bug, and the line of its changelog that does."""

    release: str
    quote: str


@dataclass(frozen=True)
class Bug:
    """A bug of a release, and which features of the machine the changelog names for it.

    Where a line names a state, the features that lead to it count as named.
    """

    title: str
    package: str
    broken: str
    claims: tuple[Claim, ...]
    machine: str
    fault: str  # part of the signature of the fault that shows this bug
    named: dict[str, tuple[str, ...]]  # words of the first claim, and the features they name
    remarks: dict[str, str] = field(default_factory=dict)  # on features where the two differ
    quick_tests: int = 0  # of each campaign of a quick run; 0: it is not in it

    @property
    def expected(self) -> set[str]:
        return {feature for features in self.named.values() for feature in features}


INDEXED_SET, BARREL_LIST = "indexed_set_machine.py", "barrel_list_machine.py"
REMOVALS = ("remove", "discard", "pop_at", "pop_last")
NO_GAP = "takes the last item away, which leaves no gap; the bug is in counting gaps"

BUGS = [
    Bug(
        "IndexedSet: slice",
        "boltons",
        "26.0.0",
        (Claim("26.1.0", "Fixed `setutils.IndexedSet` slicing after removals"),),
        INDEXED_SET,
        "[IndexedSetMachine.slice",
        {"slicing": ("slice",), "removals": REMOVALS},
        {"pop_last": NO_GAP},
        quick_tests=3_000,
    ),
    Bug(
        "IndexedSet: index",
        "boltons",
        "20.0.0",
        (
            Claim("20.1.0", "Fix IndexedSet's `index()` method to account for removals"),
            Claim("20.2.0", "Fixes to IndexedSet rsub and index methods"),
        ),
        INDEXED_SET,
        "[IndexedSetMachine.index",
        {"index()": ("index",), "removals": REMOVALS},
        {"pop_last": NO_GAP},
    ),
    Bug(
        "BarrelList: pop",
        "boltons",
        "26.1.0",
        (
            Claim(
                "26.2.0",
                "Fixed `listutils.BarrelList` popping after an internal list was emptied by "
                "indexed removals",
            ),
        ),
        BARREL_LIST,
        "IndexError: pop from empty list",
        {"popping": ("pop_last",), "indexed removals": ("pop_at", "delete_at")},
        {"reverse": "brings an emptied internal list to the end, where pop looks"},
    ),
    Bug(
        "BarrelList: sort",
        "boltons",
        "25.0.0",
        (Claim("26.0.0", "Fixed `listutils.BarrelList` `sort()` with multiple internal lists"),),
        BARREL_LIST,
        "[BarrelList.sort",
        # Done to one long internal list, each of these three leaves several, and nothing else does.
        {"sort()": ("sort",), "multiple internal lists": ("insert", "pop_at", "set_slice")},
        dict.fromkeys(("append", "extend"), "makes the list longer, so that it is split sooner"),
    ),
    Bug(
        "PMap: lookup",
        "pyrsistent",
        "0.19.1",
        (
            Claim(
                "0.19.2",
                "Fix #263, pmap regression in 0.19.1. Element access sometimes unreliable after "
                "insert.",
            ),
        ),
        "pmap_machine.py",
        "[PMapMachine.finds_every_key",
        {"insert": ("set", "update", "evolve")},
    ),
    Bug(
        "BitArray: prepend",
        "bitstring",
        "3.1.2",
        # The line is of 3.1.3, which is not on PyPI any more.
        (
            Claim(
                "3.1.4",
                "Fix for problem with prepend for bitstrings with byte offsets in their data "
                "store.",
            ),
        ),
        "bit_array_machine.py",
        "] in prepend",
        {"prepend": ("prepend",), "byte offsets": ("load",)},
        quick_tests=2_000,
    ),
    Bug(
        "TLRUCache: expired",
        "cachetools",
        "7.1.4",
        (Claim("7.1.5", "Fix `TLRUCache` silently keeping stale values on expired overwrites."),),
        "tlru_cache_machine.py",
        "[TLRUCacheMachine.knows_what_is_live",
        {"expired": ("put_expired",), "overwrites": ("put", "update", "setdefault")},
    ),
]
