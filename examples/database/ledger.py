"""Accounts in SQLite, and a machine that moves money between them."""

import sqlite3

from swarmtest import Machine, action, integers, invariant


class Ledger:
    """The program under test: no money may appear or disappear."""

    def __init__(self):
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)")

    def open(self, account):
        self.database.execute("INSERT OR IGNORE INTO accounts VALUES (?, 0)", (account,))

    def balance(self, account):
        query = "SELECT balance FROM accounts WHERE id = ?"
        row = self.database.execute(query, (account,)).fetchone()
        return None if row is None else row[0]

    def deposit(self, account, amount):
        change = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
        return self.database.execute(change, (amount, account)).rowcount

    def transfer(self, source, target, amount):
        if (self.balance(source) or 0) < amount:
            return False
        self.deposit(source, -amount)
        self.deposit(target, amount)  # the bug: there may be no such account
        return True

    def close(self, account):
        self.database.execute("DELETE FROM accounts WHERE id = ? AND balance = 0", (account,))

    def total(self):
        return self.database.execute("SELECT coalesce(sum(balance), 0) FROM accounts").fetchone()[0]


accounts = integers(1, 4)
amounts = integers(1, 100)


class LedgerMachine(Machine):
    steps = 30

    def start(self):
        self.ledger = Ledger()
        self.deposited = 0

    def stop(self):
        self.ledger.database.close()

    @action(account=accounts)
    def open(self, account):
        self.ledger.open(account)

    @action(account=accounts, amount=amounts)
    def deposit(self, account, amount):
        self.deposited += amount * self.ledger.deposit(account, amount)

    @action(source=accounts, target=accounts, amount=amounts)
    def transfer(self, source, target, amount):
        self.ledger.transfer(source, target, amount)

    @action(account=accounts)
    def close(self, account):
        self.ledger.close(account)

    @invariant
    def money_is_neither_lost_nor_made(self):
        assert self.ledger.total() == self.deposited
