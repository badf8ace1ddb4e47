"""Arguments of tests as data: what is saved comes back, and reading runs nothing."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math
import operator
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest import UserError
from swarmtest.core.trust import trust
from swarmtest.subjects.machine.values import from_json, to_json


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: Any = None


@dataclass
class Order:
    name: str
    lines: list[Any] = field(default_factory=list)
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = len(self.lines)


@dataclass(frozen=True, slots=True)
class Place:
    row: int


class Plain:
    """Neither of what is saved by name."""


def double(x: int) -> int:
    return 2 * x


def _name(value: Any) -> str:
    """Return a name without an address, which would differ between the processes of pytest."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


VALUES = [
    slice(None, None, -1),
    range(3, 30, 9),
    complex(1, -0.0),
    ...,
    bytearray(b"\x00a"),
    decimal.Decimal("1.50"),
    decimal.Decimal("-Infinity"),
    fractions.Fraction(-3, 7),
    uuid.UUID(int=7),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 10, 27, 2, 30, fold=1),
    datetime.datetime(2024, 1, 1, 1, 1, 1, 5),
    datetime.time(1, 2, 3, tzinfo=datetime.UTC),
    datetime.timedelta(-1, 5, 7),
    datetime.timezone(datetime.timedelta(hours=2), "CEST"),
    collections.deque([1, (2,)], maxlen=4),
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.Counter("abca"),
    collections.defaultdict(list, {1: [2]}),
    re.compile(r"a+(b)", re.IGNORECASE),
    pathlib.PurePosixPath("/a/b"),
    pathlib.Path("x"),
    Colour.GREEN,
    Access.READ | Access.WRITE,
    Point(1, Point(2)),
    Order("a", [Place(3), {Colour.RED: ()}]),
    Place,
    double,
    len,
    operator.add,
    math.sqrt,
    numpy.float32(1.5),
    numpy.int64(-3),
    numpy.bool_(True),
    {"$ref": 1},
    {"$tuple": {"$set": [1]}},
    {(1, 2): frozenset({3})},
    float("inf"),
]


@pytest.mark.parametrize("value", VALUES, ids=_name)
def test_a_value_comes_back_from_json(value: Any) -> None:
    again = from_json(json.loads(json.dumps(to_json(value))))
    assert again == value
    assert type(again) is type(value)
    assert repr(again) == repr(value)


@pytest.mark.skipif(not zoneinfo.available_timezones(), reason="needs time zones: tzdata")
def test_a_time_in_a_zone_comes_back() -> None:
    zone = zoneinfo.ZoneInfo("Europe/Prague")
    value = datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zone)
    again = from_json(json.loads(json.dumps(to_json(value))))
    assert (again, again.fold, again.tzinfo) == (value, 1, zone)


def test_an_array_comes_back_with_its_type_and_shape() -> None:
    array = numpy.arange(6, dtype="int16").reshape(2, 3)
    again = from_json(json.loads(json.dumps(to_json(array))))
    assert again.dtype == array.dtype
    assert (again == array).all()


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Order, st.text(), st.lists(inner))
    ),
)


@given(plain_values)
def test_nested_values_come_back(value: Any) -> None:
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize(
    "value",
    [
        Plain(),
        [1, Plain()],
        iter(()),
        lambda: 3,
        sys,
        types.SimpleNamespace(a=1),
        numpy.zeros(5000),
        numpy.array([Plain()]),
        type("Local", (), {}),
        open,
        eval,
    ],
    ids=_name,
)
def test_what_has_no_form_is_lost_as_a_whole(value: Any) -> None:
    assert list(to_json(value)) == ["$lost"]


def test_a_value_that_contains_itself_is_lost() -> None:
    value: list[Any] = []
    value.append(value)
    assert to_json(value) == {"$lost": "[[...]]"}


def test_a_dataclass_with_more_than_its_fields_is_lost() -> None:
    order = Order("a")
    order.extra = 1  # type: ignore[attr-defined]
    assert list(to_json(order)) == ["$lost"]


HERE = __name__


@pytest.mark.parametrize(
    "data",
    [
        {"$name": "os:system"},
        {"$name": "builtins:eval"},
        {"$name": "builtins:__import__"},
        {"$name": "operator:methodcaller"},
        {"$name": "subprocess:Popen"},
        {"$name": "antigravity:fly"},
        {"$name": f"{HERE}:sys"},
        {"$name": f"{HERE}:Order.__init__.__globals__"},
        {"$enum": "os:system", "name": "x"},
        {"$enum": f"{HERE}:Colour", "name": "__class__"},
        {"$dataclass": f"{HERE}:Plain", "fields": {}},
        {"$dataclass": f"{HERE}:Order", "fields": {"__class__": 3}},
        {"$namedtuple": f"{HERE}:Point", "items": [1]},
        {"$namedtuple": "builtins:tuple", "items": [1]},
        {"$path": ["str", "x"]},
        {"$array": "O", "shape": [1], "items": [1]},
        {"$range": [1, 2, 0]},
        {"$decimal": "one"},
        {"$datetime": 3},
        {"$unknown": 1},
        {"$zone": "../../etc/passwd"},
    ],
    ids=str,
)
def test_hostile_or_broken_data_is_refused_in_one_line(data: Any) -> None:
    loaded = set(sys.modules)
    with pytest.raises(UserError) as refused:
        from_json(data)
    assert "\n" not in str(refused.value)
    assert "antigravity" not in set(sys.modules) - loaded


PAYLOAD = "gASVIQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAZ0b3VjaHh4lIWUUpQu"


def test_a_pickle_of_an_earlier_version_is_not_read() -> None:
    with pytest.raises(UserError, match="--trust"):
        from_json({"$pickle": PAYLOAD, "repr": "<Cart>"})


def test_a_pickle_is_read_if_the_user_trusts_the_store() -> None:
    import base64
    import pickle

    data = {"$pickle": base64.b64encode(pickle.dumps(Point(1, 2))).decode(), "repr": "Point(1, 2)"}
    trust()
    try:
        assert from_json(data) == Point(1, 2)
    finally:
        trust(False)
