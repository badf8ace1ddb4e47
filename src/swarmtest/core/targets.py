"""Targets: behaviours that some tests show and others do not. All are alike: a kind and a name.

A test's hits travel as `Hits`: numbers into the `Catalogue` of whoever watched the test. A store
gives each target an id of its own when it first sees it, and keeps a test's hits as a compressed
bitmap of those ids.

Identity: two targets are the same if kind, name and source are the same. A target that lies in
code names the version of the file it was found in (`Source.id`), so that line 12 of yesterday's
file is never mistaken for line 12 of today's; `content` and `function` are what lets it be found
again after an edit.
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
    """As a person would name it: relative to the project where possible."""
    text: str
    """The whole file; empty when it cannot be read (code without source)."""
    place: str = field(default="", compare=False)
    """Where the file is on this machine, absolute; empty when that is not known."""

    @cached_property
    def id(self) -> str:
        """The same for the same path and text, on every machine."""
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
        """A target that lies in this file; its `name` is what comes after the path.

        >>> str(Source("shop/cart.py", "x = 1\\n").target("line", "1", 1))
        'line:shop/cart.py:1'
        """
        name = f"{self.path}:{name}"
        return Target(kind, name, self.path, line, function, content, self.id, detail)


class Target(NamedTuple):
    """A behaviour: ``event:stack was full``, ``line:shop/cart.py:12``, ``branch:cart.py:12->15``.

    A tuple, because every new path that a test takes is one.

    >>> Target.parse("event:stack was full").name
    'stack was full'
    """

    kind: str
    name: str
    file: str = ""
    """`Source.path`, for targets that lie in code."""
    line: int = 0
    """Where it begins; 0 when it has no place."""
    function: str = ""
    """The qualified name of the function around it; empty at module level."""
    content: str = ""
    """`content_hash` of the code it stands for."""
    source: str = ""
    """`Source.id` of the version of the file it was found in."""
    detail: str = ""
    """What its name only hashes: the blocks of a path, the predicates behind a vector."""

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target written as ``kind:name``."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    @property
    def key(self) -> int:
        """64 bits that stand for the target's identity, the same in every process and store."""
        return int(_digest(f"{self.kind}\0{self.name}\0{self.source}"), 16)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass
class Catalogue:
    """Targets numbered as they were first seen. It only grows, so numbers stay valid.

    >>> catalogue = Catalogue()
    >>> catalogue.number(Target("event", "full")), catalogue.number(Target("event", "empty"))
    (0, 1)
    """

    targets: list[Target] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    """The files that targets lie in, by `Source.id`."""
    _numbers: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def number(self, target: Target) -> int:
        """The target's number; one not seen before gets the next."""
        identity = (target.kind, target.name, target.source)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self.targets)
            self.targets.append(target)
        return number

    def add_source(self, source: Source) -> str:
        """Keep a file's text, so that reports can show it however it changes later."""
        self.sources[source.id] = source
        return source.id


class Hits(NamedTuple):
    """What one test reached, of the targets in a catalogue.

    >>> catalogue = Catalogue([Target("line", "a.py:1"), Target("line", "a.py:2")])
    >>> [str(target) for target in Hits.of(catalogue, [1]).targets()]
    ['line:a.py:2']
    """

    catalogue: Catalogue
    numbers: bytes
    """Ascending, each once, four bytes each: numpy's ``<u4``, `array`'s ``I``."""

    @classmethod
    def of(cls, catalogue: Catalogue, numbers: Iterable[int]) -> Hits:
        """Hits from numbers in any order."""
        return cls(catalogue, array.array("I", sorted(set(numbers))).tobytes())

    def targets(self) -> list[Target]:
        """The targets that were hit."""
        return [self.catalogue.targets[i] for i in array.array("I", self.numbers)]

    def moving(self, known: Container[str] = ()) -> MovingHits:
        """The same for another process, which knows the sources with these ids."""
        targets = self.targets()
        ids = dict.fromkeys(target.source for target in targets if target.source not in known)
        sources = [self.catalogue.sources[id] for id in ids if id in self.catalogue.sources]
        return MovingHits(tuple(targets), tuple(sources))


class MovingHits(NamedTuple):
    """Hits on their way from one process to another, where numbers mean something else.

    >>> here, there = Catalogue(), Catalogue()
    >>> moving = Hits.of(there, [there.number(Target("line", "a.py:2"))]).moving()
    >>> [str(target) for target in moving.arrived(here).targets()]
    ['line:a.py:2']
    """

    targets: tuple[Target, ...]
    sources: tuple[Source, ...]

    def arrived(self, catalogue: Catalogue) -> Hits:
        """The hits, by the numbers of a catalogue of this process."""
        for source in self.sources:
            catalogue.add_source(source)
        return Hits.of(catalogue, map(catalogue.number, self.targets))


class Covered(Protocol):
    """Anything that tells what a test reached: a run of a native program."""

    @property
    def hits(self) -> Hits | None:
        """What was reached; None when that is not known."""

    @property
    def missing(self) -> str:
        """Why it is not known; empty when it is."""


def content_hash(text: str) -> str:
    """A hash of code that stays the same when the code only moves or is indented anew.

    >>> content_hash("    return x\\n") == content_hash("return x")
    True
    """
    return _digest("\n".join(line.strip() for line in text.strip().splitlines()))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


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
