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
`batches_vs_sqlite` is the same for nothing but inserting packed blocks, several in a transaction,
as a campaign does. `blocks_vs_sqlite` is for each block in a transaction of its own: PostgreSQL
waits for each until it is on the disk, which SQLite does not. What that costs without any code of
ours says `blocks_vs_copy`: the rate of the store over that of a bare binary COPY of the same bytes
into one table without an index, each block in a transaction of its own. These three are of wall
time, the least of the rounds for each transaction: what else the machine does adds to each wait for
a server. What does not depend on that is the CPU time of the process that writes, and of the server
(`blocks_client_us`, `blocks_server_us` for a trial, each block in a transaction of its own).
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

from harness import arguments, cpu_seconds_of, print_figures, print_table, progress, require_modules
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
BLOCKS_AT_ONCE = 20
"""Blocks of a transaction: what a campaign of 100,000 tests a second has after 0.2 s."""
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


def fill_with_blocks(store: Store, blocks: list[PackedBlock], at_once: int) -> list[float]:
    """Record blocks as a campaign with local workers does; return the time of each transaction."""
    number = store.add_campaign(CampaignRecord("bench", "coin", 1, SPACE))
    return [
        seconds(partial(store.record_blocks, number, blocks[start : start + at_once]))
        for start in range(0, len(blocks), at_once)
    ]


def copy_blocks(url: str, blocks: list[PackedBlock]) -> list[float]:
    """Send blocks to PostgreSQL with as little around them as possible; return the times."""
    import psycopg

    def send(block: PackedBlock) -> None:
        parts = (block.features, block.columns, block.targets, block.hits)
        with connection.cursor().copy("COPY bare FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", *["bytea"] * len(parts)])
            copy.write_row((block.totals.first, *parts))
        connection.commit()

    with psycopg.connect(url) as connection:
        names = ("features", "columns", "targets", "hits")
        connection.execute(
            f"CREATE TABLE bare (first int8, {', '.join(f'{n} bytea' for n in names)})"
        )
        for name in names:
            # They are compressed already; the tables of a store say the same.
            connection.execute(f"ALTER TABLE bare ALTER {name} SET STORAGE EXTERNAL")
        connection.commit()
        times = [seconds(partial(send, block)) for block in blocks]
        connection.execute("DROP TABLE bare")
    return times


def blocks_in_turns(
    stores: dict[str, Store], url: str, records: list[TrialRecord]
) -> dict[str, dict[str, float]]:
    """Write blocks into each store in turns; return the least times, and ratios."""
    layout = BlockLayout(FEATURES, 1)
    parts = [records[start : start + BATCH] for start in range(0, len(records), BATCH)]
    blocks = [packed for part in parts for packed in pack_records(part, layout)]
    # For each way and each of its transactions, the least time of the rounds.
    least: dict[str, list[float]] = {}
    client: dict[str, list[float]] = {name: [] for name in stores}
    server: dict[str, list[float]] = {name: [] for name in stores}
    backends = _backends(url)
    for number in range(ROUNDS):
        progress(f"blocks, round {number + 1} of {ROUNDS}")
        for name, store in stores.items():
            cpu, remote = time.process_time(), sum(map(cpu_seconds_of, backends))
            _keep_least(least, name, fill_with_blocks(store, blocks, 1))
            client[name].append(time.process_time() - cpu)
            server[name].append(sum(map(cpu_seconds_of, backends)) - remote)
            _keep_least(least, f"{name} batches", fill_with_blocks(store, blocks, BLOCKS_AT_ONCE))
        _keep_least(least, "copy", copy_blocks(url, blocks))
    taken = {name: sum(times) for name, times in least.items()}
    count = len(records)
    return {
        name: {
            "blocks_per_second": count / taken[name],
            "batches_per_second": count / taken[f"{name} batches"],
            "blocks_client_us": 1e6 * min(client[name]) / count,
            "blocks_server_us": 1e6 * min(server[name]) / count,
        }
        for name in stores
    } | {
        "ratio": {
            "batches_vs_sqlite": taken["sqlite batches"] / taken["postgres batches"],
            "blocks_vs_sqlite": taken["sqlite"] / taken["postgres"],
            "blocks_vs_copy": taken["copy"] / taken["postgres"],
        }
    }


def _backends(url: str) -> list[int]:
    """Return the processes of the server that work for the stores of this process."""
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'swarmtest'"
        )
        return [pid for (pid,) in rows]


def _keep_least(least: dict[str, list[float]], name: str, times: list[float]) -> None:
    least[name] = list(map(min, least.get(name, times), times))


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
        by_block = blocks_in_turns({"sqlite": lite, "postgres": team}, url, records)
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
    print(
        f"only inserting blocks, {BLOCKS_AT_ONCE} in a transaction: {ratios['batches_vs_sqlite']}"
    )
    print(f"each in a transaction of its own: {ratios['blocks_vs_sqlite']}")
    print(f"the same over a bare COPY into PostgreSQL: {ratios['blocks_vs_copy']}")
    figures |= ratios
    print_figures({"trials": count, **figures, "copy_per_second": round(count / copying)})


if __name__ == "__main__":
    main()
