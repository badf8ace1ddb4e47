"""Ready models: what a list, a dict, a file and others do, as tables of operations.

A model is an object of the standard library (or a few lines of Python) whose behaviour is known,
the operations that it has, and what is compared after each of them. `like = "dict"` tests a class
against `DICT`.
"""

from __future__ import annotations

import array
import bisect
import io
import queue
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.subjects.machine.generators import (
    Generator,
    binary,
    booleans,
    integers,
    just,
    lists,
    one_of,
    sampled_from,
)
from swarmtest.subjects.oracles.operations import Operation, operation_of

VALUES = one_of(integers(0, 4), integers(-3, 9))
"""Small numbers, of which some are drawn more often: equal values are what containers are about."""
_INDEX = one_of(integers(-2, 4), integers(-9, 12))
_BOUND = one_of(just(None), _INDEX)
_STEP = sampled_from([None, 1, 2, -1, -2, 3])


def _slices(rng: Any) -> slice:
    return slice(_BOUND.draw(rng), _BOUND.draw(rng), _STEP.draw(rng))


SLICES: Generator[slice] = Generator(_slices, immutable=True)


@dataclass(frozen=True)
class Model:
    """A known behaviour.

    >>> MODELS["dict"].operation("setitem").text(("a", 1))
    "o['a'] = 1"
    """

    name: str
    new: Callable[..., Any]
    """Creates an empty object that behaves like it; one of `expiring` takes a clock."""
    lines: str
    """The operations, one per line, as `operation_of` reads them."""
    states: Mapping[str, str]
    """What is compared after each operation, by name: code over the object."""
    values: Any = VALUES
    keys: Any = VALUES
    more: Mapping[str, Any] = field(default_factory=dict)
    """More letters that the operations use, and where their values come from."""
    same: str = "result exception_type"
    """What is compared besides the states."""

    def operations(self, values: Any = None, keys: Any = None) -> dict[str, Operation]:
        """Return the operations by name, with the user's values and keys in place of the usual."""
        value, key = values or self.values, keys or self.keys
        element = value if isinstance(value, Generator) else Generator(value)
        sources = {
            "x": value,
            "v": value,
            "k": key,
            "xs": lists(element, 6),
            "y": lists(element, 6),
            "d": _pairs(key, value),
            "s": SLICES,
            "i": _INDEX,
            "n": integers(0, 4),
            "b": booleans(),
            **self.more,
        }
        found = [operation_of(line, sources) for line in self.lines.splitlines() if line]
        return {operation.name: operation for operation in found}

    def operation(self, name: str) -> Operation:
        """Return one operation."""
        return self.operations()[name]


_SILENT = frozenset(
    [
        *("append", "appendleft", "insert", "extend", "extendleft", "extend_iterator", "fromlist"),
        *("add", "remove", "discard", "clear", "reverse", "sort", "sort_down", "put", "push"),
        *("update", "update_two", "update_pairs", "setitem", "delitem", "set", "delete"),
        *("iadd", "ior", "iand", "isub", "ixor", "imultiply", "set_slice", "delete_slice"),
        *("intersection_update", "difference_update", "symmetric_difference_update"),
        *("rotate", "rotate_one", "move_to_end", "move_to_start"),
    ]
)
"""Operations of all models that return nothing. A class may well return something instead."""
_OF_ONE_KIND = {
    "equal": True,
    "not_equal": False,
    "at_most": True,
    "at_least": True,
    "issubset": True,
    "issuperset": True,
}
"""Comparisons, and what they say of two empty objects. A class may know only its own kind."""


def is_silent(operation: str) -> bool:
    """Return whether a model's operation has no result that a class must have too.

    >>> is_silent("append"), is_silent("pop")
    (True, False)
    """
    return operation in _SILENT


def equal_when_empty(operation: str) -> bool | None:
    """Return what a comparison says of an empty object and the model's; None for others.

    >>> equal_when_empty("not_equal"), equal_when_empty("pop")
    (False, None)
    """
    return _OF_ONE_KIND.get(operation)


def _pairs(keys: Any, values: Any) -> Generator[dict[Any, Any]]:
    key, value = keys.draw, values.draw
    return Generator(lambda rng: {key(rng): value(rng) for _ in range(int(rng.random() * 5))})


_SEQUENCE = """
get: o[i]
index: o.index(x)
count: o.count(x)
contains: x in o
not_contains: x not in o
slice: list(o[s])
reversed: list(reversed(o))
length: len(o)
truth: bool(o)
"""
_MUTABLE_SEQUENCE = """
append: o.append(x)
insert: o.insert(i, x)
extend: o.extend(y)
extend_iterator: o.extend(iter(y))
iadd: o += y
pop: o.pop()
pop_at: o.pop(i)
remove: o.remove(x)
clear: o.clear()
reverse: o.reverse()
set: o[i] = x
delete: del o[i]
set_slice: o[s] = y
delete_slice: del o[s]
copy: list(o.copy())
add: list(o + y)
multiply: list(o * n)
imultiply: o *= n
sort: o.sort()
sort_down: o.sort(reverse=True)
equal: o == y
less: o < y
"""
_STATES = {"len": "len(o)", "list": "list(o)"}

LIST = Model("list", list, _SEQUENCE + _MUTABLE_SEQUENCE, _STATES)
TUPLE = Model("tuple", tuple, _SEQUENCE, _STATES)

DEQUE = Model(
    "deque",
    deque,
    """
append: o.append(x)
appendleft: o.appendleft(x)
pop: o.pop()
popleft: o.popleft()
extend: o.extend(y)
extendleft: o.extendleft(y)
rotate: o.rotate(i)
rotate_one: o.rotate()
remove: o.remove(x)
count: o.count(x)
index: o.index(x)
insert: o.insert(i, x)
reverse: o.reverse()
clear: o.clear()
get: o[i]
set: o[i] = x
delete: del o[i]
contains: x in o
reversed: list(reversed(o))
copy: list(o.copy())
iadd: o += y
length: len(o)
truth: bool(o)
""",
    _STATES,
)

_SET = """
add: o.add(x)
discard: o.discard(x)
remove: o.remove(x)
pop: o.pop() ~ o.remove(r) or r
clear: o.clear()
contains: x in o
update: o.update(y)
ior: o |= set(y)
iand: o &= set(y)
isub: o -= set(y)
ixor: o ^= set(y)
union: set(o.union(y))
intersection: set(o.intersection(y))
difference: set(o.difference(y))
symmetric_difference: set(o.symmetric_difference(y))
intersection_update: o.intersection_update(y)
difference_update: o.difference_update(y)
symmetric_difference_update: o.symmetric_difference_update(y)
update_two: o.update(y, [x])
bit_or: set(o | set(y))
bit_and: set(o & set(y))
minus: set(o - set(y))
bit_xor: set(o ^ set(y))
issubset: o.issubset(y)
issuperset: o.issuperset(y)
isdisjoint: o.isdisjoint(y)
less: o < set(y)
at_most: o <= set(y)
greater: o > set(y)
at_least: o >= set(y)
equal: o == set(y)
copy: set(o.copy())
length: len(o)
truth: bool(o)
"""
SET = Model("set", set, _SET, {"len": "len(o)", "set": "sorted(o, key=repr)"})

_DICT = """
setitem: o[k] = v
getitem: o[k]
delitem: del o[k]
contains: k in o
get: o.get(k)
get_default: o.get(k, v)
setdefault: o.setdefault(k, v)
pop: o.pop(k)
pop_default: o.pop(k, v)
update: o.update(d)
update_pairs: o.update(list(d.items()))
merged: dict(o | d)
ior: o |= d
clear: o.clear()
copy: dict(o.copy())
keys: sorted(o.keys(), key=repr)
values: sorted(o.values(), key=repr)
key_in_keys: k in o.keys()
value_in_values: v in o.values()
equal: o == d
not_equal: o != d
length: len(o)
truth: bool(o)
"""
DICT = Model(
    "dict",
    dict,
    _DICT + "popitem: o.popitem() ~ (r[0], o.pop(r[0]))\n",
    {"len": "len(o)", "items": "sorted(o.items(), key=repr)", "keys": "sorted(o, key=repr)"},
)
ORDERED_DICT = Model(
    "OrderedDict",
    OrderedDict,
    _DICT
    + """
popitem: o.popitem()
popitem_first: o.popitem(last=False)
move_to_end: o.move_to_end(k)
move_to_start: o.move_to_end(k, last=False)
reversed: list(reversed(o))
reversed_items: list(reversed(o.items()))
""",
    {"len": "len(o)", "items": "list(o.items())", "list": "list(o)", "values": "list(o.values())"},
)

_BYTE = one_of(integers(0, 4), integers(0, 255))
_BYTES = one_of(binary(4), binary(3, 1))
BYTEARRAY = Model(
    "bytearray",
    bytearray,
    _SEQUENCE
    + """
append: o.append(x)
insert: o.insert(i, x)
extend: o.extend(c)
iadd: o += c
pop: o.pop()
pop_at: o.pop(i)
remove: o.remove(x)
clear: o.clear()
reverse: o.reverse()
set: o[i] = x
delete: del o[i]
set_slice: o[s] = c
delete_slice: del o[s]
find: o.find(c)
rfind: o.rfind(c)
startswith: o.startswith(c)
endswith: o.endswith(c)
replace: bytes(o.replace(c, b'ab'))
split: list(map(bytes, o.split(c)))
strip: bytes(o.strip(c))
multiply: bytes(o * n)
add: bytes(o + c)
hex: o.hex()
copy: bytes(o.copy())
""",
    {"len": "len(o)", "bytes": "bytes(o)"},
    values=_BYTE,
    more={"c": _BYTES},
)
ARRAY = Model(
    "array",
    lambda: array.array("q"),
    _SEQUENCE
    + """
append: o.append(x)
insert: o.insert(i, x)
extend: o.extend(y)
fromlist: o.fromlist(y)
tolist: o.tolist()
pop: o.pop()
pop_at: o.pop(i)
remove: o.remove(x)
reverse: o.reverse()
set: o[i] = x
delete: del o[i]
delete_slice: del o[s]
tobytes: o.tobytes()
buffer_length: o.buffer_info()[1]
byteswap: o.byteswap()
""",
    _STATES,
)
QUEUE = Model(
    "queue",
    queue.Queue,
    """
put: o.put_nowait(x)
get: o.get_nowait()
empty: o.empty()
full: o.full()
size: o.qsize()
""",
    {"len": "o.qsize()"},
)


class Heap:
    """The model of a priority queue: the smallest value leaves first.

    >>> heap = Heap()
    >>> heap.push(3), heap.push(1), heap.pop(), len(heap)
    (None, None, 1, 1)
    """

    def __init__(self) -> None:
        self._sorted: list[Any] = []

    def push(self, value: Any) -> None:
        """Add a value."""
        bisect.insort(self._sorted, value)

    def pop(self) -> Any:
        """Remove and return the smallest value."""
        return self._sorted.pop(0)

    def peek(self) -> Any:
        """Return the smallest value."""
        return self._sorted[0]

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Any:
        return iter(self._sorted)


HEAP = Model(
    "heap",
    Heap,
    """
push: o.push(x)
pop: o.pop()
peek: o.peek()
length: len(o)
truth: bool(o)
""",
    {"len": "len(o)"},
)
FILE = Model(
    "file",
    io.BytesIO,
    """
write: o.write(c)
read: bytes(o.read())
read_some: bytes(o.read(n))
readline: bytes(o.readline())
readlines: list(map(bytes, o.readlines()))
readinto: (o.readinto(a := bytearray(n)), bytes(a))
writelines: o.writelines([c, c])
seek: o.seek(n)
seek_far: o.seek(n + 9)
seek_here: o.seek(0, 1)
seek_end: o.seek(0, 2)
tell: o.tell()
truncate: o.truncate()
truncate_at: o.truncate(n)
iterate: list(map(bytes, o))
flush: o.flush()
readable: o.readable()
writable: o.writable()
seekable: o.seekable()
closed: o.closed
""",
    {"tell": "(p := o.tell())", "contents": "(p := o.tell(), o.seek(0), o.read(), o.seek(p))[2]"},
    more={"c": one_of(sampled_from([b"", b"a", b"b\n", b"\n", b"a\r\nb", b"\x00\xff"]), binary(5))},
)


class Expiring(dict[Any, Any]):
    """The model of a mapping whose entries are gone some time after they were set.

    >>> now = [0]
    >>> entries = Expiring(lambda: now[0], 5)
    >>> entries["a"] = 1; now[0] = 4; "a" in entries
    True
    >>> now[0] = 5; "a" in entries
    False
    """

    def __init__(self, clock: Callable[[], float], ttl: float) -> None:
        super().__init__()
        self._clock, self._ttl = clock, ttl
        self._set_at: dict[Any, float] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        self._expire()
        super().__setitem__(key, value)
        self._set_at[key] = self._clock()

    def _expire(self) -> None:
        now = self._clock()
        for key, since in list(self._set_at.items()):
            if now - since >= self._ttl:
                del self._set_at[key]
                super().pop(key, None)


def _after_expiry(name: str) -> Callable[..., Any]:
    plain = getattr(dict, name)

    def method(self: Expiring, *arguments: Any) -> Any:
        self._expire()
        return plain(self, *arguments)

    method.__name__ = name
    return method


for _name in ("__getitem__", "__delitem__", "__contains__", "__len__", "__iter__", "get", "pop"):
    setattr(Expiring, _name, _after_expiry(_name))
for _name in ("keys", "values", "items", "clear", "__eq__", "__ne__"):
    setattr(Expiring, _name, _after_expiry(_name))

EXPIRING = Model(
    "expiring",
    Expiring,
    """
setitem: o[k] = v
getitem: o[k]
delitem: del o[k]
contains: k in o
get: o.get(k)
get_default: o.get(k, v)
pop: o.pop(k)
pop_default: o.pop(k, v)
length: len(o)
keys: sorted(o.keys(), key=repr)
clear: o.clear()
""",
    {"len": "len(o)", "items": "sorted(((a, o.get(a)) for a in list(o)), key=repr)"},
)

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        *(LIST, TUPLE, DEQUE, SET, DICT, ORDERED_DICT, BYTEARRAY, ARRAY),
        *(QUEUE, HEAP, FILE, EXPIRING),
    )
}
"""The ready models by name."""
_OF_CLASS: dict[Any, Model] = {
    list: LIST,
    tuple: TUPLE,
    deque: DEQUE,
    set: SET,
    dict: DICT,
    OrderedDict: ORDERED_DICT,
    bytearray: BYTEARRAY,
    array.array: ARRAY,
    queue.Queue: QUEUE,
    io.BytesIO: FILE,
}


def model_of(like: Any) -> Model | None:
    """Return the ready model that a user names, or that a class has; None for other classes.

    >>> model_of(dict).name, model_of("heap").name, model_of(int)
    ('dict', 'heap', None)
    """
    if isinstance(like, str):
        if like not in MODELS:
            raise UserError(f"no model {like!r}{did_you_mean(like, list(MODELS))}")
        return MODELS[like]
    try:
        return _OF_CLASS.get(like)
    except TypeError:
        return None
