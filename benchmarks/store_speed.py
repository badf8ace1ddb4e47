"""How many trials per second go into both stores and out of them, and how long pages take.

    python benchmarks/store_speed.py [--quick]

Trials have 40 features, used counts, propensities and 300 hits each, and come in batches of 1,000,
as a campaign records them. One in fifty fails. PostgreSQL is a server of its own, started for this
with its usual settings (`pgserver`); its figures are of one connection over a local socket. Then
what a page about a campaign asks: totals, 200 points of progress, the newest 50 trials. And
`swarmtest copy` from SQLite to PostgreSQL, with both hashes.

Workers of a campaign pack their trials into blocks, and the process that writes only inserts them.
`postgres_vs_sqlite` is the tests per second of a campaign with a store in PostgreSQL, over those of
the same campaign with one in SQLite: short tests (the stack of `benchmarks/throughput.py`), one
worker, in turns, the median of the rounds. Beside it is the CPU time of the process that writes.
`blocks_vs_sqlite` is the same for nothing but inserting packed blocks, one after the other, each in
a transaction of its own, for which PostgreSQL waits until it is on the disk.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from harness import arguments, print_figures, print_table, progress, require_modules
from throughput import SUBJECT

from swarmtest import Campaign
from swarmtest.core.space import Space
from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.block_tables import pack_records
from swarmtest.store.copies import copy_campaign
from swarmtest.store.interface import Store
from swarmtest.store.loose_blocks import BlockLayout, PackedBlock
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    TrialRecord,
    pack_counts,
    pack_floats,
)

FEATURES, TARGETS, HITS, BATCH = 40, 5_000, 300, 1_000
ROUNDS = 5
SPACE = Space([f"feature {i}" for i in range(FEATURES)]).to_json()


def trials(count: int) -> list[TrialRecord]:
    """Trials as a campaign with coverage makes them."""
    rng = random.Random(1)
    usual = [pack_hits(rng.sample(range(1, TARGETS), HITS)) for _ in range(50)]
    chances = pack_floats([0.5])
    return [
        TrialRecord(
            number,
            b"\0" + rng.randbytes(FEATURES // 8),
            chances,
            "coin",
            rng.getrandbits(62),
            int(number % 50 == 7),
            f"fault {number % 5}" if number % 50 == 7 else None,
            50,
            0,
            pack_counts([rng.randrange(9) for _ in range(FEATURES)]),
            rng.choice(usual),
            rng.randrange(10**6),
            rng.randrange(10**6),
        )
        for number in range(count)
    ]


def fill(store: Store, records: list[TrialRecord]) -> int:
    """Record them as a campaign does."""
    store.target_ids([Target("event", str(i)) for i in range(TARGETS)])
    number = store.add_campaign(CampaignRecord("bench", "coin", 1, SPACE))
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        failed = [t for t in batch if t.fault]
        faults = [
            FaultRecord(t.fault or "", "exit", "boom", "", t.trial, t.trial, 50, "[]")
            for t in failed[:5]
        ]
        store.record(number, batch, faults)
    return number


def fill_with_blocks(store: Store, blocks: list[PackedBlock]) -> None:
    """Record blocks as a campaign with local workers does."""
    number = store.add_campaign(CampaignRecord("bench", "coin", 1, SPACE))
    for block in blocks:
        store.record_blocks(number, [block])


def blocks_in_turns(
    stores: dict[str, Store], records: list[TrialRecord]
) -> dict[str, dict[str, float]]:
    """Write blocks into each store in turns; return medians of the rounds."""
    layout = BlockLayout(FEATURES, 1)
    parts = [records[start : start + BATCH] for start in range(0, len(records), BATCH)]
    blocks = [packed for part in parts for packed in pack_records(part, layout)]
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in stores}
    for _ in range(ROUNDS):
        for name, store in stores.items():
            cpu = time.process_time()
            wall = seconds(partial(fill_with_blocks, store, blocks))
            rounds[name].append((wall, time.process_time() - cpu))
    count = len(records)
    return {
        name: {
            "blocks_per_second": count / statistics.median(wall for wall, _ in found),
            "blocks_client_us": 1e6 * statistics.median(cpu for _, cpu in found) / count,
        }
        for name, found in rounds.items()
    } | {"ratio": {"blocks_vs_sqlite": _ratio(rounds)}}


def campaigns_in_turns(urls: dict[str, str], tests: int) -> dict[str, dict[str, float]]:
    """Run the same campaign with each store in turns; return medians of the rounds."""
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in urls}
    for _ in range(ROUNDS):
        for name, url in urls.items():
            cpu = time.process_time()
            outcome = Campaign(SUBJECT, "coin", tests, workers=1, store=url).run()
            spent = time.process_time() - cpu
            rounds[name].append((outcome.progress.wall_seconds, spent))
    return {
        name: {
            "campaign_per_second": tests / statistics.median(wall for wall, _ in found),
            "campaign_client_us": 1e6 * statistics.median(cpu for _, cpu in found) / tests,
        }
        for name, found in rounds.items()
    } | {"ratio": {"postgres_vs_sqlite": _ratio(rounds)}}


def _ratio(rounds: dict[str, list[tuple[float, float]]]) -> float:
    """Return the rate of PostgreSQL over that of SQLite, from walls of rounds in turns."""
    pairs = zip(rounds["sqlite"], rounds["postgres"], strict=True)
    return statistics.median(lite / team for (lite, _), (team, _) in pairs)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(store: Store, records: list[TrialRecord]) -> dict[str, float]:
    """Seconds for everything that is measured on one store."""
    numbers: list[int] = []
    writing = seconds(lambda: numbers.append(fill(store, records)))
    number = numbers[0]
    again = seconds(lambda: fill_again(store, number, records))
    reading = seconds(lambda: sum(1 for _ in store.trials(number)))
    assert store.summary(number)["trials"] == len(records)
    return {
        "write_per_second": len(records) / writing,
        "write_again_per_second": len(records) / again,
        "read_per_second": len(records) / reading,
        "summary_ms": 1e3 * seconds(lambda: store.summary(number)),
        "progress_ms": 1e3 * seconds(lambda: store.progress(number)),
        "newest_50_ms": 1e3
        * seconds(lambda: list(store.trials(number, newest_first=True, limit=50))),
    }


def fill_again(store: Store, number: int, records: list[TrialRecord]) -> None:
    """The same batches once more, as after a lost worker: nothing is to change."""
    for start in range(0, len(records), BATCH):
        store.record(number, records[start : start + BATCH])


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a store on a server of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    place = Path(tempfile.mkdtemp(prefix="pg"))
    place.chmod(0o755)
    server = pgserver.get_server(place / "data", cleanup_mode="stop")
    try:
        yield f"postgresql://postgres@/postgres?host={place / 'data'}"
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    count = 10_000 if arguments(__doc__ or "").quick else 200_000
    require_modules({"pgserver": "pgserver", "psycopg": "'swarmtest[postgres]'"})
    progress(f"{count:,} trials are made up")
    records = trials(count)
    with (
        tempfile.TemporaryDirectory() as directory,
        postgres() as url,
        open_store(Path(directory) / "store.db") as lite,
        open_store(url) as team,
    ):
        found = {}
        for name, store in (("sqlite", lite), ("postgres", team)):
            progress(f"{name}: writing and reading")
            found[name] = measured(store, records)
        progress("blocks, in turns")
        by_block = blocks_in_turns({"sqlite": lite, "postgres": team}, records)
        progress("campaigns, in turns")
        urls = {"sqlite": str(Path(directory) / "campaigns.db"), "postgres": url}
        campaigns = campaigns_in_turns(urls, count)
        for name in found:
            found[name] |= by_block[name] | campaigns[name]
        progress("copying SQLite to PostgreSQL")
        copying = seconds(lambda: copy_campaign(lite, team, 1))
    rows = [[name, *(f"{found[kind][name]:,.1f}" for kind in found)] for name in found["sqlite"]]
    print_table(["", *found], rows)
    print(f"\ncopy SQLite to PostgreSQL, with both hashes: {count / copying:,.0f} trials/s")
    figures = {
        f"{kind}_{name}": round(value, 1) for kind in found for name, value in found[kind].items()
    }
    ratios = {
        name: round(each, 2) for name, each in (by_block["ratio"] | campaigns["ratio"]).items()
    }
    print(f"campaign, PostgreSQL over SQLite: {ratios['postgres_vs_sqlite']} (goal 1)")
    print(f"only inserting blocks: {ratios['blocks_vs_sqlite']}")
    figures |= ratios
    print_figures({"trials": count, **figures, "copy_per_second": round(count / copying)})


if __name__ == "__main__":
    main()
