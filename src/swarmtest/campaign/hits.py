"""Sending hits from a worker to the store.

A process numbers its targets as it meets them, so another process cannot read its numbers. On the
wire, a target is its 64-bit key, and a set of hits is the keys in it. Each process describes a key
once, before the first set that contains it. Sets repeat, so each is translated once.

A worker does this without numpy: a process that is forked for one test would have to import it
again.
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

    from swarmtest.campaign.executors.block_batch import SentBlock
    from swarmtest.coverage.watch import Coverage
    from swarmtest.store.interface import Store
    from swarmtest.store.loose_blocks import PackedBlock

_REMEMBERED = 20_000
"""Distinct sets that either side caches before it empties its cache."""

_REMEMBERED_BLOCKS = 64
"""Sets of targets of whole blocks that the receiver caches: most blocks reach the same targets."""

News = tuple[list[tuple[Any, ...]], list[tuple[str, str, str]], bytes, list[str]]
"""What a process has not sent before: targets (key and fields), files (path, text and place), the
keys that imports reached, and messages for the user."""
NO_NEWS: News = ([], [], b"", [])


class HitSender:
    """The worker's side: translates sets of hits to keys and describes new targets."""

    def __init__(self) -> None:
        self._events = Catalogue()
        self._catalogues: list[Catalogue] = []
        self._keys: dict[int, array.array[int]] = {}
        self._named: dict[tuple[str, ...], Hits] = {}
        self._places: dict[int, int] = {}
        self._sent_sources: set[str] = set()
        self._sent_notes = 0
        self._sent_targets: dict[int, int] = {}  # how many of each catalogue, by its id
        self._sets: dict[tuple[int, bytes], bytes] = {}

    def keys(self, hits: Hits) -> bytes:
        """Return the keys of a set of hits, as they are sent."""
        keys = self._sets.get((id(hits.catalogue), hits.numbers))
        if keys is None:
            keys = self._translate(hits)
        return keys

    def keys_of_names(self, names: tuple[str, ...]) -> bytes:
        """Return the keys of targets that a subject names ("kind:name")."""
        return self.keys(self.named(names))

    def named(self, names: tuple[str, ...]) -> Hits:
        """Return the hits that a subject names ("kind:name")."""
        hits = self._named.get(names)
        if hits is None:
            numbers = [self._events.number(Target.parse(name)) for name in names]
            hits = self._named[names] = Hits.of(self._events, numbers)
        return hits

    def number_of(self, catalogue: Catalogue) -> int:
        """Return the place of a catalogue in `key_arrays`."""
        place = self._places.get(id(catalogue))
        if place is None:
            self._key_array(catalogue)
            place = self._places[id(catalogue)]
        return place

    def key_arrays(self) -> list[array.array[int]]:
        """Return the keys of all targets of each catalogue, by number."""
        return [self._key_array(catalogue) for catalogue in self._catalogues]

    def keys_of_set(self, place: int, numbers: bytes) -> bytes:
        """Return the keys of a set, given the place of its catalogue."""
        return self.keys(Hits(self._catalogues[place], numbers))

    def _translate(self, hits: Hits) -> bytes:
        keys = self._key_array(hits.catalogue)
        if len(self._sets) >= _REMEMBERED:
            self._sets.clear()
        sent = array.array("Q", map(keys.__getitem__, array.array("I", hits.numbers))).tobytes()
        self._sets[id(hits.catalogue), hits.numbers] = sent
        return sent

    def _key_array(self, catalogue: Catalogue) -> array.array[int]:
        """Return the keys of all targets of a catalogue, by number."""
        keys = self._keys.get(id(catalogue))
        if keys is None:
            keys = self._keys[id(catalogue)] = array.array("Q")
            self._places[id(catalogue)] = len(self._catalogues)
            self._catalogues.append(catalogue)  # also keeps it alive: its id must stay unique
        if len(keys) < len(catalogue.targets):
            keys.extend([target.key for target in catalogue.targets[len(keys) :]])
        return keys

    def know(self, catalogue: Catalogue) -> None:
        """Let the next `news` describe all targets of a catalogue, hit or not."""
        self._key_array(catalogue)

    def news(self, coverage: Coverage | None) -> News:
        """Return what this process has not sent yet."""
        targets: list[tuple[Any, ...]] = []
        sources: list[tuple[str, str, str]] = []
        for catalogue in self._catalogues:
            keys = self._key_array(catalogue)
            start = self._sent_targets.get(id(catalogue), 0)
            self._sent_targets[id(catalogue)] = len(keys)
            for key, target in zip(keys[start:].tolist(), catalogue.targets[start:], strict=True):
                targets.append((key, *target))
            for source in catalogue.sources.values():
                if source.id not in self._sent_sources:
                    self._sent_sources.add(source.id)
                    sources.append((source.path, source.text, source.place))
        if coverage is None:
            return targets, sources, b"", []
        outside = self.keys(Hits.of(coverage.catalogue, coverage.outside))
        notes = coverage.problems[self._sent_notes :]
        self._sent_notes += len(notes)
        return targets, sources, outside, notes


class HitReceiver:
    """The store's side: translates keys to the store's ids of targets.

    `wanted` are the names of the targets that a strategy learns from; None: all.
    """

    def __init__(self, store: Store, campaign: int, wanted: Collection[str] | None = None) -> None:
        self._store = store
        self._campaign = campaign
        self._wanted = wanted
        self._ids: dict[int, int] = {}
        self._sorted_keys: NDArray[np.uint64]
        self._sorted_ids: NDArray[np.uint32]
        self._sets: dict[bytes, BitMap] = {}
        self._blocks: dict[bytes, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self.targets: dict[int, Target] = {}
        """Targets by the store's ids, as far as they were needed."""
        self.hit = BitMap()
        """The ids that any test has hit."""
        self.outside = BitMap()
        """The ids that imports reached."""
        self.notes: list[str] = []
        """Messages for the user, one line each."""
        self._watched_before: list[Source] = []
        self._refusal = ""
        self._wanted_ids = BitMap()
        self._wanted_among = -1  # the number of targets for which `_wanted_ids` was computed

    def load(self, hit: Iterable[int], outside: bytes | None) -> None:
        """Load what an earlier run of the campaign has found."""
        self._watched_before = self._store.sources(self._campaign)
        self.hit |= BitMap(hit)
        if self._wanted is not None:
            self.targets |= self._store.targets(self.hit)
        if outside:
            self.outside |= BitMap.deserialize(outside)

    def learn(self, news: News) -> None:
        """Store the targets and files that a worker describes."""
        targets, sources, outside, notes = news
        self.notes += [note for note in notes if note not in self.notes]
        watched = [Source(*source) for source in sources]
        for source in watched:
            self._refusal = self._refusal or self._why_edited(source)
        if self._refusal:  # raised again for other workers while the campaign winds up
            raise UserError(self._refusal)
        if watched:
            self._store.add_sources(self._campaign, watched)
        new = [target for target in targets if target[0] not in self._ids]
        if new:
            described = [Target(*fields) for _, *fields in new]
            try:
                ids = self._store.target_ids(described)
            except UserError as error:  # without its targets, no later batch can be stored either
                self._refusal = str(error)
                raise
            self.targets.update(zip(ids, described, strict=True))
            self._ids.update(zip([key for key, *_ in new], ids, strict=True))
            self._sort()
        if outside:
            before = len(self.outside)
            self.outside |= self.ids(outside)
            if len(self.outside) > before:
                self._store.update_campaign(self._campaign, outside=self.outside.serialize())

    def _why_edited(self, source: Source) -> str:
        """Return why the campaign cannot go on if a file was edited; empty if it was not.

        Tests of two versions of a file cannot be added up.
        """
        before = [earlier for earlier in self._watched_before if earlier.path == source.path]
        same = [earlier for earlier in before if not _lies_elsewhere(earlier, source)]
        if same and all(earlier.id != source.id for earlier in same):
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
        """Return the store's ids of a set of keys."""
        ids = self._sets.get(keys)
        if ids is None:
            if self._refusal:
                raise UserError(self._refusal)
            import numpy as np

            indices = np.searchsorted(self._sorted_keys, np.frombuffer(keys, "<u8"))
            numbers = array.array("I", self._sorted_ids[indices].tobytes())
            if len(self._sets) >= _REMEMBERED:
                self._sets.clear()
            ids = self._sets[keys] = BitMap(numbers)
        return ids

    def packed_block(self, sent: SentBlock) -> PackedBlock:
        """Return a worker's block with the store's ids of targets, and add them to `hit`."""
        import numpy as np

        from swarmtest.store.blocks.codec import pack_class_targets
        from swarmtest.store.loose_blocks import BlockTotals, FaultTotal, PackedBlock

        targets = b""
        if sent.keys:
            ids, order = self._ids_of_block(sent.keys)
            targets = pack_class_targets(
                ids,
                np.frombuffer(sent.classes, "<i4")[order],
                np.frombuffer(sent.counts, "<i8"),
                np.frombuffer(sent.first_trials, "<i8"),
            )
        totals, faults = BlockTotals._make(sent.totals), list(map(FaultTotal._make, sent.faults))
        return PackedBlock(totals, faults, sent.features, sent.columns, targets, sent.hits)

    def _ids_of_block(self, keys: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of keys in order, and the order in which the keys give them."""
        found = self._blocks.get(keys)
        if found is None:
            import numpy as np

            places = np.searchsorted(self._sorted_keys, np.frombuffer(keys, "<u8"))
            ids = self._sorted_ids[places].astype(np.int64)
            order = np.argsort(ids)
            self.hit |= BitMap(ids.astype(np.uint32))
            if len(self._blocks) >= _REMEMBERED_BLOCKS:
                self._blocks.clear()
            found = self._blocks[keys] = ids[order], order
        return found

    def pack(self, sets: Sequence[bytes]) -> list[bytes]:
        """Return the sets as the store keeps them, and add them to `hit`."""
        return [self._packed(self.ids(keys)) for keys in sets]

    def packed_union(self, sets: Iterable[bytes]) -> bytes:
        """Return the union of several sets of one test, as the store keeps it."""
        return self._packed(BitMap.union(*[self.ids(keys) for keys in sets]))

    def _packed(self, ids: BitMap) -> bytes:
        self.hit |= ids
        packed: bytes = ids.serialize()
        return packed

    def names(self, hits: bytes) -> tuple[str, ...]:
        """Return the names of the wanted targets that a test hit, for strategies that learn."""
        ids = BitMap.deserialize(hits)
        if self._wanted is not None:
            ids &= self._with_names(self._wanted)
        unknown = [id for id in ids if id not in self.targets]
        if unknown:
            self.targets |= self._store.targets(unknown)
        return tuple(str(self.targets[id]) for id in ids)

    def _with_names(self, wanted: Collection[str]) -> BitMap:
        """Return the ids of the targets with these names, cached until more targets are known."""
        if self._wanted_among != len(self.targets):
            self._wanted_among = len(self.targets)
            self._wanted_ids = BitMap(
                id for id, target in self.targets.items() if str(target) in wanted
            )
        return self._wanted_ids


def _lies_elsewhere(earlier: Source, source: Source) -> bool:
    """Return whether these are two files that only have the same name in reports."""
    both_placed = bool(earlier.place and source.place)
    return both_placed and earlier.place != source.place and os.path.exists(earlier.place)
