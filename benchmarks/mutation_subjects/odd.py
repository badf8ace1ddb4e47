"""A program that does much of what makes mutants hard to switch; `test_odd.py` tests it."""

from __future__ import annotations

import dataclasses
import enum
import functools
import threading

try:
    from no_such_module_anywhere import fast_double
except ImportError:
    fast_double = None

LIMIT = 3
NAMES = []
for number in range(3):
    NAMES.insert(len(NAMES), f"n{number}")


def build(count):
    return [2 * x for x in range(count)]


TABLE = build(4)


def numbers():
    n = 0
    while True:
        n += 1
        yield n


IDS = numbers()


def registered(kind):
    def register(function):
        REGISTRY[kind] = function

        @functools.wraps(function)
        def wrapper(*arguments):
            CALLS.append(kind)
            return function(*arguments) + 0

        return wrapper

    return register


REGISTRY = {}
CALLS = []


@registered("sum")
def add(a, b=2, *, scale=1):
    return (a + b) * scale


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def other(self):
        return Color(3 - self.value)


@dataclasses.dataclass(order=True)
class Item:
    price: int = 5
    name: str = "x"
    tags: list = dataclasses.field(default_factory=lambda: [1, 2])

    def __post_init__(self):
        if self.price < 0:
            raise ValueError(self.price)


class Plugin:
    known = {}
    level = 1

    def __init_subclass__(cls, rank=2, **rest):
        super().__init_subclass__(**rest)
        cls.rank = rank + cls.level
        Plugin.known[cls.__name__] = cls


class Loud(Plugin, rank=5):
    level = 3
    __secret = 7

    def secret(self):
        return self.__secret - 1


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x=1, y=2):
        self.x, self.y = x, y

    @classmethod
    def origin(cls):
        return cls(0, 0)

    @staticmethod
    def norm(x, y):
        return abs(x) + abs(y)

    @functools.cached_property
    def unused(self):
        return 9

    size = property(lambda self: self.x * self.y)


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


FIRST = fibonacci(5)
PAIR = (lambda x: x - 2, lambda x: x - 3)


def counter(start=10):
    count = start

    def up(step=1):
        nonlocal count
        count += step
        return count

    return up


COUNTER = counter()


async def answer():
    return 40 + 2


def replaced(x):
    return x - 1


_original = replaced


def replaced(x):
    return _original(x) * 2


def in_threads(count):
    found = []

    def work(x):
        found.append(x * x)

    threads = [threading.Thread(target=work, args=(x,)) for x in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def __getattr__(name):
    if name.startswith("dynamic_"):
        return len(name) - 8
    raise AttributeError(name)


def never_called():
    return 1 + 1
