"""The suite of `odd.py`."""

from __future__ import annotations

import asyncio
import importlib

import odd
import pytest
from odd import Color, Item, Loud, Plugin, Point, add, fibonacci, replaced

CASES = odd.build(2)
HELD = add


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    assert case % 2 == 0


def test_constants():
    assert odd.NAMES == ["n0", "n1", "n2"]
    assert odd.TABLE[odd.LIMIT] == 6
    assert odd.fast_double is None
    assert odd.FIRST == 5


def test_generator():
    first = next(odd.IDS)
    assert next(odd.IDS) == first + 1


def test_decorated():
    assert HELD(1) == 3
    assert add(1, 3) == 4
    assert odd.REGISTRY["sum"](2, scale=3) == 12
    assert odd.CALLS[-1] == "sum"


def test_enum():
    assert Color.RED.other is Color.BLUE
    assert [color.value for color in Color] == [1, 2]


def test_dataclass():
    assert Item() < Item(6)
    assert Item().tags == [1, 2]
    with pytest.raises(ValueError, match="-1"):
        Item(-1)


def test_subclasses():
    assert Plugin.known["Loud"].rank == 8
    assert Loud().secret() == 6


def test_slots():
    assert Point().size == 2
    assert Point.origin().x == 0
    assert Point.norm(-1, 2) == 3


def test_cache():
    assert fibonacci(10) == 55


def test_lambdas_and_closures():
    assert odd.PAIR[0](5) == 3
    assert odd.counter()() == 11
    now = odd.COUNTER()
    assert odd.COUNTER(2) == now + 2


def test_async():
    assert asyncio.run(odd.answer()) == 42


def test_replaced():
    assert replaced(3) == 4


def test_threads():
    assert odd.in_threads(4) == [0, 1, 4, 9]


def test_module_getattr():
    assert odd.dynamic_abc == 3
    with pytest.raises(AttributeError):
        odd.nothing  # noqa: B018


def test_patched(monkeypatch):
    monkeypatch.setattr(odd, "build", lambda count: [])
    assert odd.build(3) == []


def test_reloaded():
    again = importlib.reload(odd)
    assert again.TABLE == [0, 2, 4, 6]
