"""Checks that any class can have: relations between calls, for which no model is needed.

A copy equals its original, a length is what iteration yields, what was written can be parsed. Which
of them a class has follows from what an object of it supports. Each is a feature of the machine,
and can be left out by name.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from swarmtest.core.faults import message_of
from swarmtest.subjects.machine.machine import ACTION, Machine
from swarmtest.subjects.oracles.comparison import CheckFailed, has_own_eq

_MOST = 1000
"""Longer iterations are not compared."""
_UNSUPPORTED = (TypeError, NotImplementedError, pickle.PicklingError, copy.Error)
"""How a class says that it cannot be copied or pickled."""
_REFUSED = (ValueError, RuntimeError, OSError, NotImplementedError)
"""How a class says that it cannot be closed or entered a second time."""
_WRITE_AND_PARSE = (
    ("to_dict", "from_dict"),
    ("to_json", "from_json"),
    ("to_string", "from_string"),
    ("to_bytes", "from_bytes"),
    ("tobytes", "frombytes"),
    ("as_dict", "from_dict"),
    ("asdict", "fromdict"),
    ("dumps", "loads"),
    ("serialize", "deserialize"),
    ("isoformat", "fromisoformat"),
    ("encode", "decode"),
    ("to_yaml", "from_yaml"),
    ("to_toml", "from_toml"),
    ("to_list", "from_list"),
)
_WITH_ITSELF = {
    "update": "a.update(b)",
    "extend": "a.extend(b)",
    "union": "a.union(b)",
    "intersection": "a.intersection(b)",
    "difference": "a.difference(b)",
    "symmetric_difference": "a.symmetric_difference(b)",
    "intersection_update": "a.intersection_update(b)",
    "difference_update": "a.difference_update(b)",
    "symmetric_difference_update": "a.symmetric_difference_update(b)",
    "issubset": "a.issubset(b)",
    "issuperset": "a.issuperset(b)",
    "isdisjoint": "a.isdisjoint(b)",
    "extendleft": "a.extendleft(b)",
    "merge": "a.merge(b)",
    "__add__": "a + b",
    "__or__": "a | b",
    "__and__": "a & b",
    "__sub__": "a - b",
    "__xor__": "a ^ b",
    "__iadd__": "a += b",
    "__ior__": "a |= b",
    "__iand__": "a &= b",
    "__isub__": "a -= b",
    "__ixor__": "a ^= b",
    "__le__": "a <= b",
    "__lt__": "a < b",
    "__setitem__": "a[:] = b",
}
"""Operations with an object of the same kind, each as code over the object and its argument."""


@dataclass(frozen=True)
class Check:
    """One check: what it is called, and what it does with the object and a way to make new ones."""

    name: str
    run: Callable[[Any, Callable[[], Any]], None]
    code: str = ""
    """Code that does much the same to ``SUBJECT``, for a printed test."""


def checks_of(sample: Any) -> dict[str, Check]:
    """Return the checks that an object supports, by name. The object itself is not changed.

    >>> sorted(checks_of({"a": 1}))[:4]
    ['check_copy', 'check_deepcopy', 'check_equality', 'check_iteration']
    >>> "check_close_twice" in checks_of([])
    False
    """
    cls = type(sample)
    own_eq = has_own_eq(cls)
    sized = hasattr(cls, "__len__")
    iterable = _can_be_iterated(cls) and not _refuses_iteration(sample)
    comparable = (own_eq or (sized and iterable)) and not _is_file(cls)
    supported: dict[str, bool] = {
        "copy": comparable and _works(lambda: copy.copy(sample)),
        "deepcopy": comparable and _works(lambda: copy.deepcopy(sample)),
        "pickle": comparable and _works(lambda: pickle.loads(pickle.dumps(sample))),
        "repr": True,
        "eval": comparable and _evaluates(sample),
        "equality": own_eq,
        "hash": own_eq and cls.__hash__ is not None,
        "itself": comparable
        and bool(_operations_with_itself(sample))
        and _works(lambda: copy.deepcopy(sample)),
        "iteration": iterable,
        "length": sized and iterable,
        "parse": bool(_written_forms(cls)),
        "close_twice": callable(getattr(cls, "close", None)),
        "enter_twice": hasattr(cls, "__enter__") and hasattr(cls, "__exit__"),
    }
    return {
        f"check_{name}": Check(f"check_{name}", _CHECKS[name], _code(name, sample))
        for name, fits in supported.items()
        if fits
    }


def _can_be_iterated(cls: type) -> bool:
    # An iterator is used up by iterating over it.
    return hasattr(cls, "__iter__") and not hasattr(cls, "__next__") and not _is_file(cls)


def _refuses_iteration(sample: Any) -> bool:
    try:
        iter(sample)
    except (TypeError, NotImplementedError):
        return True
    except Exception:
        return False
    return False


def _is_file(cls: type) -> bool:
    return hasattr(cls, "read") and hasattr(cls, "close")


def _works(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Exception:
        return False
    return True


def fingerprint(tested: Any) -> Any:
    """Return what can be seen of an object without changing it, to compare it with another."""
    cls = type(tested)
    if hasattr(cls, "items") and isinstance(tested, Mapping):
        return list(itertools.islice(tested.items(), _MOST))
    if _can_be_iterated(cls):
        return list(itertools.islice(tested, _MOST))
    return None


def alike(one: Any, other: Any) -> bool:
    """Return whether two objects of a class are equal, or hold equal values if they have no `==`.

    Values that are not equal to themselves, like NaN, do not count.
    """
    if has_own_eq(type(one)):
        return bool(one == other) or one != one or _has_strange_values(one)
    same: bool = fingerprint(one) == fingerprint(other)
    return same or _has_strange_values(one)


def _has_strange_values(tested: Any) -> bool:
    values = fingerprint(tested) or ()
    return any(_is_strange(value) for value in values)


def _is_strange(value: Any) -> bool:
    parts = value if isinstance(value, tuple | list) else (value,)
    return any(
        part != part or (not has_own_eq(type(part)) and not isinstance(part, type))
        for part in parts
    )


def _copied(make: Callable[[Any], Any], what: str) -> Callable[..., None]:
    def check(tested: Any, new: Callable[[], Any]) -> None:
        before = fingerprint(tested)
        try:
            twin = make(tested)
        except _UNSUPPORTED:
            return
        if type(twin) is not type(tested):
            raise CheckFailed(f"{what} has another type") from None
        if not alike(tested, twin):
            _fail(f"{what} is not equal to the original", tested, twin)
        if _length(tested) != _length(twin):  # `==` may look at a part of what the object holds
            _fail(f"{what} has another length than the original", tested, twin)
        if before != fingerprint(tested) and not _has_strange_values(tested):
            _fail(f"making {what} changed the original", before, tested)

    return check


def _length(tested: Any) -> int | None:
    try:
        return len(tested)
    except Exception:
        return None


def _caused(message: str, error: BaseException) -> CheckFailed:
    """Return the failure of a check that an exception of the class has caused."""
    failure = CheckFailed(message)
    failure.add_note(f"  {message_of(error)}")
    return failure.with_traceback(error.__traceback__)


def _fail(message: str, one: Any, other: Any) -> None:
    error = CheckFailed(message)
    error.add_note(f"  {_shown(one)}\n  {_shown(other)}")
    raise error


def _shown(value: Any) -> str:
    try:
        return repr(value)[:500]
    except Exception as error:
        return f"<repr raised {type(error).__name__}>"


def _check_repr(tested: Any, new: Callable[[], Any]) -> None:
    for function in (repr, str):
        text = function(tested)
        if not isinstance(text, str):
            raise CheckFailed(f"{function.__name__}() did not return a text")


def _names_of(tested: Any) -> dict[str, Any]:
    module = sys.modules.get(type(tested).__module__)
    package = sys.modules.get(type(tested).__module__.partition(".")[0])
    names = dict(vars(package)) if package is not None else {}
    names |= vars(module) if module is not None else {}
    return names | {type(tested).__name__: type(tested)}


def _evaluates(sample: Any) -> bool:
    """Return whether the `repr` of an object is code for an equal object."""
    try:
        text = repr(sample)
        return text.startswith(type(sample).__name__) and alike(
            sample, eval(text, _names_of(sample))
        )
    except Exception:
        return False


def _check_eval(tested: Any, new: Callable[[], Any]) -> None:
    text = repr(tested)
    if "..." in text or " at 0x" in text or "nan" in text or "inf" in text:
        return
    try:
        twin = eval(text, _names_of(tested))
    except (SyntaxError, NameError):  # it was code only while the object was empty
        return
    except Exception as error:
        raise _caused(f"its repr is not code: {type(error).__name__}", error) from None
    if not alike(tested, twin):
        _fail("its repr evaluates to another value", tested, twin)


class _Stranger:
    """An object that no class knows."""


def _check_equality(tested: Any, new: Callable[[], Any]) -> None:
    if _has_strange_values(tested):
        return
    if not tested == tested:
        raise CheckFailed("it is not equal to itself")
    if tested != tested:
        raise CheckFailed("it is equal and unequal to itself")
    stranger = _Stranger()
    try:
        equal, unequal = tested == stranger, tested != stranger
    except Exception as error:
        raise _caused(
            f"comparing it with another object raises {type(error).__name__}", error
        ) from None
    if equal is True or unequal is False:
        raise CheckFailed("it is equal to an object that it does not know")


def _check_hash(tested: Any, new: Callable[[], Any]) -> None:
    try:
        number = hash(tested)
    except (TypeError, *_REFUSED):
        return
    if number != hash(tested):
        raise CheckFailed("its hash changes")
    try:
        twin = copy.deepcopy(tested)
    except Exception:
        return
    if tested == twin and hash(twin) != number:
        raise CheckFailed("two equal objects have different hashes")


def _operations_with_itself(tested: Any) -> list[str]:
    cls = type(tested)
    is_sequence = hasattr(cls, "insert") and hasattr(cls, "__delitem__")
    return [
        code
        for name, code in _WITH_ITSELF.items()
        if callable(getattr(cls, name, None)) and (name != "__setitem__" or is_sequence)
    ]


def _check_itself(tested: Any, new: Callable[[], Any]) -> None:
    """Compare an operation of an object with itself, and with a copy of itself."""
    if _has_strange_values(tested):
        return
    for code in _operations_with_itself(tested):
        try:
            alone, other, argument = (copy.deepcopy(tested) for _ in range(3))
        except Exception:
            return
        if not (alike(tested, alone) and alike(tested, other) and alike(tested, argument)):
            return  # `check_deepcopy` says so
        expected = _effect(code, other, argument)
        actual = _effect(code, alone, alone)
        if isinstance(expected, BaseException) and isinstance(actual, BaseException):
            continue
        if isinstance(actual, BufferError):  # a clear refusal, as of a bytearray
            continue
        if isinstance(actual, BaseException) or isinstance(expected, BaseException):
            wrong = actual if isinstance(actual, BaseException) else expected
            which = "itself" if wrong is actual else "a copy"
            raise _caused(
                f"{code} with {which} as argument raises {type(wrong).__name__}", wrong
            ) from None
        if not _equal(expected, actual):
            _fail(
                f"{code} with itself as argument differs from {code} with a copy", expected, actual
            )


def _equal(one: Any, other: Any) -> bool:
    return all(
        a is b or (type(a) is type(b) and alike(a, b)) for a, b in zip(one, other, strict=True)
    )


def _effect(code: str, a: Any, b: Any) -> Any:
    names = {"a": a, "b": b}
    try:
        if "=" in code and "<=" not in code:
            exec(code, names)
            return (None, names["a"])
        return (eval(code, names), names["a"])
    except Exception as error:
        return error


def _check_iteration(tested: Any, new: Callable[[], Any]) -> None:
    first = list(itertools.islice(tested, _MOST))
    second = list(itertools.islice(tested, _MOST))
    if len(first) != len(second) or any(
        a is not b and a != b and a == a for a, b in zip(first, second, strict=True)
    ):
        _fail("two iterations without a change between them differ", first, second)
    if len(first) < _MOST and callable(getattr(type(tested), "__reversed__", None)):
        try:
            backwards = list(itertools.islice(reversed(tested), _MOST))
        except TypeError:
            return
        if len(backwards) != len(first) or any(
            a is not b and a != b and a == a
            for a, b in zip(first, reversed(backwards), strict=True)
        ):
            _fail("iterating backwards yields other values", first, backwards)


def _check_length(tested: Any, new: Callable[[], Any]) -> None:
    values = list(itertools.islice(tested, _MOST))
    if len(values) == _MOST:
        return
    if len(tested) != len(values):
        _fail("len() is not the number of values that iteration yields", len(tested), values)
    if hasattr(type(tested), "__contains__"):
        for value in values:
            try:
                missing = value == value and value not in tested
            except TypeError:  # `in` looks for something else, such as a part of a text
                break
            if missing:
                _fail("a value that iteration yields is not in it", value, tested)
    if isinstance(tested, Mapping):
        for key in values:
            try:
                _ = tested[key]
            except KeyError as error:
                raise _caused("a key that iteration yields cannot be looked up", error) from None


def _written_forms(cls: type) -> list[tuple[str, str]]:
    """Return the pairs of methods that write an object and parse what was written."""
    pairs = []
    for write, parse in _WRITE_AND_PARSE:
        reader = inspect.getattr_static(cls, parse, None)
        writer = inspect.getattr_static(cls, write, None)
        if isinstance(reader, classmethod | staticmethod) and callable(writer):
            pairs.append((write, parse))
    return pairs


def _check_parse(tested: Any, new: Callable[[], Any]) -> None:
    """Write an object, parse it, and write it again; write it twice."""
    for write, parse in _written_forms(type(tested)):
        try:
            written = getattr(tested, write)()
            again = getattr(tested, write)()
        except Exception:  # it refuses: a format that is not installed, values that it cannot hold
            continue
        if not _same_text(written, again):
            _fail(f"{write}() twice gives two results", written, again)
        try:
            parsed = getattr(type(tested), parse)(written)
        except Exception as error:
            raise _caused(
                f"{parse}() cannot read what {write}() wrote: {type(error).__name__}", error
            ) from None
        rewritten = getattr(parsed, write)()
        if not _same_text(written, rewritten):
            _fail(f"{write}() after {parse}() writes something else", written, rewritten)


def _same_text(one: Any, other: Any) -> bool:
    return bool(one == other) or "nan" in repr(one)


def _check_close_twice(tested: Any, new: Callable[[], Any]) -> None:
    _twice(new, lambda fresh: fresh.close(), "closing it twice")


def _check_enter_twice(tested: Any, new: Callable[[], Any]) -> None:
    def enter(fresh: Any) -> None:
        with fresh:
            pass

    _twice(new, enter, "entering its context twice")


def _twice(new: Callable[[], Any], call: Callable[[Any], Any], what: str) -> None:
    try:
        fresh = new()
        call(fresh)
    except Exception:
        return
    try:
        call(fresh)
    except _REFUSED:
        return
    except Exception as error:
        own = type(error).__module__.partition(".")[0] == type(fresh).__module__.partition(".")[0]
        if not own:
            raise _caused(f"{what} raises {type(error).__name__}", error) from None


_CHECKS: dict[str, Callable[[Any, Callable[[], Any]], None]] = {
    "copy": _copied(copy.copy, "a copy"),
    "deepcopy": _copied(copy.deepcopy, "a deep copy"),
    "pickle": _copied(lambda o: pickle.loads(pickle.dumps(o)), "a pickled and unpickled object"),
    "repr": _check_repr,
    "eval": _check_eval,
    "equality": _check_equality,
    "hash": _check_hash,
    "itself": _check_itself,
    "iteration": _check_iteration,
    "length": _check_length,
    "parse": _check_parse,
    "close_twice": _check_close_twice,
    "enter_twice": _check_enter_twice,
}


_CODES = {
    "copy": "import copy; assert SEEN(copy.copy(SUBJECT)) == {it}",
    "deepcopy": "import copy; assert SEEN(copy.deepcopy(SUBJECT)) == {it}",
    "pickle": "import pickle; assert SEEN(pickle.loads(pickle.dumps(SUBJECT))) == {it}",
    "repr": "repr(SUBJECT), str(SUBJECT)",
    "eval": "assert eval(repr(SUBJECT)) == SUBJECT",
    "equality": "assert SUBJECT == SUBJECT and SUBJECT != object()",
    "hash": "import copy; assert hash(copy.deepcopy(SUBJECT)) == hash(SUBJECT)",
    "iteration": "from itertools import islice; "
    "assert list(islice(SUBJECT, 1000)) == list(islice(SUBJECT, 1000))",
    "length": "assert len(SUBJECT) == len(list(SUBJECT))",
    "close_twice": "SUBJECT.close(); SUBJECT.close()",
}
_BY_NAME = "from swarmtest.subjects.oracles.metamorphic import run_check; run_check({!r}, SUBJECT)"


def _code(name: str, sample: Any) -> str:
    """Return code that does what a check does, for a printed test."""
    code = _code_with_itself(sample) if name == "itself" else _CODES.get(name)
    if not code:
        return _BY_NAME.format(name)
    own_eq = has_own_eq(type(sample))
    seen = r"\1" if own_eq else r"list(\1)"
    code = code.replace("{it}", "SEEN(SUBJECT)")
    return re.sub(r"SEEN\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)", seen, code)


def _code_with_itself(sample: Any) -> str:
    """Return code that compares operations with itself and with a copy, where they work at all."""
    lines = []
    for code in _operations_with_itself(sample):
        one, other, argument = (copy.deepcopy(sample) for _ in range(3))
        effects = _effect(code, one, one), _effect(code, other, argument)
        if any(isinstance(effect, BaseException) for effect in effects):
            continue
        with_copy = re.sub(r"\ba\b", "b", re.sub(r"\bb\b", "c", code))
        with_itself = re.sub(r"\bb\b", "a", code)
        lines.append("a, b, c = (copy.deepcopy(SUBJECT) for _ in range(3))")
        if "=" in code and "<=" not in code:
            lines.append(f"{with_itself}; {with_copy}; assert SEEN(a) == SEEN(b)")
        else:
            lines.append(f"assert ({with_itself}) == ({with_copy}) and SEEN(a) == SEEN(b)")
    return "; ".join(["import copy", *lines]) if lines else ""


def run_check(name: str, tested: Any) -> None:
    """Run one check on an object; printed tests use this.

    >>> run_check("length", [1, 2])
    """
    _CHECKS[name](tested, type(tested))


def check_action(
    check: Check, attribute: str, new: str, *, printed: bool = False
) -> Callable[..., Any]:
    """Return the action of a machine that runs a check on the object in one of its attributes.

    `new` names the machine's method that creates another object. If `printed`, a printed test has
    code that does much the same without a machine.
    """

    def step(self: Any) -> None:
        check.run(getattr(self, attribute), getattr(self, new))

    step.__name__ = step.__qualname__ = check.name
    options: dict[str, Any] = {}
    if printed:
        options["_render"] = lambda subject, arguments: check.code.replace("SUBJECT", subject)
    setattr(step, ACTION, options)
    return step


def with_checks(
    attribute: str, new: Callable[[], Any], without: str | Iterable[str] = ()
) -> Callable[[type[Machine]], type[Machine]]:
    """Add to a machine the checks that any class can have, as actions, for one of its objects.

    `attribute` is the attribute of the machine that holds the object, `new` creates an object of
    the same kind, and `without` names the checks to leave out.

    >>> from collections import deque
    >>> from swarmtest import Machine, action
    >>> @with_checks("queue", deque, without="pickle")
    ... class Queue(Machine):
    ...     def start(self): self.queue = deque()
    ...     @action
    ...     def put(self): self.queue.append(1)
    >>> hasattr(Queue, "check_copy"), hasattr(Queue, "check_pickle")
    (True, False)
    """
    left_out = {f"check_{word.removeprefix('check_')}" for word in _words(without)}

    def add(machine: type[Machine]) -> type[Machine]:
        setattr(machine, f"_new_{attribute}", staticmethod(new))
        for name, check in checks_of(new()).items():
            if name not in left_out and not hasattr(machine, name):
                step = check_action(check, attribute, f"_new_{attribute}")
                step.__module__ = machine.__module__
                setattr(machine, name, step)
        return machine

    return add


def _words(text: str | Iterable[str]) -> list[str]:
    return text.replace(",", " ").split() if isinstance(text, str) else list(text)
