"""Roles of features: how fast they are counted, and how often they are right.

    python benchmarks/roles.py [--quick] [--picture FILE]

Part one counts 100,000 tests x 64 features x 20,000 targets, each hit by a tenth of the tests: once
with all columns distinct, once as real programs have it (the lines of a block are hit by the same
tests; five targets share a column), and once with odds that differ from test to test. Beside it
stands what one would write with statsmodels: a loop over all cells, measured on a sample of them
and scaled to all, and its best vectorised use. The columns of hits are made up in memory; the way
from a store is timed with fewer tests, because writing billions of hits takes longer than this.

`seconds_100k_64_20k` are CPU seconds of the first of these. A smaller run scales what it measured,
in proportion to tests, features and targets, and says so (`scaled_from`).

Part two plants triggers, suppressors and pairs in a simulated subject and asks how often each is
found, and how often a role is claimed for a feature that has none, as the number of tests grows.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from harness import cpu_seconds, print_figures, print_table, progress, require_modules
from known_truth_picture import draw

from swarmtest import Space, open_store
from swarmtest.analysis import bit_counts as counting_bits
from swarmtest.analysis import bit_counts as kernels
from swarmtest.analysis.bit_counts import distinct_columns
from swarmtest.analysis.hit_blocks import HitBlock
from swarmtest.analysis.propensities import propensities_of
from swarmtest.analysis.trial_columns import Evidence, read_evidence
from swarmtest.core.configuration import unpack_weights
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import trial_key
from swarmtest.core.targets import Target, pack_hits
from swarmtest.roles.counting import RoleCounter
from swarmtest.roles.pairs import pairs
from swarmtest.roles.roles import RoleTable
from swarmtest.roles.study import Study
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord, pack_floats
from swarmtest.strategies import Stream, parse_strategy

Words = npt.NDArray[np.uint64]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    tests: int
    features: int
    targets: int
    distinct: int
    stored: int
    """Tests of the run from a store."""
    cells: int
    """Cells of the loop over statsmodels."""
    seeds: int
    steps: tuple[int, ...]
    """Numbers of tests in part two."""

    @property
    def work(self) -> int:
        """What is counted: each feature of each test, for each target."""
        return self.tests * self.features * self.targets

    @property
    def shown(self) -> str:
        return f"{self.tests:,} x {self.features} x {self.targets:,}"


FULL = Size(100_000, 64, 20_000, 4_000, 20_000, 500, 20, (100, 300, 1000, 3000, 10_000, 30_000))
QUICK = Size(12_800, 64, 4_000, 800, 500, 50, 2, (300, 1000))


# Proposals and stores, as campaigns make them.


def proposals(strategy: str, space: Space, tests: int, seed: int) -> list[Proposal]:
    chosen, stream = parse_strategy(strategy), Stream(seed)
    found: list[Proposal] = []
    for trial in range(tests):
        stream.rekey(trial_key(seed, trial))
        proposal = chosen.ask(space, trial, stream)
        assert isinstance(proposal, Proposal)
        found.append(proposal)
    return found


def recorded(
    store: Store,
    space: Space,
    strategy: str,
    drawn: Sequence[Proposal],
    seed: int,
    hits: Sequence[bytes | None] | None = None,
) -> int:
    campaign = store.add_campaign(CampaignRecord("simulated", strategy, seed, space.to_json()))
    records = [
        TrialRecord(
            trial,
            proposal.configuration.to_bytes(),
            pack_floats(proposal.propensities),
            proposal.origin,
            hits=hits[trial] if hits else None,
        )
        for trial, proposal in enumerate(drawn)
    ]
    store.record(campaign, records)
    return campaign


# Part one: speed.


def columns_of_hits(targets: int, tests: int, seed: int) -> Words:
    """Columns in which a tenth of the bits are set (26 of 256, exactly)."""
    random = np.random.default_rng(seed)
    shape = targets, -(-tests // 64)
    columns = np.zeros(shape, np.uint64)
    for bit in f"{26:08b}"[::-1]:
        noise = random.integers(0, 2**64, shape, np.uint64)
        columns = columns | noise if bit == "1" else columns & noise
    if tests % 64:
        columns[:, -1] &= np.uint64((1 << tests % 64) - 1)
    return columns


def blocks(columns: Words, tests: int) -> Iterator[HitBlock]:
    size = 6400
    for start in range(0, tests, size):
        stop = min(start + size, tests)
        words = np.ascontiguousarray(columns[:, start // 64 : -(-stop // 64)])
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=stop - start)
        target, test = np.nonzero(bits)
        starts = np.searchsorted(target, np.arange(len(columns) + 1))
        yield HitBlock(start, stop, starts, test.astype(np.uint16))


def evidence_of(strategy: str, size: Size) -> Evidence:
    space = Space([f"f{i}" for i in range(size.features)])
    drawn = proposals(strategy, space, size.tests, 1)
    with open_store(":memory:") as store:
        return read_evidence(store, [recorded(store, space, strategy, drawn, 1)])


def table_of(evidence: Evidence, columns: Words) -> tuple[RoleTable, float]:
    """Counts, intervals, roles, exact p-values and their correction; and the CPU seconds."""
    odds = propensities_of(evidence)
    targets = tuple(Target("line", str(i)) for i in range(len(columns)))
    start = cpu_seconds()
    distinct, row = distinct_columns(columns)
    finding_likes = cpu_seconds() - start
    prepared = list(blocks(distinct, evidence.n))
    start = cpu_seconds()
    counter = RoleCounter(evidence, odds, 0.95)
    cells, hits = counter.cells(lambda part: prepared, len(distinct))
    table = counter.table(targets, cells, hits, row)
    table.discoveries()
    return table, cpu_seconds() - start + finding_likes


def loop_over_cells(
    evidence: Evidence, columns: Words, table: RoleTable, cells: int
) -> tuple[float, float, float]:
    """CPU seconds per cell of a loop over `proportion_confint`, with and without the counting.

    And the largest difference between its intervals and ours.
    """
    from statsmodels.stats.proportion import proportion_confint

    random = np.random.default_rng(3)
    chosen = random.integers(0, (len(columns), len(evidence.features)), (cells, 2)).tolist()
    hit = {
        target: np.unpackbits(columns[target].view(np.uint8), bitorder="little")[: evidence.n] > 0
        for target, _ in chosen
    }
    has = np.ascontiguousarray(evidence.enabled[:].T)
    (low, high), containing = table.interval, table.counted.containing
    worst, start = 0.0, cpu_seconds()
    for target, feature in chosen:
        hits = np.count_nonzero(hit[target])
        both = np.count_nonzero(hit[target] & has[feature])
        ours = low[target, feature], high[target, feature]
        theirs = proportion_confint(both, hits, method="wilson")
        worst = max(worst, abs(ours[0] - theirs[0]), abs(ours[1] - theirs[1]))
    loop = (cpu_seconds() - start) / cells
    start = cpu_seconds()
    for target, feature in chosen:
        proportion_confint(
            int(containing[target, feature]), int(table.hits[target]), method="wilson"
        )
    return loop, (cpu_seconds() - start) / cells, worst


def all_at_once(evidence: Evidence, columns: Words, table: RoleTable) -> tuple[float, bool]:
    """A matrix product and one call of `proportion_confint`: CPU seconds, and whether it agrees.

    Only counts and intervals: no roles, no p-values.
    """
    from statsmodels.stats.proportion import proportion_confint

    start = cpu_seconds()
    has = evidence.enabled[:].astype(np.float32)
    both = np.zeros((len(columns), has.shape[1]))
    for at in range(0, evidence.n, 4096):
        words = np.ascontiguousarray(columns[:, at // 64 : (at + 4096) // 64])
        part = has[at : at + 4096]
        dense = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=len(part))
        both += dense.astype(np.float32) @ part
    hits = np.bitwise_count(columns).sum(axis=1, dtype=np.int64)[:, None]
    low, high = proportion_confint(both, hits, method="wilson")
    seconds = cpu_seconds() - start
    ours = table.interval
    return seconds, bool(np.allclose(low, ours[0]) and np.allclose(high, ours[1]))


def from_store(size: Size) -> tuple[float, float]:
    """CPU seconds to write a campaign with hits, and from the store to the corrected table."""
    space = Space([f"f{i}" for i in range(size.features)])
    random = np.random.default_rng(5)
    with open_store(":memory:") as store:
        start = cpu_seconds()
        ids = store.target_ids([Target("line", str(i)) for i in range(size.targets)])
        numbers = np.array(ids)
        hits = [pack_hits(numbers[random.random(len(ids)) < 0.1]) for _ in range(size.stored)]
        drawn = proposals("coin", space, size.stored, 1)
        campaign = recorded(store, space, "coin", drawn, 1, hits)
        written = cpu_seconds() - start
        start = cpu_seconds()
        Study(store, [campaign]).table("line").discoveries()
        return written, cpu_seconds() - start


def speed(size: Size) -> dict[str, object]:
    progress(f"speed: {size.shown} tests, features and targets are made up")
    coin, layered = evidence_of("coin", size), evidence_of("layered", size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    columns = columns_of_hits(size.targets, size.tests, 2)
    few = columns[np.random.default_rng(4).integers(0, size.distinct, size.targets)]
    progress("speed: numba compiles")
    warm_up = cpu_seconds()
    counting_bits._WORTH_COMPILING, usual = 0, counting_bits._WORTH_COMPILING
    some = slice(0, 6400)
    counting_bits.cooccurrence(columns[:2, :100].copy(), coin.enabled.packed_columns(some))
    kernels._WORTH_COMPILING, usually = 0, kernels._WORTH_COMPILING
    table_of(layered, columns[:2])
    warm_up = cpu_seconds() - warm_up
    progress("speed: with numba, and with numpy alone")
    distinct, numba_seconds = table_of(coin, columns)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, merged_seconds = table_of(coin, few)
    _, layered_seconds = table_of(layered, columns)
    _, layered_merged = table_of(layered, few)
    compiled, counting_bits._compiled = counting_bits._compiled, lambda: None  # type: ignore
    compiled_loops, kernels.compiled_loops = kernels.compiled_loops, lambda seconds: None
    plain, numpy_seconds = table_of(coin, columns)
    _, numpy_merged = table_of(coin, few)
    counting_bits._compiled, counting_bits._WORTH_COMPILING = compiled, usual
    kernels.compiled_loops, kernels._WORTH_COMPILING = compiled_loops, usually
    equal = all(
        np.array_equal(a, b)
        for a, b in (
            (distinct.counted.containing, plain.counted.containing),
            (distinct.adjusted, plain.adjusted),
            (distinct.codes, plain.codes),
        )
    )
    progress("speed: statsmodels, and the way from a store")
    loop, confint, difference = loop_over_cells(coin, columns, distinct, size.cells)
    cells = size.targets * size.features
    vectorised, agrees = all_at_once(coin, columns, distinct)
    written, stored = from_store(size)
    print(
        f"{size.tests:,} tests x {size.features} features x {size.targets:,} targets, a tenth of "
        f"the tests hits each; CPU seconds\n(counts, intervals, roles, exact p-values, correction; "
        f"numba starts in {warm_up:.1f} s, once)"
    )
    print_table(
        ("", "columns distinct", f"{size.distinct:,} distinct"),
        [
            ("swarmtest, numba", f"{numba_seconds:.2f}", f"{merged_seconds:.2f}"),
            ("swarmtest, numpy", f"{numpy_seconds:.2f}", f"{numpy_merged:.2f}"),
            ("swarmtest, odds vary (layered)", f"{layered_seconds:.2f}", f"{layered_merged:.2f}"),
            ("statsmodels, all at once", f"{vectorised:.2f}", ""),
            (f"statsmodels, a loop ({size.cells} cells, scaled)", f"{loop * cells:,.0f}", ""),
            ("  of which proportion_confint alone", f"{confint * cells:,.0f}", ""),
        ],
    )
    print(
        f"\nnumba and numpy agree: {equal}; intervals are those of statsmodels: {agrees}, at most "
        f"{difference:.1e} apart\nmemory: {peak / 1024:,.0f} MB at most, "
        f"{(peak - before) / 1024:,.0f} MB of it for hits and counts\n"
        f"the whole way from a store, with {size.stored:,} tests only: {stored:.1f} s "
        f"(writing it: {written:.1f} s)\n"
    )
    return {
        "seconds": round(numba_seconds, 2),
        "seconds_100k_64_20k": round(numba_seconds * FULL.work / size.work, 2),
        "scaled_from": "" if size == FULL else size.shown,
        "seconds_numpy": round(numpy_seconds, 2),
        "seconds_merged": round(merged_seconds, 2),
        "seconds_numpy_merged": round(numpy_merged, 2),
        "seconds_odds_vary": round(layered_seconds, 2),
        "seconds_odds_vary_merged": round(layered_merged, 2),
        "seconds_from_store": round(stored, 2),
        "tests_from_store": size.stored,
        "vs_statsmodels": round(loop * cells / numba_seconds),
        "vs_statsmodels_all_at_once": round(vectorised / numba_seconds, 2),
        "same_results": bool(equal and agrees and difference < 1e-9),
        "peak_mb": round(peak / 1024),
    }


# Part two: known truth.

STRATEGIES = ("coin", "layered", "mixture:all-on=0.1,coin=0.6,sized=0.3", "hedged")
NAMES = {STRATEGIES[2]: "mixture"}
FEATURES = 16
SPACE = Space([f"f{i}" for i in range(FEATURES)])
On = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Planted:
    """A target, the features that matter for it, and how often it is hit."""

    name: str
    chance: Callable[[On], npt.NDArray[np.floating[Any]]]
    triggers: tuple[int, ...] = ()
    suppressors: tuple[int, ...] = ()
    pair: tuple[int, int] | None = None
    """Features with an interplay: their single roles depend on the other and are not judged."""


def _either(hits: float, misses: float, on: npt.NDArray[np.bool_]) -> Array:
    return np.where(on, hits, misses)


TRUTHS = (
    Planted("needed", lambda on: 0.3 * on[:, 0], (0,)),
    Planted("helps", lambda on: 0.1 * _either(2, 1, on[:, 1]), (1,)),
    Planted("hinders", lambda on: 0.2 * _either(0.3, 1, on[:, 2]), (), (2,)),
    Planted("both", lambda on: 0.2 * on[:, 3] * _either(0.2, 1, on[:, 4]), (3,), (4,)),
    Planted("rare", lambda on: 0.04 * (on[:, 5] & on[:, 6]), (5, 6)),
    Planted("only with", lambda on: 0.02 + 0.3 * (on[:, 7] & on[:, 8]), pair=(7, 8)),
    Planted("either", lambda on: 0.3 * (on[:, 9] | on[:, 10]), pair=(9, 10)),
    Planted("one of two", lambda on: 0.3 * (on[:, 11] ^ on[:, 12]), pair=(11, 12)),
    Planted("luck, 5%", lambda on: np.full(len(on), 0.05)),
    Planted("luck, 95%", lambda on: np.full(len(on), 0.95)),
)
MEASURES = ("trigger", "suppressor", "pair", "wrong", "wrong_raw", "trigger_raw", "suppressor_raw")


def judged(strategy: str, steps: tuple[int, ...], seed: int) -> list[dict[str, float]]:
    """For each number of tests: the share of planted roles found, and of wrong ones claimed."""
    drawn = proposals(strategy, SPACE, steps[-1], seed)
    weights = unpack_weights([p.configuration.to_bytes() for p in drawn], FEATURES)
    random = np.random.default_rng(seed)
    chance = np.stack([truth.chance(weights > 0) for truth in TRUTHS], axis=1)
    hit = random.random(chance.shape) < chance
    found = []
    for tests in steps:
        with open_store(":memory:") as store:
            ids = np.array(store.target_ids([Target("event", t.name) for t in TRUTHS]))
            hits = [pack_hits(ids[row]) if row.any() else None for row in hit[:tests]]
            campaign = recorded(store, SPACE, strategy, drawn[:tests], seed, hits)
            found.append(_compared(Study(store, [campaign]), hit[:tests]))
    return found


def _compared(study: Study, hit: On) -> dict[str, float]:
    table = study.table("event")
    row = {target.name: number for number, target in enumerate(table.targets)}
    raw, listed = table.codes, table.discoveries()
    claims: dict[str, list[bool]] = {measure: [] for measure in (*MEASURES, "wrong_pair")}
    for number, truth in enumerate(TRUTHS):
        at = row.get(truth.name)
        if at is None:  # not hit yet
            codes = [np.zeros(FEATURES, int)] * 2
        else:
            codes = [listed[at], np.where(raw[at] <= 2, raw[at], 0)]
        for kind, code in (("trigger", 1), ("suppressor", 2)):
            for feature in getattr(truth, f"{kind}s"):
                claims[kind].append(bool(codes[0][feature] == code))
                claims[f"{kind}_raw"].append(bool(codes[1][feature] == code))
        mattering = {*truth.triggers, *truth.suppressors, *(truth.pair or ())}
        for feature in set(range(FEATURES)) - mattering:
            claims["wrong"].append(bool(codes[0][feature]))
            claims["wrong_raw"].append(bool(codes[1][feature]))
        found = pairs(study.evidence, study.chances, np.flatnonzero(hit[:, number]))
        named = [{int(p.feature[1:]), int(p.other[1:])} for p in found]
        if truth.pair:
            claims["pair"].append(set(truth.pair) in named)
        claims["wrong_pair"].append(any(one != set(truth.pair or ()) for one in named))
    return {measure: statistics.mean(values) for measure, values in claims.items()}


Curves = dict[str, dict[str, list[float]]]
"""By strategy and measure: a mean over seeds for each number of tests."""


def known_truth(size: Size) -> tuple[Curves, dict[str, object]]:
    curves: Curves = {}
    with ProcessPoolExecutor(2) as pool:
        for strategy in STRATEGIES:
            progress(f"known truth: {strategy}")
            runs = list(pool.map(partial(judged, strategy, size.steps), range(size.seeds)))
            curves[NAMES.get(strategy, strategy)] = {
                measure: [
                    statistics.mean(run[at][measure] for run in runs)
                    for at in range(len(size.steps))
                ]
                for measure in runs[0][0]
            }
    print(
        f"share of planted roles found, and of irrelevant features with a role, {size.seeds} seeds,"
        f"\n{FEATURES} features, {len(TRUTHS)} targets; corrected (Benjamini-Hochberg, 5%) / raw "
        "(95% intervals)"
    )
    rows = []
    for strategy, measures in curves.items():
        for at, tests in enumerate(size.steps):
            value = {measure: values[at] for measure, values in measures.items()}
            rows.append(
                (
                    strategy,
                    f"{tests:,}",
                    f"{value['trigger']:.0%} / {value['trigger_raw']:.0%}",
                    f"{value['suppressor']:.0%} / {value['suppressor_raw']:.0%}",
                    f"{value['pair']:.0%}",
                    f"{value['wrong']:.2%} / {value['wrong_raw']:.1%}",
                    f"{value['wrong_pair']:.1%}",
                )
            )
    head = ("strategy", "tests", "triggers", "suppressors", "pairs", "wrong roles", "wrong pairs")
    print_table(head, rows)

    def mean(measure: str) -> float:
        return statistics.mean(v for of in curves.values() for v in of[measure])

    figures: dict[str, object] = {
        "wrong_role_rate": round(mean("wrong"), 5),
        "wrong_role_rate_raw": round(mean("wrong_raw"), 4),
        "wrong_pair_rate": round(mean("wrong_pair"), 4),
    }
    last = size.steps[-1]
    for strategy, measures in curves.items():
        for measure in ("trigger", "suppressor", "pair"):
            figures[f"found_rate_{measure}_{strategy}_{last}"] = round(measures[measure][-1], 3)
    return curves, figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    parser.add_argument("--picture", type=Path, help="draw part two into this SVG file")
    options = parser.parse_args()
    require_modules({"numba": "'swarmtest[fast]'", "statsmodels": "statsmodels"})
    size = QUICK if options.quick else FULL
    figures = speed(size)
    curves, more = known_truth(size)
    if options.picture:
        options.picture.write_text(draw(size.steps, curves))
    print_figures(figures | more)


if __name__ == "__main__":
    main()
