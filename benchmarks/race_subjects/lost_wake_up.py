"""Lost wake-up: a taker looks into a mailbox, then waits; the letter may come in between."""

from __future__ import annotations

import threading

from threaded import run_threads


class Mailbox:
    """One letter at a time."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.arrived = threading.Condition()
        self.taken = ""

    def is_empty(self) -> bool:
        return not self.letters

    def put(self, letter: str) -> None:
        with self.arrived:
            self.letters.append(letter)
            self.arrived.notify()

    def take(self) -> str:
        if self.is_empty():  # looked at without the lock
            with self.arrived:
                self.arrived.wait()
        return self.letters.pop()


def taker(mailbox: Mailbox) -> None:
    mailbox.taken = mailbox.take()


def giver(mailbox: Mailbox) -> None:
    mailbox.put("a letter")


WORKERS = [taker, giver]


def setup() -> Mailbox:
    return Mailbox()


def holds(mailbox: Mailbox) -> bool:
    return mailbox.taken == "a letter"


def program() -> None:
    """The whole program; it raises or hangs if something went wrong."""
    mailbox = setup()
    run_threads(mailbox, WORKERS)
    assert holds(mailbox)
