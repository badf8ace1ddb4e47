"""AB-BA: two transfers in opposite directions, each of which locks where it takes from first."""

from __future__ import annotations

import threading

from threaded import run_threads


class Account:
    """Money, and a lock for it."""

    def __init__(self, money: int) -> None:
        self.money = money
        self.lock = threading.Lock()

    def covers(self, money: int) -> bool:
        return self.money >= money


class Bank:
    """Two accounts."""

    def __init__(self) -> None:
        self.left = Account(100)
        self.right = Account(100)


def transfer(source: Account, target: Account, money: int) -> None:
    with source.lock:
        if not source.covers(money):
            return
        with target.lock:
            source.money -= money
            target.money += money


def to_the_right(bank: Bank) -> None:
    transfer(bank.left, bank.right, 10)


def to_the_left(bank: Bank) -> None:
    transfer(bank.right, bank.left, 20)


WORKERS = [to_the_right, to_the_left]


def setup() -> Bank:
    return Bank()


def holds(bank: Bank) -> bool:
    return bank.left.money + bank.right.money == 200


def program() -> None:
    """The whole program; it raises or hangs if something went wrong."""
    bank = setup()
    run_threads(bank, WORKERS)
    assert holds(bank)
