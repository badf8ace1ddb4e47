"""Bank: a transfer looks at the balance before it takes the lock.

Two transfers may both see enough money, so an account falls below zero.
"""

from __future__ import annotations

import threading

from threaded import run_threads


class Account:
    """Money, and what was done with it."""

    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.lines: list[str] = []


class Bank:
    """Some accounts under one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts = {name: Account(40) for name in ("a", "b", "c")}


def transfer(bank: Bank, source: str, target: str, amount: int) -> None:
    giver = bank.accounts[source]
    if giver.balance < amount:
        return
    line = " ".join(str(part) for part in (source, target, amount))
    with bank.lock:
        giver.balance -= amount
        bank.accounts[target].balance += amount
        giver.lines.append(line)


def pays(bank: Bank) -> None:
    for amount in (5, 10, 20):
        transfer(bank, "a", "b", amount)


def pays_too(bank: Bank) -> None:
    for amount in (5, 7, 9, 11):
        transfer(bank, "a", "c", amount)


def checks(bank: Bank) -> None:
    for _ in range(6):
        with bank.lock:
            sum(account.balance for account in bank.accounts.values())


WORKERS = [pays, pays_too, checks]


def setup() -> Bank:
    return Bank()


def holds(bank: Bank) -> bool:
    return all(account.balance >= 0 for account in bank.accounts.values())


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
