"""Airlines: sellers of tickets for one flight; one of them forgets the lock.

After the paper's first program: 150 seats, most sellers lock, and at the end as many tickets must
have been sold as there were seats.
"""

from __future__ import annotations

import threading

from threaded import run_threads

SEATS = 150


class Flight:
    """Seats of a flight."""

    def __init__(self, seats: int) -> None:
        self.left = seats
        self.lock = threading.Lock()
        self.sold = [0, 0, 0, 0]

    def seats_left(self) -> int:
        return self.left

    def leave(self, seats: int) -> None:
        self.left = seats


def sell_one(flight: Flight, seller: int) -> bool:
    left = flight.seats_left()
    if left <= 0:
        return False
    flight.leave(left - 1)
    flight.sold[seller] += 1
    return True


def careful(seller: int, flight: Flight) -> None:
    while True:
        with flight.lock:
            if not sell_one(flight, seller):
                return


def careless(flight: Flight) -> None:
    while sell_one(flight, 0):
        pass


def careful_1(flight: Flight) -> None:
    careful(1, flight)


def careful_2(flight: Flight) -> None:
    careful(2, flight)


def careful_3(flight: Flight) -> None:
    careful(3, flight)


WORKERS = [careful_1, careless, careful_2, careful_3]


def setup() -> Flight:
    return Flight(SEATS)


def holds(flight: Flight) -> bool:
    return sum(flight.sold) == SEATS


def program() -> None:
    """The whole program; it raises if something went wrong."""
    flight = setup()
    run_threads(flight, WORKERS)
    assert holds(flight), f"{sum(flight.sold)} tickets sold for {SEATS} seats"
