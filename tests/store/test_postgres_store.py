"""PostgreSQL: connections that are lost, writers at the same time, what only a database can do."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgres_server import Server
from store_examples import CAMPAIGN, fault, finish, python, trial, trials

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import TestRecord

Opener = Callable[..., Store]

HANG_UP = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'swarmtest'
"""


@pytest.fixture
def url(server: Server) -> str:
    return server.emptied_url()


@pytest.fixture
def restartable(server: Server) -> Iterator[Server]:
    """The server, which runs again after the test whatever it did."""
    yield server
    server.stop()
    server.start()


class CutsTheLine(list[TestRecord]):
    """Tests of a batch; the server hangs up when they are first read, in mid-transaction."""

    def __init__(self, server: Server, tests: list[TestRecord]) -> None:
        super().__init__(tests)
        self.server: Server | None = server

    def __iter__(self) -> Iterator[TestRecord]:
        if self.server:
            self.server.execute(HANG_UP)
            self.server = None
        return super().__iter__()


class LossyLine:
    """A line to a server that loses the answer to a COMMIT, as networks do.

    It passes bytes on between clients and a server, on sockets in two directories.
    """

    def __init__(self, server: Path, here: Path) -> None:
        self.cuts = 0
        """How many answers to lose; counts down."""
        self._server = server / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(here / ".s.PGSQL.5432"))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._carry, args=(client,)))
            self._threads[-1].start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server))
            other = {client: server, server: client}
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is client and b"COMMIT" in data and self.cuts:
                        self.cuts -= 1
                        server.sendall(data)
                        server.recv(1 << 16)  # it is done, and nobody will hear of it
                        return
                    other[end].sendall(data)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=10)


@contextmanager
def lossy_line(server: Path, here: Path) -> Iterator[LossyLine]:
    """A line from sockets in `here` to the server with its socket in `server`."""
    line = LossyLine(server, here)
    try:
        yield line
    finally:
        line.close()


def test_a_connection_lost_between_batches_is_made_again(store: Store, server: Server) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 100))
    server.execute(HANG_UP)
    store.record(number, trials(100, 200))
    server.execute(HANG_UP)
    assert list(store.trials(number)) == trials(0, 200)


def test_a_connection_lost_in_the_middle_of_a_batch_costs_nothing(
    store: Store, server: Server
) -> None:
    number = store.add_campaign(CAMPAIGN)
    tests = CutsTheLine(server, [TestRecord(3, "[3]")])
    store.record(number, trials(0, 100), [fault("f", 5)], tests)
    assert tests.server is None
    assert list(store.trials(number)) == trials(0, 100)
    assert store.summary(number)["trials"] == 100
    assert (len(store.faults(number)), list(store.tests(number))) == (1, [TestRecord(3, "[3]")])


def test_reading_goes_on_after_a_lost_connection_without_a_gap(
    store: Store, server: Server
) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 2000))
    read = []
    for found in store.trials(number):
        read.append(found.trial)
        if found.trial == 700:
            server.execute(HANG_UP)
    assert read == list(range(2000))


def test_an_answer_to_a_commit_that_is_lost_counts_nothing_twice(
    server: Server, url: str, open_url: Opener
) -> None:
    target = Target("event", "full")
    with (
        tempfile.TemporaryDirectory() as here,
        lossy_line(server.directory, Path(here)) as line,
        open_store(url.replace(str(server.directory), here)) as store,
    ):
        line.cuts = 1
        number = store.add_campaign(CAMPAIGN)
        line.cuts = 1
        store.record(number, trials(0, 50), [fault("f", 5)])
        line.cuts = 1
        (id,) = store.target_ids([target])
        line.cuts = 1
        store.add_hits(number, {7: [id]})
        assert line.cuts == 0
    again = open_url(url)
    assert [record.id for record in again.campaigns()] == [number]
    assert again.summary(number)["trials"] == 50
    assert again.summary(number)["steps"] == sum(t.steps for t in trials(0, 50))
    assert again.targets() == {id: target}


def test_a_deletion_whose_answer_is_lost_is_done(server: Server, url: str) -> None:
    with (
        tempfile.TemporaryDirectory() as here,
        lossy_line(server.directory, Path(here)) as line,
        open_store(url.replace(str(server.directory), here)) as store,
    ):
        number = store.add_campaign(CAMPAIGN)
        line.cuts = 1
        store.delete_campaign(number)
        assert store.campaigns() == []


def test_a_server_that_restarts_is_waited_for(store: Store, restartable: Server) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 100))
    restartable.stop()
    starting = threading.Timer(0.5, restartable.start)
    starting.start()
    store.record(number, trials(100, 200))
    starting.join()
    assert list(store.trials(number)) == trials(0, 200)


def test_a_server_that_stays_away_is_reported_with_what_was_tried(
    restartable: Server, url: str, open_url: Opener
) -> None:
    store = open_url(url, timeout=0.3)
    number = store.add_campaign(CAMPAIGN)
    restartable.stop()
    with pytest.raises(UserError) as error:
        store.record(number, trials(0, 100))
    said = str(error.value)
    assert "the connection was lost, and" in said
    assert "attempts in" in said
    assert "`swarmtest resume` when the database is back" in said
    assert "\n" not in said


def test_a_server_that_stays_away_is_waited_for_once(
    restartable: Server, url: str, open_url: Opener
) -> None:
    """Who tidies up after the first error does not wait again, and goes on when it is back."""
    store = open_url(url, timeout=1.0)
    number = store.add_campaign(CAMPAIGN)
    restartable.stop()
    with pytest.raises(UserError) as first:
        store.record(number, trials(0, 100))
    with pytest.raises(UserError) as second:
        store.record(number, trials(0, 100))
    assert str(second.value) == str(first.value)  # it counts the tries, and for how long
    restartable.start()
    store.record(number, trials(0, 100))
    assert list(store.trials(number)) == trials(0, 100)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT as usual: importing dask_jobqueue, as other tests do, makes it end the process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_who_does_not_wait_for_a_server_is_not_made_to_wait_again(
    restartable: Server, url: str, open_url: Opener
) -> None:
    store = open_url(url, timeout=100.0)
    number = store.add_campaign(CAMPAIGN)
    restartable.stop()
    me = threading.get_ident()
    pressing = threading.Timer(0.3, signal.pthread_kill, (me, signal.SIGINT))
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        store.record(number, trials(0, 100))
    pressing.join()
    began = time.monotonic()
    with pytest.raises(UserError, match="the connection was lost"):
        store.record(number, trials(0, 100))
    assert time.monotonic() - began < 60


def test_a_writer_that_holds_a_lock_too_long_is_reported(
    store: Store, server: Server, url: str, open_url: Opener
) -> None:
    import psycopg

    number = store.add_campaign(CAMPAIGN)
    place = f"postgresql://postgres@/postgres?host={server.directory}"
    with psycopg.connect(place) as holder:
        holder.execute("LOCK TABLE shared.blocks IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UserError, match=r"is locked by another process \(waited 0.1 s\)"):
            open_url(url, timeout=0.1).record(number, trials(0, 10))


def test_nobody_records_into_a_campaign_that_is_being_deleted(
    store: Store, url: str, open_url: Opener
) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 10))
    open_url(url).delete_campaign(number)
    with pytest.raises(UserError, match="no campaign"):
        store.record(number, trials(10, 20))


def test_a_target_may_have_a_name_longer_than_an_index_takes(store: Store) -> None:
    long = Target("path", "".join(str(i) for i in range(4000)))
    assert store.target_ids([long]) == store.target_ids([long])


def test_text_with_a_nul_character_comes_back_as_it_was(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    said = "a\0b \u2400 \u24000 \u2400\u2400\0"
    store.record(
        number,
        [trial(0, origin=said, fault="f", verdict=1)],
        [fault("f", 0, test=said)._replace(details=said)],
        [TestRecord(0, said)],
    )
    assert store.trial(number, 0).origin == said
    assert (store.faults(number)[0].details, store.test(number, 0)) == (said, said)


def test_ids_of_targets_have_no_gaps_however_often_they_are_asked_for(store: Store) -> None:
    several = [Target("event", str(i)) for i in range(50)]
    for _ in range(3):
        store.target_ids(several)
    assert store.target_ids([*several, Target("event", "new")])[-1] == 51


def test_a_chunk_of_a_new_table_is_read_in_the_order_of_the_index(server: Server) -> None:
    from swarmtest.store.interface import PostgresAddress
    from swarmtest.store.postgres.connection import PostgresServer

    url = server.new_url()
    with open_store(url) as store:
        number = store.add_campaign(CAMPAIGN)
        store.record(number, [trial(n, hits=bytes(1500)) for n in range(15_000)])
    line = PostgresServer(PostgresAddress.parse(url), read_only=True, timeout=5)
    query = "SELECT * FROM blocks WHERE campaign = 1 AND first > 99 AND first < 9999 ORDER BY first"
    plan = str(line.rows(f"EXPLAIN {query} LIMIT 4"))
    line.close()
    assert "Index Scan using blocks_pkey" in plan
    assert "Sort" not in plan


def test_a_closed_store_does_not_connect_again(url: str) -> None:
    store = open_store(url)
    reading = store.trials(store.add_campaign(CAMPAIGN))
    store.close()
    with pytest.raises(ValueError, match="was closed"):
        next(reading)


ONE_OF_SEVERAL = """
import random, sys
from store_examples import fault, trial
from swarmtest.store import open_store
from swarmtest.core.targets import Target
url, name = sys.argv[1:]
dice = random.Random(name)
with open_store(url) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(12):
        numbers = dice.sample(range(400), 120)
        shown = [fault("fg"[n % 2], n, size=400 - n, test=f"[{n}]") for n in numbers if n % 3 == 0]
        store.record(1, [trial(n) for n in numbers], shown)
        store.target_ids([Target("event", str(n)) for n in numbers])
"""


def test_several_processes_can_record_the_same_campaign_at_once(store: Store, url: str) -> None:
    """All trials once, the totals right, of each fault the first trial and the shortest test."""
    assert store.add_campaign(CAMPAIGN) == 1
    writers = [python(ONE_OF_SEVERAL, url, name) for name in ("one", "two", "three")]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        finish(writer)
    recorded = list(store.trials(1))
    assert recorded == [trial(t.trial) for t in recorded]
    assert store.summary(1)["trials"] == len(recorded) > 390
    assert store.summary(1)["cpu_ns"] == sum(t.cpu_ns for t in recorded)
    found = {f.id: (f.first_trial, f.trial, f.test) for f in store.faults(1)}
    assert found == {"f": (0, 396, "[396]"), "g": (3, 399, "[399]")}
    assert sorted(store.targets()) == list(range(1, len(recorded) + 1))


def test_sqlite_needs_nothing_of_what_postgresql_needs() -> None:
    code = (
        "import sys; from swarmtest.store import open_store; open_store(':memory:').close(); "
        "print('psycopg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"
