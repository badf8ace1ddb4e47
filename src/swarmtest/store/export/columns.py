"""The trials of a block as columns of an export, each with its distinct values.

An export has hundreds of values for a trial, nearly all of them repeated: a value becomes text once
for each block, not once for each trial (`swarmtest.store.export.lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.core.configuration import FULL, WEIGHTS, Configuration
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import unpack_hits
from swarmtest.store.blocks.block import TrialBlock
from swarmtest.store.blocks.columns import FULL_COUNTS, ODD_COUNTS, ODD_HITS, ODD_KIND
from swarmtest.store.blocks.hits import BlockHits, Ints, invert_hits, unpacked
from swarmtest.store.records import unpack_counts, unpack_floats

_MOST_FLAGS = 1 << 26
"""Targets times trials that are looked at together: more memory would be used than for reading."""
_MOST_NUMBERED = 1 << 16
"""Numbers below this are counted; larger ones are sorted."""


class Cells(NamedTuple):
    """A column of a block."""

    values: list[Any]
    """The values that occur, each at least once."""
    places: npt.NDArray[Any]
    """For each trial its place in `values`."""

    def replaced(self, change: Callable[[Any], Any]) -> Cells:
        """Return the column with other values."""
        return Cells(list(map(change, self.values)), self.places)


def distinct(values: npt.NDArray[Any]) -> Cells:
    """Return a column of whole numbers.

    >>> distinct(np.array([7, 3, 7]))
    Cells(values=[3, 7], places=array([1, 0, 1]))
    """
    lowest = int(values.min(initial=0))
    if lowest >= 0 and int(values.max(initial=0)) < _MOST_NUMBERED:
        found, index = number_codes(values)
    else:
        found, index = np.unique(values, return_inverse=True)
    return Cells(found.tolist(), index)


def number_codes(codes: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the distinct codes, in order, and for each code its place among them."""
    seen = np.zeros(int(codes.max(initial=0)) + 1, bool)
    seen[codes] = True
    found = np.flatnonzero(seen)
    places = np.empty(len(seen), np.int64)
    places[found] = np.arange(len(found))
    return found, places[codes]


def plain_cells(block: TrialBlock) -> dict[str, Cells]:
    """Return the columns that every trial has, by their names; faults are in ``fault``."""
    faults = np.where(block.fault_index < 0, len(block.faults), block.fault_index)
    verdicts = distinct(block.verdicts.astype(np.int64))
    return {
        "trial": distinct(block.numbers),
        "seed": distinct(block.seeds),
        "verdict": verdicts.replaced(lambda verdict: Verdict(verdict).label),
        "fault": Cells([*block.faults, None], faults),
        "steps": distinct(block.steps),
        "skipped": distinct(block.skipped),
        "cpu_ms": distinct(block.cpu_ns).replaced(lambda ns: ns / 1e6),
        "wall_ms": distinct(block.wall_ns).replaced(lambda ns: ns / 1e6),
        "origin": Cells([*block.origins], block.origin_index),
    }


def weight_cells(block: TrialBlock, space: Space) -> list[Cells]:
    """Return the weight of each feature: 0, 1 or a fraction."""
    enabled = unpacked(block.enabled, block.size)
    odd = np.flatnonzero(block.kinds == ODD_KIND)
    fractional = np.flatnonzero(block.weight_index >= 0)
    if not len(odd) and not len(fractional):
        return [Cells([0, 1], flags.astype(np.int64)) for flags in enabled]
    steps = enabled * np.int64(FULL)
    steps[:, fractional] = block.weight_rows[block.weight_index[fractional]].T
    for position in odd.tolist():
        packed = block.tails[block.tail_index[position]]
        weights = Configuration.from_bytes(space, packed).weights
        steps[:, position] = [round(weight * FULL) for weight in weights]
    return [distinct(row).replaced(_weight) for row in steps]


def _weight(step: int) -> float:
    return step // FULL if step in (0, FULL) else step / FULL


def setting_cells(block: TrialBlock, space: Space) -> tuple[list[Cells], Cells]:
    """Return the settings, and whether features are chosen in proportion to their weights."""
    found, index = np.unique(
        block.kinds * np.int64(len(block.tails)) + block.tail_index, return_inverse=True
    )
    nothing = bytes((block.features + 7) // 8)
    examples = []
    for code in found.tolist():
        kind, tail = divmod(code, len(block.tails))
        packed = block.tails[tail]
        if kind != ODD_KIND:
            packed = bytes([kind & ~WEIGHTS]) + nothing + packed
        examples.append(Configuration.from_bytes(space, packed))
    settings = [example.settings for example in examples]
    return (
        [Cells([values[name] for values in settings], index) for name in space.setting_names],
        Cells([example.renormalised for example in examples], index),
    )


def used_cells(block: TrialBlock) -> list[Cells]:
    """Return how often each feature appeared; None if that is not known."""
    counts = block.used.astype(np.int64)
    known = np.where(block.used_states == FULL_COUNTS, block.features, 0)
    odd = np.flatnonzero(block.used_states == ODD_COUNTS).tolist()
    for position, packed in zip(odd, block.odd_used, strict=True):
        some = unpack_counts(packed)[: block.features]
        counts[: len(some), position] = some
        known[position] = len(some)
    return _partly_known(counts, known)


def propensity_cells(block: TrialBlock) -> list[Cells]:
    """Return the propensity of each feature; None if it is not known."""
    rows = np.zeros((block.features, len(block.propensity_rows)), np.uint32)
    known = np.zeros(len(block.propensity_rows), np.int64)
    for number, packed in enumerate(block.propensity_rows):
        found = np.frombuffer(packed, "<u4", len(packed) // 4)
        values = np.repeat(found, block.features) if len(found) == 1 else found[: block.features]
        rows[: len(values), number] = values
        known[number] = len(values)
    return [
        Cells([None if bits is None else _short(bits) for bits in values], index)
        for values, index in (
            Cells(each.values, each.places[block.propensity_index])
            for each in _partly_known(rows.astype(np.int64), known)
        )
    ]


def _short(bits: int) -> float:
    """Return a number in single precision, given as its bits, in the digits that it has.

    Single precision has about seven digits; more would print 0.1 as 0.10000000149.
    """
    return float(f"{unpack_floats(bits.to_bytes(4, 'little'))[0]:.7g}")


def _partly_known(rows: npt.NDArray[np.int64], known: npt.NDArray[Any]) -> list[Cells]:
    """Return rows as columns; of the values of a trial, the first `known` ones are known."""
    unknown = known.min(initial=len(rows)) < len(rows)
    cells = []
    for number, row in enumerate(rows):
        if unknown:
            row[known <= number] = -1
        found = distinct(row + 1)  # so that the lowest number is 0
        cells.append(Cells([value - 1 if value else None for value in found.values], found.places))
    return cells


def export_parts(block: TrialBlock) -> Iterator[TrialBlock]:
    """Yield a block in parts whose hits fit into memory, trials times targets."""
    if not block.size:
        return
    size = max(1, _MOST_FLAGS // max(1, len(block.hits.targets)))
    if block.size <= size:
        yield block
        return
    for start in range(0, block.size, size):
        yield block.take(np.arange(start, min(start + size, block.size)))


def complete_hits(block: TrialBlock) -> BlockHits:
    """Return the hits of a block, with those that another program may have written."""
    odd = np.flatnonzero(block.hit_states == ODD_HITS)
    if not len(odd):
        return block.hits
    sets: list[npt.ArrayLike] = [*block.hits.sets()]
    for position, packed in zip(odd.tolist(), block.odd_hits, strict=True):
        sets[position] = list(unpack_hits(packed))
    return invert_hits(sets)
