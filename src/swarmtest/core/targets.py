"""Targets: behaviours that some tests show and others do not, each with a kind and a name.

A test's hits travel as `Hits`: numbers into the `Catalogue` of the process or tool that observed
the test. A store gives each target its own id when it first sees it, and keeps the hits of a test
as a compressed bitmap of those ids.

Two targets are the same if kind, name and source are the same. A target in code names the version
of the file it was found in (`Source.id`), so that line 12 of yesterday's file is never mistaken for
line 12 of today's; `content` and `function` make it possible to find the target again after an
edit.
"""

from __future__ import annotations

import array
import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from pyroaring import BitMap


@dataclass(frozen=True)
class Source:
    """One version of a file of the program under test.

    >>> Source("shop/cart.py", "x = 1\\n").id
    '042c6029f9136d3f'
    """

    path: str
    """The path that people read: relative to the project where possible."""
    text: str
    """The whole file; empty if it cannot be read (code without source)."""
    place: str = field(default="", compare=False)
    """The absolute path of the file on this machine; empty if it is not known."""

    @cached_property
    def id(self) -> str:
        """Return an id that is the same for the same path and text on every machine."""
        return _digest(f"{self.path}\0{self.text}")

    def target(
        self,
        kind: str,
        name: str,
        line: int,
        function: str = "",
        content: str = "",
        detail: str = "",
    ) -> Target:
        """Return a target in this file; its `name` is what comes after the path.

        >>> str(Source("shop/cart.py", "x = 1\\n").target("line", "1", 1))
        'line:shop/cart.py:1'
        """
        name = f"{self.path}:{name}"
        return Target(kind, name, self.path, line, function, content, self.id, detail)


class Target(NamedTuple):
    """A behaviour: ``event:stack was full``, ``line:shop/cart.py:12``, ``branch:cart.py:12->15``.

    It is a named tuple because every new path that a test takes creates one.

    >>> Target.parse("event:stack was full").name
    'stack was full'
    """

    kind: str
    name: str
    file: str = ""
    """`Source.path`, for targets in code."""
    line: int = 0
    """The line where it begins; 0 if it is not in code."""
    function: str = ""
    """The qualified name of the enclosing function; empty at module level."""
    content: str = ""
    """`content_hash` of the code it stands for."""
    source: str = ""
    """`Source.id` of the version of the file it was found in."""
    detail: str = ""
    """The data behind a name that is only a hash: the blocks of a path, the predicates behind a
    vector."""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Return the target written as ``kind:name``."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    @property
    def key(self) -> int:
        """Return 64 bits that identify the target, the same in every process and store."""
        return int(_digest(f"{self.kind}\0{self.name}\0{self.source}"), 16)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass
class Catalogue:
    """Targets, numbered in the order in which they are first seen.

    A catalogue only grows, so numbers stay valid.

    >>> catalogue = Catalogue()
    >>> catalogue.number(Target("event", "full")), catalogue.number(Target("event", "empty"))
    (0, 1)
    """

    targets: list[Target] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    """The files that contain targets, by `Source.id`."""
    _numbers: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def number(self, target: Target) -> int:
        """Return the target's number; a new target gets the next one."""
        identity = (target.kind, target.name, target.source)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.targets)
            self.targets.append(target)
        return number

    def add_source(self, source: Source) -> str:
        """Keep a file's text, so that reports can show it even if the file changes later."""
        self.sources[source.id] = source
        return source.id


class Hits(NamedTuple):
    """The targets of a catalogue that one test reached.

    >>> catalogue = Catalogue([Target("line", "a.py:1"), Target("line", "a.py:2")])
    >>> [str(target) for target in Hits.of(catalogue, [1]).targets()]
    ['line:a.py:2']
    """

    catalogue: Catalogue
    numbers: bytes
    """Ascending, each once, four bytes each: numpy's ``<u4``, `array`'s ``I``."""

    @classmethod
    def of(cls, catalogue: Catalogue, numbers: Iterable[int]) -> Hits:
        """Return hits from numbers in any order."""
        return cls(catalogue, array.array("I", sorted(set(numbers))).tobytes())

    def targets(self) -> list[Target]:
        """Return the targets that were hit."""
        return [self.catalogue.targets[i] for i in array.array("I", self.numbers)]

    def moving(self, known: Container[str] = ()) -> MovingHits:
        """Return the hits for another process that has the sources with the ids `known`."""
        targets = self.targets()
        ids = dict.fromkeys(target.source for target in targets if target.source not in known)
        sources = [self.catalogue.sources[id] for id in ids if id in self.catalogue.sources]
        return MovingHits(tuple(targets), tuple(sources))


class MovingHits(NamedTuple):
    """Hits on their way from one process to another, whose catalogue has other numbers.

    >>> here, there = Catalogue(), Catalogue()
    >>> moving = Hits.of(there, [there.number(Target("line", "a.py:2"))]).moving()
    >>> [str(target) for target in moving.arrived(here).targets()]
    ['line:a.py:2']
    """

    targets: tuple[Target, ...]
    sources: tuple[Source, ...]

    def arrived(self, catalogue: Catalogue) -> Hits:
        """Return the hits with the numbers of a catalogue of this process."""
        for source in self.sources:
            catalogue.add_source(source)
        return Hits.of(catalogue, map(catalogue.number, self.targets))


class Covered(Protocol):
    """Anything that says what a test reached, such as a run of a native program."""

    @property
    def hits(self) -> Hits | None:
        """Return what was reached; None if that is not known."""

    @property
    def missing(self) -> str:
        """Return why it is not known; empty if it is."""


def content_hash(text: str) -> str:
    """Return a hash of code that stays the same if the code is only moved or indented differently.

    >>> content_hash("    return x\\n") == content_hash("return x")
    True
    """
    return _digest("\n".join(line.strip() for line in text.strip().splitlines()))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def pack_hits(ids: Iterable[int]) -> bytes:
    """Return target ids as a compressed bitmap.

    >>> unpack_hits(pack_hits([3, 1, 70000]))
    [1, 3, 70000]
    """
    packed: bytes = BitMap(ids).serialize()
    return packed


def unpack_hits(data: bytes) -> list[int]:
    """Return the ids of a compressed bitmap, in order."""
    return list(BitMap.deserialize(data))
