"""Hits on their way from a worker to the store.

A process numbers its targets as it meets them, so another process cannot read its numbers. On the
wire, a target is its 64-bit key, and a set of hits the keys in it; what a key means is told once
per process, before the first set that contains it. Sets repeat, so each is translated once.

A worker needs no numpy for that: a process that is forked for one test would import it again.
"""

from __future__ import annotations

import array
import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Hits, Source, Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from swarmtest.coverage.watch import Coverage
    from swarmtest.store.interface import Store

_REMEMBERED = 20_000
"""Distinct sets that either side remembers before it starts anew."""

News = tuple[list[tuple[Any, ...]], list[tuple[str, str, str]], bytes, list[str]]
"""Targets not told before (key and fields), files not told before, keys reached by imports, and
what a user should know that was not told before."""
NO_NEWS: News = ([], [], b"", [])


class Sender:
    """A worker's side."""

    def __init__(self) -> None:
        self._events = Catalogue()
        self._catalogues: list[Catalogue] = []
        self._keys: dict[int, array.array[int]] = {}
        self._named: dict[tuple[str, ...], bytes] = {}
        self._told_sources: set[str] = set()
        self._told_notes = 0
        self._told: dict[int, int] = {}
        self._sets: dict[tuple[int, bytes], bytes] = {}

    def keys(self, hits: Hits) -> bytes:
        """The set as it travels."""
        known = self._sets.get((id(hits.catalogue), hits.numbers))
        if known is None:
            known = self._translate(hits)
        return known

    def keys_of_names(self, names: tuple[str, ...]) -> bytes:
        """The set of targets that a subject names ("kind:name")."""
        known = self._named.get(names)
        if known is None:
            numbers = [self._events.number(Target.parse(name)) for name in names]
            known = self._named[names] = self.keys(Hits.of(self._events, numbers))
        return known

    def _translate(self, hits: Hits) -> bytes:
        keys = self._key_array(hits.catalogue)
        if len(self._sets) >= _REMEMBERED:
            self._sets.clear()
        told = array.array("Q", map(keys.__getitem__, array.array("I", hits.numbers))).tobytes()
        self._sets[id(hits.catalogue), hits.numbers] = told
        return told

    def _key_array(self, catalogue: Catalogue) -> array.array[int]:
        """The keys of all its targets, by number."""
        known = self._keys.get(id(catalogue))
        if known is None:
            known = self._keys[id(catalogue)] = array.array("Q")
            self._catalogues.append(catalogue)  # also keeps it alive, and so its id its own
        if len(known) < len(catalogue.targets):
            known.extend([target.key for target in catalogue.targets[len(known) :]])
        return known

    def know(self, catalogue: Catalogue) -> None:
        """Let the next news tell all of a catalogue, hit or not."""
        self._key_array(catalogue)

    def news(self, coverage: Coverage | None) -> News:
        """What this process has not told yet."""
        targets: list[tuple[Any, ...]] = []
        sources: list[tuple[str, str, str]] = []
        for catalogue in self._catalogues:
            keys = self._key_array(catalogue)
            start = self._told.get(id(catalogue), 0)
            self._told[id(catalogue)] = len(keys)
            for key, target in zip(keys[start:].tolist(), catalogue.targets[start:], strict=True):
                targets.append((key, *target))
            for source in catalogue.sources.values():
                if source.id not in self._told_sources:
                    self._told_sources.add(source.id)
                    sources.append((source.path, source.text, source.place))
        if coverage is None:
            return targets, sources, b"", []
        outside = self.keys(Hits.of(coverage.catalogue, coverage.outside))
        notes = coverage.problems[self._told_notes :]
        self._told_notes += len(notes)
        return targets, sources, outside, notes


class Receiver:
    """The store's side. `wanted` are names of targets that a strategy learns from; None: all."""

    def __init__(self, store: Store, campaign: int, wanted: Collection[str] | None = None) -> None:
        self._store = store
        self._campaign = campaign
        self._wanted = wanted
        self._ids: dict[int, int] = {}
        self._sorted_keys: NDArray[np.uint64]
        self._sorted_ids: NDArray[np.uint32]
        self._sets: dict[bytes, BitMap] = {}
        self.targets: dict[int, Target] = {}
        """What is known of targets, by the store's ids."""
        self.hit = BitMap()
        """The ids that any test has hit."""
        self.outside = BitMap()
        """The ids that imports reached."""
        self.notes: list[str] = []
        """What a user should know, one line each."""
        self._watched_before: list[Source] = []
        self._refusal = ""
        self._named = BitMap()
        self._named_of = -1

    def load(self, hit: Iterable[int], outside: bytes | None) -> None:
        """Take up what an earlier run of the campaign has found."""
        self._watched_before = self._store.sources(self._campaign)
        self.hit |= BitMap(hit)
        if self._wanted is not None:
            self.targets |= self._store.targets(self.hit)
        if outside:
            self.outside |= BitMap.deserialize(outside)

    def learn(self, news: News) -> None:
        """Keep targets and files that a worker tells of."""
        targets, sources, outside, notes = news
        self.notes += [note for note in notes if note not in self.notes]
        watched = [Source(*source) for source in sources]
        for source in watched:
            self._refusal = self._refusal or self._if_edited(source)
        if self._refusal:  # also what other workers tell while the campaign winds up
            raise UserError(self._refusal)
        if watched:
            self._store.add_sources(self._campaign, watched)
        new = [told for told in targets if told[0] not in self._ids]
        if new:
            described = [Target(*told[1:]) for told in new]
            ids = self._store.target_ids(described)
            self.targets.update(zip(ids, described, strict=True))
            self._ids.update(zip([told[0] for told in new], ids, strict=True))
            self._sort()
        if outside:
            before = len(self.outside)
            self.outside |= self.ids(outside)
            if len(self.outside) > before:
                self._store.update_campaign(self._campaign, outside=self.outside.serialize())

    def _if_edited(self, source: Source) -> str:
        """Why the campaign cannot go on: tests of two versions of a file cannot be added up."""
        before = [one for one in self._watched_before if one.path == source.path]
        same = [one for one in before if not _lies_elsewhere(one, source)]
        if same and all(one.id != source.id for one in same):
            return (
                f"{source.path} has changed since the campaign began: start a new one, or put the "
                f"file back as it was (`swarmtest coverage {self._campaign} --show {source.path}`)"
            )
        return ""

    def _sort(self) -> None:
        import numpy as np

        keys = np.fromiter(self._ids.keys(), "<u8", len(self._ids))
        ids = np.fromiter(self._ids.values(), "<u4", len(self._ids))
        order = np.argsort(keys)
        self._sorted_keys, self._sorted_ids = keys[order], ids[order]

    def ids(self, keys: bytes) -> BitMap:
        """The store's ids of a set."""
        known = self._sets.get(keys)
        if known is None:
            import numpy as np

            places = np.searchsorted(self._sorted_keys, np.frombuffer(keys, "<u8"))
            numbers = array.array("I", self._sorted_ids[places].tobytes())
            if len(self._sets) >= _REMEMBERED:
                self._sets.clear()
            known = self._sets[keys] = BitMap(numbers)
        return known

    def pack(self, sets: Sequence[bytes]) -> list[bytes]:
        """Sets as the store keeps them; what they hit is noted."""
        return [self._packed(self.ids(keys)) for keys in sets]

    def packed_union(self, sets: Iterable[bytes]) -> bytes:
        """Several sets of one test as one."""
        return self._packed(BitMap.union(*[self.ids(keys) for keys in sets]))

    def _packed(self, ids: BitMap) -> bytes:
        self.hit |= ids
        packed: bytes = ids.serialize()
        return packed

    def names(self, hits: bytes) -> tuple[str, ...]:
        """The names of what a test hit, for strategies that learn; only what they want to know."""
        ids = BitMap.deserialize(hits)
        if self._wanted is not None:
            ids &= self._with_names(self._wanted)
        unknown = [id for id in ids if id not in self.targets]
        if unknown:
            self.targets |= self._store.targets(unknown)
        return tuple(str(self.targets[id]) for id in ids)

    def _with_names(self, wanted: Collection[str]) -> BitMap:
        """The ids of the targets that have these names, worked out again when there are more."""
        if self._named_of != len(self.targets):
            self._named_of = len(self.targets)
            self._named = BitMap(id for id, one in self.targets.items() if str(one) in wanted)
        return self._named


def _lies_elsewhere(one: Source, other: Source) -> bool:
    """Whether two files only share the name that reports have for them."""
    placed = bool(one.place and other.place)
    return placed and one.place != other.place and os.path.exists(one.place)
