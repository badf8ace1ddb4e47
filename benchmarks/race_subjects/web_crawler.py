"""WebCrawler: workers serve connections until the crawler shuts down, which is where the race is.

After the paper's second program: the method that is called when the crawler shuts down looks
whether a worker has a connection, notes that it will close it, and closes it. In between the worker
may have come to the end of its page and given its connection up. Most of what workers do is their
own affair.
"""

from __future__ import annotations

import threading
import time

from threaded import run_threads

TEXTS = ["the quick brown fox jumps over the lazy dog " * 2, "lorem ipsum dolor sit amet " * 3]
PAGES = 9
WRITTEN_AFTER = 9
"""Lines after which the log goes to disk."""


class Connection:
    """Where a page comes from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_open = True

    def read(self) -> str:
        time.sleep(0)  # the network: other threads may run
        return self.text

    def close(self) -> None:
        self.is_open = False


class Page:
    """What a worker reads; no other thread knows it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.counts: dict[str, int] = {}
        self.letters = 0

    def count(self, word: str) -> None:
        self.counts[word] = self.counts.get(word, 0) + 1
        self.letters += len(word)


class Crawler:
    """Its workers, and what they have to serve."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pending = [Connection(TEXTS[page % 2]) for page in range(PAGES)]
        self.served_by: list[Connection | None] = [None, None]
        self.is_down = False
        self.notes: list[str] = []
        self.first = threading.Event()

    def next_connection(self) -> Connection | None:
        with self.lock:
            if self.is_down or not self.pending:
                return None
            return self.pending.pop()

    def is_busy(self, worker: int) -> bool:
        return self.served_by[worker] is not None

    def note(self, line: str) -> None:
        with self.lock:
            self.notes.append(line)
            is_full = len(self.notes) == WRITTEN_AFTER
        if is_full:
            time.sleep(0)  # the disk

    def shut_down(self) -> None:
        with self.lock:
            self.is_down = True
        for worker in range(len(self.served_by)):
            if self.is_busy(worker):
                self.note("closing a connection")
                self.served_by[worker].close()  # type: ignore[union-attr]


def serve(crawler: Crawler, worker: int) -> None:
    while (connection := crawler.next_connection()) is not None:
        crawler.served_by[worker] = connection
        crawler.first.set()
        page = Page(connection.read())
        for word in page.text.split():
            page.count(word)
        crawler.note(f"{len(page.counts)} words")
        crawler.served_by[worker] = None


def serve_0(crawler: Crawler) -> None:
    serve(crawler, 0)


def serve_1(crawler: Crawler) -> None:
    serve(crawler, 1)


def shut_down(crawler: Crawler) -> None:
    crawler.first.wait()
    crawler.shut_down()


WORKERS = [shut_down, serve_0, serve_1]


def setup() -> Crawler:
    return Crawler()


def holds(crawler: Crawler) -> bool:
    return crawler.is_down


def program() -> None:
    """The whole program; it raises if something went wrong."""
    crawler = setup()
    run_threads(crawler, WORKERS)
    assert holds(crawler)
