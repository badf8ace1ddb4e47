"""Campaigns of any size, made up: what `benchmarks/scale.py` counts.

Targets are like those of programs. Neighbours are hit by the same tests (the lines of a block): by
default four share a column on average, geometrically distributed. How often blocks are hit follows
Zipf's law: a few are in nearly all tests, most are rare, such that a test hits a given number of
targets on average. A third of the blocks need one feature, a tenth need one to be out.
Configurations are tosses of a fair coin for each feature. One test in a thousand shows a fault, of
ten that there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest import Space
from swarmtest.analysis.bit_counts import Bits
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.targets import Target
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord, pack_floats

_CHUNK = 1_000
"""Tests that are made at a time: the same tests, however many are asked for."""
_OFTEN = 0.02
"""Blocks that more tests hit are drawn one by one, others by how many of them a test hits."""
_FAULTS = 10

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Made:
    """A campaign that could have been."""

    tests: int
    features: int
    targets: int
    hits: int
    """Targets that a test hits, on average, if no feature mattered."""
    likes: float = 4.0
    """Targets of a block, on average."""
    seed: int = 1

    @cached_property
    def space(self) -> Space:
        return Space([f"f{i}" for i in range(self.features)])

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first target of each block, and the number of targets."""
        random = np.random.default_rng(self.seed)
        sizes = random.geometric(1 / self.likes, int(2 * self.targets / self.likes) + 10)
        ends = np.cumsum(sizes)
        return np.concatenate([[0], ends[ends < self.targets], [self.targets]])

    @cached_property
    def rates(self) -> npt.NDArray[np.float64]:
        """How often each block is hit."""
        count = len(self.starts) - 1
        ranks = 1 + np.random.default_rng(self.seed + 1).permutation(count)
        wanted = self.hits / self.targets * count
        low, high = 0.0, float(count)
        for _ in range(60):
            middle = (low + high) / 2
            enough = np.minimum(0.95, middle / ranks).sum() > wanted
            low, high = (low, middle) if enough else (middle, high)
        return np.minimum(0.95, low / ranks)

    def chunks(self) -> Iterator[tuple[int, Bools, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """First test, features in each test, and hits as pairs of test (from the first) and block.

        Pairs are in order of tests, and of blocks within a test; none is there twice.
        """
        often = np.flatnonzero(self.rates > _OFTEN)
        rare = np.flatnonzero(self.rates <= _OFTEN)
        up_to = np.cumsum(self.rates[rare])
        gates = np.random.default_rng(self.seed + 2)
        need = gates.random(len(self.rates))
        gate = gates.integers(0, self.features, len(self.rates))
        for start in range(0, self.tests, _CHUNK):
            random = np.random.default_rng([self.seed, start])
            tests = min(_CHUNK, self.tests - start)
            has = random.random((_CHUNK, self.features), np.float32)[:tests] < 0.5
            hit = random.random((_CHUNK, len(often)), np.float32)[:tests] < self.rates[often]
            test, block = np.nonzero(hit)
            draws = random.poisson(up_to[-1] * _CHUNK) if len(rare) else 0
            at = random.random(draws) * (up_to[-1] if len(rare) else 0)
            more = random.integers(0, _CHUNK, draws)
            keys = np.concatenate(
                [
                    test * len(self.rates) + often[block],
                    more * len(self.rates) + rare[np.searchsorted(up_to, at)]
                    if draws
                    else np.empty(0, np.int64),
                ]
            )
            test, block = np.divmod(np.unique(keys), len(self.rates))
            test, block = test[test < tests], block[test < tests]
            inside = has[test, gate[block]]
            wanted = np.where(need[block] < 1 / 3, inside, (need[block] < 0.9) | ~inside)
            yield start, has, test[wanted], block[wanted]

    def evidence(self) -> Evidence:
        """The same without a store: nothing but what counting needs."""
        words = [Bits.of(has).words for has in self._features()]
        zeros = np.zeros(self.tests, np.int32)
        return Evidence(
            campaigns=(1,),
            seeds=(1,),
            spaces=(self.space,),
            features=self.space.feature_names,
            campaign=zeros,
            trial=np.arange(self.tests),
            columns=Bits(np.concatenate(words), self.features).packed_columns(slice(None)),
            fractions=None,
            steps=np.ones(self.tests, np.int64),
            cpu_seconds=np.zeros(self.tests),
            odds=np.full((1, self.features), 0.5, np.float32),
            odds_row=zeros,
            origins=("",),
            origin=zeros,
            fault_ids=(),
            signatures=(),
            fault=zeros - 1,
            hits_known=np.ones(self.tests, bool),
            invalid=0,
        )

    def _features(self) -> Iterator[Bools]:
        """What `chunks` says of features, without the hits."""
        for start in range(0, self.tests, _CHUNK):
            random = np.random.default_rng([self.seed, start])
            tests = min(_CHUNK, self.tests - start)
            yield random.random((_CHUNK, self.features), np.float32)[:tests] < 0.5

    def rows(self) -> Iterator[Numbers]:
        """For each test the blocks that it hits: what comes of targets if likes are one."""
        for _, has, test, block in self.chunks():
            ends = np.searchsorted(test, np.arange(1, len(has)))
            yield from np.split(block.astype(np.int32), ends)

    def record_into(self, store: Store) -> int:
        """A real campaign in a real store."""
        named = [Target("line", f"made.py:{i + 1}", "made.py", i + 1) for i in range(self.targets)]
        ids = np.array(store.target_ids(named), np.uint32)
        campaign = store.add_campaign(CampaignRecord("made", "coin", 1, self.space.to_json()))
        faults = [
            FaultRecord(f"{i:08x}", "exception", f"Error {i}", "", i, i, 1, "[]")
            for i in range(_FAULTS)
        ]
        for start, has, test, block in self.chunks():
            store.record(campaign, self._trials(start, has, test, block, ids), faults)
            faults = []
        return campaign

    def _trials(
        self,
        start: int,
        has: Bools,
        test: npt.NDArray[np.int64],
        block: npt.NDArray[np.int64],
        ids: npt.NDArray[np.uint32],
    ) -> list[TrialRecord]:
        sizes = np.diff(self.starts)[block]
        first = np.repeat(self.starts[block] - (np.cumsum(sizes) - sizes), sizes)
        targets = ids[np.arange(int(sizes.sum())) + first]
        ends = np.cumsum(np.bincount(test, sizes, len(has)).astype(np.int64))
        packed = np.packbits(has, axis=1, bitorder="little")
        odds, trials = pack_floats([0.5]), []
        for number in range(len(has)):
            hits = array("I", targets[ends[number - 1] if number else 0 : ends[number]].tobytes())
            trial = start + number
            fault = f"{trial // 1000 % _FAULTS:08x}" if trial % 1000 == 999 else None
            trials.append(
                TrialRecord(
                    trial,
                    b"\0" + packed[number].tobytes(),
                    odds,
                    verdict=int(fault is not None),
                    fault=fault,
                    steps=int(has[number].sum()),
                    used=b"\1" + has[number].tobytes(),
                    hits=BitMap(hits).serialize(),
                    cpu_ns=1000,
                )
            )
        return trials
