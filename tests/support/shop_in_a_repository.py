"""A small shop with a machine, in a git repository: what most tests of `focus` point at."""

from __future__ import annotations

from git_repository import Repository

CART = """
class Cart:
    def __init__(self):
        self.items = {}
        self.coupon = None

    def add(self, name, price):
        self.items[name] = self.items.get(name, 0) + price

    def remove(self, name):
        if name in self.items:
            del self.items[name]

    def use(self, coupon):
        self.coupon = coupon

    def total(self):
        total = sum(self.items.values())
        if self.coupon == "ten" and len(self.items) > 2:
            total -= 10
        return total

    def clear(self):
        self.items.clear()
        self.coupon = None
"""
MACHINE = """
from swarmtest import Machine, action, integers, sampled_from
from shop.cart import Cart


class CartMachine(Machine):
    steps = 30

    def start(self):
        self.cart = Cart()

    @action(name=sampled_from("abcdefgh"), price=integers(1, 9))
    def add(self, name, price):
        self.cart.add(name, price)

    @action(name=sampled_from("abcdefgh"))
    def remove(self, name):
        self.cart.remove(name)

    @action(coupon=sampled_from(["ten", "none"]))
    def use(self, coupon):
        self.cart.use(coupon)

    @action
    def total(self):
        self.cart.total()

    @action
    def clear(self):
        self.cart.clear()
"""
WITH_REBATE = CART.replace(
    """            total -= 10
        return total
""",
    """            total -= self.rebate(total)
        return total

    def rebate(self, total):
        if total > 30:
            assert total < 45, "too much"
            return 20
        return 10
""",
)
"""The coupon calls a new method, which fails for large totals."""


def open_shop(repository: Repository) -> Repository:
    """The shop, committed."""
    repository.write("shop/__init__.py", "")
    repository.write("shop/cart.py", CART)
    repository.write("machine.py", MACHINE)
    repository.write(".gitignore", ".swarmtest/\n__pycache__/\n")
    repository.commit("a shop")
    return repository
