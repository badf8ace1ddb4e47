"""Listeners of events: one takes itself off the list while another thread calls them all."""

from __future__ import annotations

from threaded import run_threads


class Bus:
    """Listeners, called in turn."""

    def __init__(self) -> None:
        self.listeners: list[str] = ["log", "mail", "shop"]
        self.called: list[str] = []

    def emit(self, event: str) -> None:
        for position in range(len(self.listeners)):
            listener = self.listeners[position]
            self.called.append(event + listener)

    def leave(self, listener: str) -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)


def emits(bus: Bus) -> None:
    for event in ("begin", "sell", "end"):
        event.title().center(20)
        bus.emit(event)


def leaves(bus: Bus) -> None:
    len(list("some work of its own"))
    bus.leave("mail")


WORKERS = [emits, leaves]


def setup() -> Bus:
    return Bus()


def holds(bus: Bus) -> bool:
    return len(bus.called) >= 6


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
