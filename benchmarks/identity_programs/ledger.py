"""Accounts with transactions. Errors are wrapped in others, and checks share one helper."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "rollback forgets new accounts",
    "transfer to itself",
    "interest rounds twice",
    "close leaves the total",
    "commit twice",
    "statement of a closed account",
)
NAMES = ("ann", "bob", "cid", "dora")
WHO = integers(0, 3)


class LedgerError(Exception):
    """Something that the ledger cannot do."""


class Ledger:
    def __init__(self) -> None:
        self.balances: dict[str, int] = {}
        self.history: dict[str, list[int]] = {}
        self.total = 0
        self.saved: tuple[dict[str, int], int] | None = None

    def _balance(self, name: str) -> int:
        try:
            return self.balances[name]
        except KeyError as error:
            raise LedgerError(f"no account {name}") from error

    def open(self, name: str) -> None:
        if name in self.balances:
            raise LedgerError(f"{name} has an account")
        self.balances[name] = 0
        self.history[name] = []

    def pay_in(self, name: str, amount: int) -> None:
        self._balance(name)
        self.balances[name] += amount
        self.history[name].append(amount)
        self.total += amount

    def transfer(self, giver: str, taker: str, amount: int) -> None:
        have, other = self._balance(giver), self._balance(taker)
        if have < amount:
            raise LedgerError("not enough money")
        if giver == taker and not bug("transfer to itself"):
            return
        self.balances[giver] = have - amount
        self.balances[taker] = other + amount

    def close(self, name: str) -> int:
        left = self._balance(name)
        del self.balances[name]
        if bug("statement of a closed account"):
            del self.history[name]
        if not bug("close leaves the total") or left < 20:
            self.total -= left
        return left

    def add_interest(self) -> None:
        for name, balance in self.balances.items():
            more = balance // 10
            if bug("interest rounds twice") and balance % 10 == 9:
                more += 1
            self.balances[name] = balance + more
            self.total += balance // 10

    def begin(self) -> None:
        self.saved = (dict(self.balances), self.total)

    def commit(self) -> None:
        if bug("commit twice") and self.saved is not None:
            self.total += len(self.saved[0]) > 2
        self.saved = None

    def rollback(self) -> None:
        if self.saved is None:
            raise LedgerError("there is no transaction")
        balances, self.total = self.saved
        if bug("rollback forgets new accounts"):
            balances = balances | {n: 0 for n in self.balances if n not in balances}
        self.balances = balances
        self.saved = None

    def statement(self, name: str) -> list[int]:
        return list(self.history[name])


class LedgerMachine(Machine):
    steps = 25

    def start(self) -> None:
        self.ledger = Ledger()
        self.model: dict[str, int] = {}
        self.saved: dict[str, int] | None = None
        self.known: set[str] = set()

    def _same(self, found: object, wanted: object, what: str) -> None:
        if found != wanted:
            raise AssertionError(f"{what}: {found!r} != {wanted!r}")

    def _check(self) -> None:
        self._same(self.ledger.balances, self.model, "balances")
        self._same(self.ledger.total, sum(self.model.values()), "total")

    @action(who=WHO, raises=LedgerError)
    def open(self, who: int) -> None:
        self.ledger.open(NAMES[who])
        self.known.add(NAMES[who])
        self.model[NAMES[who]] = 0
        self._check()

    @action(who=WHO, amount=integers(1, 99), raises=LedgerError)
    def pay_in(self, who: int, amount: int) -> None:
        self.ledger.pay_in(NAMES[who], amount)
        self.model[NAMES[who]] += amount
        self._check()

    @action(giver=WHO, taker=WHO, amount=integers(1, 60), raises=LedgerError)
    def transfer(self, giver: int, taker: int, amount: int) -> None:
        self.ledger.transfer(NAMES[giver], NAMES[taker], amount)
        self.model[NAMES[giver]] -= amount
        self.model[NAMES[taker]] += amount
        self._check()

    @action(who=WHO, raises=LedgerError)
    def close(self, who: int) -> None:
        self._same(self.ledger.close(NAMES[who]), self.model.pop(NAMES[who], None), "pay-out")
        self._check()

    @action
    def add_interest(self) -> None:
        self.ledger.add_interest()
        self.model = {name: balance + balance // 10 for name, balance in self.model.items()}
        self._check()

    @action
    def begin(self) -> None:
        self.ledger.begin()
        self.saved = dict(self.model)

    @action
    def commit(self) -> None:
        self.ledger.commit()
        self.saved = None
        self._check()

    @action(raises=LedgerError)
    def rollback(self) -> None:
        self.ledger.rollback()
        assert self.saved is not None
        self.model, self.saved = self.saved, None
        self._check()

    @action(who=WHO, when=lambda self: self.known)
    def statement(self, who: int) -> None:
        name = sorted(self.known)[who % len(self.known)]
        assert isinstance(self.ledger.statement(name), list)
