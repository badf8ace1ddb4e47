"""Targets: behaviours that some tests show and others do not. All are alike: a kind and a name.

A test's hits are kept as a compressed bitmap of integer ids; the store gives a target its id when
it is first seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class Target:
    """A behaviour: ``event:stack was full``, later a line, a branch, a mutant.

    >>> Target.parse("event:stack was full")
    Target(kind='event', name='stack was full')
    """

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target written as ``kind:name``."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def pack_hits(ids: Iterable[int]) -> bytes:
    """Target ids as a compressed bitmap.

    >>> unpack_hits(pack_hits([3, 1, 70000]))
    [1, 3, 70000]
    """
    packed: bytes = BitMap(ids).serialize()
    return packed


def unpack_hits(data: bytes) -> list[int]:
    """The ids of a compressed bitmap, in order."""
    return list(BitMap.deserialize(data))
