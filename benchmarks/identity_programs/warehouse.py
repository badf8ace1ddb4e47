"""A warehouse with reservations, deliveries and returns; it refuses what it cannot do."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "cancelling twice",
    "shipping a part",
    "recount ignores reserved goods",
    "returned goods are blocked",
    "transfer to itself",
    "dropping an item with orders",
)
ITEMS = integers(0, 2)
COUNTS = integers(1, 5)


class Refused(Exception):
    """The warehouse cannot do this."""


class Warehouse:
    def __init__(self) -> None:
        self.stock: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.orders: dict[int, tuple[str, int]] = {}
        self.number = 0

    def available(self, item: str) -> int:
        return self.stock.get(item, 0) - self.reserved.get(item, 0)

    def deliver(self, item: str, count: int) -> None:
        self.stock[item] = self.stock.get(item, 0) + count

    def order(self, item: str, count: int) -> int:
        if count > self.available(item):
            raise Refused(f"only {self.available(item)} of {item}")
        self.reserved[item] = self.reserved.get(item, 0) + count
        self.number += 1
        self.orders[self.number] = item, count
        return self.number

    def cancel(self, number: int) -> None:
        item, count = self.orders[number]
        if not (bug("cancelling twice") and count == 2):
            del self.orders[number]
        self.reserved[item] -= count

    def ship(self, number: int, most: int) -> int:
        item, count = self.orders.pop(number)
        shipped = min(count, most)
        self.stock[item] -= shipped
        self.reserved[item] -= shipped
        if shipped < count:
            if bug("shipping a part"):
                self.reserved[item] -= count - shipped
            self.orders[number] = item, count - shipped
        return shipped

    def give_back(self, item: str, count: int) -> None:
        self.deliver(item, count)
        if bug("returned goods are blocked") and count > 3:
            self.reserved[item] = self.reserved.get(item, 0) + 1

    def recount(self, item: str, count: int) -> int:
        """Set the stock to what was counted, but not below what is reserved."""
        least = 0 if bug("recount ignores reserved goods") else self.reserved.get(item, 0)
        self.stock[item] = max(count, least)
        if self.available(item) < 0:
            raise ArithmeticError(f"{item}: {-self.available(item)} too few")
        return self.stock[item]

    def transfer(self, item: str, other: str, count: int) -> None:
        """Relabel goods."""
        if count > self.available(item):
            raise Refused(f"only {self.available(item)} of {item}")
        before = self.stock.get(other, 0)
        self.stock[item] = self.stock.get(item, 0) - count
        if not bug("transfer to itself"):
            before = self.stock.get(other, 0)
        self.stock[other] = before + count

    def drop(self, item: str) -> int:
        """Give up an item that nobody has ordered."""
        if self.reserved.get(item) and not bug("dropping an item with orders"):
            raise Refused(f"{item} is reserved")
        return self.stock.pop(item, 0)


class WarehouseMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.house = Warehouse()
        self.stock: dict[str, int] = {}
        self.orders: dict[int, tuple[str, int]] = {}

    def _reserved(self, item: str) -> int:
        return sum(count for name, count in self.orders.values() if name == item)

    def _order(self, index: int) -> int:
        return sorted(self.orders)[index % len(self.orders)]

    @action(item=ITEMS, count=COUNTS)
    def deliver(self, item: int, count: int) -> None:
        self.house.deliver(f"item {item}", count)
        self.stock[f"item {item}"] = self.stock.get(f"item {item}", 0) + count

    @action(item=ITEMS, count=COUNTS, raises=Refused)
    def order(self, item: int, count: int) -> None:
        name = f"item {item}"
        wanted = self.stock.get(name, 0) - self._reserved(name) >= count
        number = self.house.order(name, count)
        assert wanted, f"order {number} should have been refused"
        self.orders[number] = name, count

    @action(index=ITEMS, when=lambda self: self.orders)
    def cancel(self, index: int) -> None:
        number = self._order(index)
        self.house.cancel(number)
        del self.orders[number]

    @action(index=ITEMS, most=COUNTS, when=lambda self: self.orders)
    def ship(self, index: int, most: int) -> None:
        number = self._order(index)
        item, count = self.orders.pop(number)
        shipped = self.house.ship(number, most)
        assert shipped == min(count, most)
        self.stock[item] -= shipped
        if shipped < count:
            self.orders[number] = item, count - shipped

    @action(item=ITEMS, count=COUNTS)
    def give_back(self, item: int, count: int) -> None:
        self.house.give_back(f"item {item}", count)
        self.stock[f"item {item}"] = self.stock.get(f"item {item}", 0) + count

    @action(item=ITEMS, count=COUNTS)
    def recount(self, item: int, count: int) -> None:
        name = f"item {item}"
        self.stock[name] = self.house.recount(name, count)
        assert self.stock[name] == max(count, self._reserved(name))

    @action(item=ITEMS, other=ITEMS, count=COUNTS, raises=Refused)
    def transfer(self, item: int, other: int, count: int) -> None:
        name, new = f"item {item}", f"item {other}"
        self.house.transfer(name, new, count)
        self.stock[name] -= count
        self.stock[new] = self.stock.get(new, 0) + count

    @action(item=ITEMS, raises=Refused)
    def drop(self, item: int) -> None:
        name = f"item {item}"
        assert self.house.drop(name) == self.stock.get(name, 0)
        self.stock.pop(name, None)

    @invariant
    def has_the_goods(self) -> None:
        assert {k: v for k, v in self.house.stock.items() if v} == {
            k: v for k, v in self.stock.items() if v
        }

    @invariant
    def has_the_orders(self) -> None:
        assert self.house.orders == self.orders

    @invariant
    def reserves_what_is_ordered(self) -> None:
        for item, count in self.house.reserved.items():
            assert count == self._reserved(item), f"{item}: {count} reserved"
