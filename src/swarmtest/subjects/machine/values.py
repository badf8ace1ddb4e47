"""Arguments of tests as JSON data, and back.

What JSON lacks has a tag such as ``$tuple``. The set of tags is closed: reading data never imports
a module, calls a function that the data names, or unpickles anything. Three groups of values are
saved:

- values of the standard library that programs pass around: bytes, containers, slices, ranges,
  dates, decimals, fractions, paths and the like; and numpy's scalars and small arrays;
- enum members, dataclasses, named tuples, classes and functions, by name and fields. A name is
  looked up in the modules that are already loaded. So it is found where the user's own subject was
  loaded to run the test, and nowhere else;
- nothing else. Any other value is drawn again when the test runs (see `redraw`).

Earlier versions saved other values as pickles. Those are read only with ``--trust``.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import re
import sys
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.core.trust import is_trusted

_LARGEST_ARRAY = 1000
"""Elements of a numpy array that is saved; a larger one is drawn again."""
_PURE_MODULES = frozenset({"builtins", "operator", "math", "collections", "datetime", "decimal"})
"""Modules of the standard library whose functions may be named in a saved test."""
_DANGEROUS = frozenset(
    {
        *("breakpoint", "compile", "eval", "exec", "exit", "input", "open", "quit", "__import__"),
        *("delattr", "getattr", "setattr", "globals", "locals", "vars", "help", "print"),
        *("attrgetter", "itemgetter", "methodcaller", "memoryview"),
    }
)
_PUBLIC = {"_operator": "operator", "_collections": "collections"}
"""Modules under whose public name their functions are imported."""
_PLAIN_ARRAYS = "biufcSU"
"""The kinds of numpy's types whose values are numbers or text."""
_PATHS: dict[str, type[pathlib.PurePath]] = {
    cls.__name__: cls for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath)
}
_PATHS |= {type(pathlib.Path()).__name__: type(pathlib.Path())}


class Ref(NamedTuple):
    """A value that an earlier step of the same test made, referred to by that step's label.

    >>> Ref(3)
    Ref(label=3)
    """

    label: int


class NotSaved(Exception):
    """A value has no form in a saved test."""


# From a value to data.


def to_json(value: Any) -> Any:
    """Return a value as JSON data; ``{"$lost": repr(value)}`` if it has no form.

    >>> to_json((1, b"a"))
    {'$tuple': [1, {'$bytes': 'YQ=='}]}
    >>> to_json(slice(None, None, -1))
    {'$slice': [None, None, -1]}
    >>> to_json([object])
    [{'$name': 'builtins:object'}]
    >>> str(to_json([1, iter(())]))[:28]
    "{'$lost': '[1, <tuple_iterat"
    """
    try:
        return encode(value)
    except (NotSaved, RecursionError):
        return {"$lost": text_of(value)}


def text_of(value: Any) -> str:
    """Return the `repr` of a value, or its type if that raises."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__qualname__}>"


def encode(value: Any) -> Any:
    """Return a value as JSON data; raise `NotSaved` if it, or a part of it, has no form."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        # JSON has no infinity and no NaN, the values for which the difference is not 0.
        return value if value - value == 0 else {"$float": repr(value)}
    if kind is list:
        return [encode(item) for item in value]
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$dict": _pairs(value)}
    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value)
    return _encode_by_name(value, kind)


def _pairs(value: dict[Any, Any]) -> list[list[Any]]:
    return [[encode(key), encode(item)] for key, item in value.items()]


def _items(tag: str, ordered: bool = True) -> Callable[[Any], Any]:
    def encoder(value: Any) -> Any:
        items = value if ordered else sorted(value, key=repr)
        return {tag: [encode(item) for item in items]}

    return encoder


def _text(tag: str, write: Callable[[Any], str] = str) -> Callable[[Any], Any]:
    return lambda value: {tag: write(value)}


def _base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


def _encode_datetime(value: datetime.datetime | datetime.time) -> Any:
    tag = "$datetime" if isinstance(value, datetime.datetime) else "$time"
    zone = value.tzinfo
    data: dict[str, Any] = {tag: value.replace(tzinfo=None, fold=0).isoformat()}
    if zone is not None:
        data["zone"] = encode(zone)
    if value.fold:
        data["fold"] = value.fold
    return data


def _encode_timezone(value: datetime.timezone) -> Any:
    delta = value.utcoffset(None)
    name = value.tzname(None)
    named = {"name": name} if name != datetime.timezone(delta).tzname(None) else {}
    return {"$timezone": encode(delta), **named}


def _encode_defaultdict(value: defaultdict[Any, Any]) -> Any:
    return {"$defaultdict": _pairs(value), "factory": encode(value.default_factory)}


def _encode_pattern(value: re.Pattern[Any]) -> Any:
    return {"$pattern": encode(value.pattern), "flags": value.flags}


def _encode_zone(value: Any) -> Any:
    if not value.key:
        raise NotSaved
    return {"$zone": value.key}


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    Ref: lambda value: {"$ref": value.label},
    bytes: _text("$bytes", _base64),
    bytearray: _text("$bytearray", _base64),
    tuple: _items("$tuple"),
    set: _items("$set", ordered=False),
    frozenset: _items("$frozenset", ordered=False),
    slice: lambda value: {"$slice": [encode(x) for x in (value.start, value.stop, value.step)]},
    range: lambda value: {"$range": [value.start, value.stop, value.step]},
    complex: lambda value: {"$complex": [encode(value.real), encode(value.imag)]},
    type(Ellipsis): lambda value: {"$ellipsis": None},
    decimal.Decimal: _text("$decimal"),
    fractions.Fraction: _text("$fraction"),
    uuid.UUID: _text("$uuid"),
    datetime.date: _text("$date", datetime.date.isoformat),
    datetime.datetime: _encode_datetime,
    datetime.time: _encode_datetime,
    datetime.timedelta: lambda value: {
        "$timedelta": [value.days, value.seconds, value.microseconds]
    },
    datetime.timezone: _encode_timezone,
    deque: lambda value: {"$deque": [encode(item) for item in value], "maxlen": value.maxlen},
    OrderedDict: lambda value: {"$ordered": _pairs(value)},
    Counter: lambda value: {"$counter": _pairs(value)},
    defaultdict: _encode_defaultdict,
    re.Pattern: _encode_pattern,
    **{cls: lambda value: {"$path": [type(value).__name__, str(value)]} for cls in _PATHS.values()},
}


def _encode_by_name(value: Any, kind: type) -> Any:
    if isinstance(value, enum.Enum):
        if value.name in kind.__members__:  # type: ignore[attr-defined]
            return {"$enum": name_of(kind), "name": value.name}
        return {"$enum": name_of(kind), "value": encode(value.value)}  # a combination of flags
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value, kind)
    if isinstance(value, tuple) and _is_namedtuple(kind):
        return {"$namedtuple": name_of(kind), "items": [encode(item) for item in value]}
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return {"$name": name_of(value)}
    if (kind.__module__, kind.__qualname__) == ("zoneinfo", "ZoneInfo"):
        return _encode_zone(value)  # few programs have this module, and it loads an extension
    return _encode_numpy(value)


def _encode_dataclass(value: Any, kind: type) -> Any:
    names = [field.name for field in dataclasses.fields(value)]
    if not set(getattr(value, "__dict__", ())) <= set(names):
        raise NotSaved  # it has attributes besides its fields
    fields = {name: encode(getattr(value, name)) for name in names if hasattr(value, name)}
    return {"$dataclass": name_of(kind), "fields": fields}


def _is_namedtuple(kind: type) -> bool:
    return kind.__bases__ == (tuple,) and isinstance(getattr(kind, "_fields", None), tuple)


def _encode_numpy(value: Any) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic | numpy.ndarray):
        raise NotSaved
    plain = value.dtype.kind in _PLAIN_ARRAYS and value.size <= _LARGEST_ARRAY
    if not plain or type(value) not in (numpy.ndarray, value.dtype.type):
        raise NotSaved
    if value.ndim == 0 and isinstance(value, numpy.generic):
        return {"$numpy": value.dtype.str, "value": encode(value.item())}
    return {
        "$array": value.dtype.str,
        "shape": list(value.shape),
        "items": encode(value.ravel().tolist()),
    }


# Names of classes and functions.


def name_of(thing: Any) -> str:
    """Return the name of a class or function as ``module:qualname``; raise `NotSaved` if none.

    >>> name_of(dict.fromkeys.__class__)
    Traceback (most recent call last):
        ...
    swarmtest.subjects.machine.values.NotSaved
    """
    module, qualname = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    name = f"{_PUBLIC.get(str(module), module)}:{qualname}"
    try:
        if find(name) is thing:
            return name
    except UserError:
        pass
    raise NotSaved


def find(name: str) -> Any:
    """Return the class or function with a name, from the modules that are loaded.

    Attributes are read from dictionaries: a module's ``__getattr__`` could import or run code.
    """
    module_name, _, qualname = name.partition(":")
    if not may_be_named(module_name, qualname):
        raise UserError(f"a saved test may not use {name!r}")
    module = sys.modules.get(module_name)
    if module is None:
        raise UserError(
            f"this test uses {qualname} of the module {module_name!r}, which the subject does not "
            "import: import it in the subject's file"
        )
    thing: Any = module
    for part in qualname.split("."):
        namespace = vars(thing) if isinstance(thing, types.ModuleType | type) else {}
        if part not in namespace:
            raise UserError(f"this test uses {name!r}, which does not exist")
        thing = namespace[part]
    if not isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        raise UserError(f"this test uses {name!r}, which is not a class or a function")
    return thing


def may_be_named(module: str, qualname: str) -> bool:
    """Return whether a saved test may name a thing of a module.

    A test may come from somebody else, so it cannot name ``os:system``. The user's own modules, and
    those of packages, are what the subject was written for.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return module in _PURE_MODULES and qualname.rpartition(".")[2] not in _DANGEROUS
    return True


# From data to a value.


def from_json(data: Any) -> Any:
    """Return the value that `to_json` wrote.

    >>> from_json(to_json({"a": {1, 2}}))
    {'a': {1, 2}}
    >>> from_json(to_json(range(0, 9, 2)))
    range(0, 9, 2)
    """
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    tag = next(iter(data), "")
    if not tag.startswith("$"):
        return {key: from_json(item) for key, item in data.items()}
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise UserError(f"not a test that this version of swarmtest wrote: unknown tag {tag!r}")
    try:
        return decoder(data[tag], data)
    except UserError:
        raise
    except Exception as error:  # constructors, also of the user's classes, may raise anything
        raise UserError(f"a saved test has a broken argument, {tag}: {error}") from None


def _decode_datetime(body: Any, data: dict[str, Any]) -> Any:
    cls = datetime.datetime if "$datetime" in data else datetime.time
    zone = from_json(data["zone"]) if "zone" in data else None
    return cls.fromisoformat(body).replace(tzinfo=zone, fold=data.get("fold", 0))


def _decode_timezone(body: Any, data: dict[str, Any]) -> Any:
    names = [data["name"]] if "name" in data else []
    return datetime.timezone(from_json(body), *names)


def _decode_zone(body: Any, data: dict[str, Any]) -> Any:
    import zoneinfo

    return zoneinfo.ZoneInfo(body)


def _decode_enum(body: Any, data: dict[str, Any]) -> Any:
    cls = _subclass(body, enum.Enum)
    if "name" in data:
        return cls.__members__[data["name"]]
    return cls(from_json(data["value"]))


def _decode_dataclass(body: Any, data: dict[str, Any]) -> Any:
    cls = _subclass(body, object)
    if not dataclasses.is_dataclass(cls):
        raise UserError(f"{body} is not a dataclass any more")
    names = {field.name for field in dataclasses.fields(cls)}
    value: Any = object.__new__(find(body))
    for name, item in data["fields"].items():
        if name not in names:
            raise UserError(f"{body} has no field {name!r} any more")
        object.__setattr__(value, name, from_json(item))
    return value


def _decode_namedtuple(body: Any, data: dict[str, Any]) -> Any:
    cls = _subclass(body, tuple)
    items = [from_json(item) for item in data["items"]]
    if not _is_namedtuple(cls) or len(items) != len(cls._fields):
        raise UserError(f"{body} does not have {len(items)} fields any more")
    return tuple.__new__(cls, items)


def _subclass(name: str, base: type) -> Any:
    cls = find(name)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise UserError(f"{name} is not the class that a saved test needs")
    return cls


def _decode_numpy(body: Any, data: dict[str, Any]) -> Any:
    import numpy

    dtype = numpy.dtype(body)
    if dtype.kind not in _PLAIN_ARRAYS:
        raise UserError(f"a saved test has an array of the type {body!r}, which no version writes")
    if "value" in data:
        return dtype.type(from_json(data["value"]))
    return numpy.array(from_json(data["items"]), dtype).reshape(data["shape"])


def _decode_pickle(body: Any, data: dict[str, Any]) -> Any:
    if not is_trusted():
        raise UserError(
            "this test has an argument that an earlier version of swarmtest saved as a pickle, and "
            "reading a pickle can run any code: use --trust if you know who wrote this store"
        )
    import pickle

    try:
        return pickle.loads(base64.b64decode(body))
    except Exception as error:
        raise UserError(f"this test has an argument that cannot be read back: {error}") from None


def _lost(body: Any, data: dict[str, Any]) -> Any:
    shown = data.get("repr", body)
    raise UserError(f"this test has an argument that could not be saved: {shown}")


def _dict(body: Any) -> dict[Any, Any]:
    return {from_json(key): from_json(item) for key, item in body}


def _list(body: Any) -> list[Any]:
    return [from_json(item) for item in body]


_DECODERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "$ref": lambda body, data: Ref(int(body)),
    "$float": lambda body, data: float(body),
    "$bytes": lambda body, data: base64.b64decode(body),
    "$bytearray": lambda body, data: bytearray(base64.b64decode(body)),
    "$tuple": lambda body, data: tuple(_list(body)),
    "$set": lambda body, data: set(_list(body)),
    "$frozenset": lambda body, data: frozenset(_list(body)),
    "$dict": lambda body, data: _dict(body),
    "$slice": lambda body, data: slice(*_list(body)),
    "$range": lambda body, data: range(*body),
    "$complex": lambda body, data: complex(*_list(body)),
    "$ellipsis": lambda body, data: ...,
    "$decimal": lambda body, data: decimal.Decimal(body),
    "$fraction": lambda body, data: fractions.Fraction(body),
    "$uuid": lambda body, data: uuid.UUID(body),
    "$date": lambda body, data: datetime.date.fromisoformat(body),
    "$datetime": _decode_datetime,
    "$time": _decode_datetime,
    "$timedelta": lambda body, data: datetime.timedelta(*body),
    "$timezone": _decode_timezone,
    "$zone": _decode_zone,
    "$deque": lambda body, data: deque(_list(body), data.get("maxlen")),
    "$ordered": lambda body, data: OrderedDict(_dict(body)),
    "$counter": lambda body, data: Counter(_dict(body)),
    "$defaultdict": lambda body, data: defaultdict(from_json(data["factory"]), _dict(body)),
    "$pattern": lambda body, data: re.compile(from_json(body), data["flags"]),
    "$path": lambda body, data: _PATHS[body[0]](body[1]),
    "$enum": _decode_enum,
    "$dataclass": _decode_dataclass,
    "$namedtuple": _decode_namedtuple,
    "$name": lambda body, data: find(body),
    "$numpy": _decode_numpy,
    "$array": _decode_numpy,
    "$pickle": _decode_pickle,
    "$lost": _lost,
    "$drawn": _lost,
    "$option": _lost,
}
