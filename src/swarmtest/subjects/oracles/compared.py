"""A machine that compares a class with a known behaviour, or with other implementations.

Two lines make one: what is tested, and what it is like. All operations that both sides have become
actions; each runs on both, and the outcomes and the states have to agree.
"""

from __future__ import annotations

import inspect
import random
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.subjects.machine.generators import as_generator, integers, sampled_from
from swarmtest.subjects.machine.machine import ACTION, Machine
from swarmtest.subjects.oracles.comparison import (
    OUTCOMES,
    STATES,
    CallOutcome,
    Difference,
    KnownCall,
    agree,
    outcome_of,
    same_exception,
    same_names,
)
from swarmtest.subjects.oracles.metamorphic import check_action, checks_of
from swarmtest.subjects.oracles.models import Model, equal_when_empty, is_silent, model_of
from swarmtest.subjects.oracles.operations import Code, Operation, evaluated, letters_of

_SEVERAL = frozenset({"y", "d", "xs", "s"})
"""Letters for several values: an operation with them may be refused in the middle."""
_MISSING = (TypeError, AttributeError, NotImplementedError)
"""With these a class says that it does not have an operation."""
_WRONG_VALUES = (TypeError, AttributeError, ValueError, OverflowError)
"""With these a class says that it does not take such values."""
_TEXTS = sampled_from(["a", "b", "c", "ab", "A", ""])
"""Keys and values for a class that refuses numbers."""
_NAMES = sampled_from(["a", "b", "c", "ab", "x-y"])
"""The same for one to which upper case means nothing, or which wants names."""
_NATURAL = integers(0, 9)
_OTHER_SOURCES: tuple[dict[str, Any], ...] = (
    {"values": _NATURAL},
    {"keys": _NATURAL},
    {"keys": _TEXTS},
    {"values": _TEXTS},
    {"keys": _TEXTS, "values": _TEXTS},
    {"keys": _NAMES},
    {"keys": _NAMES, "values": _TEXTS},
)
"""What is tried if a class refuses the values of the model, or does not keep them as they are."""
_TRY_SECONDS = 10.0
_TRIES = 4
"""Calls after which an operation that always raises TypeError is taken for a missing one."""


class Compared(Machine):
    """Test a class against one that it behaves like.

    >>> from collections import UserDict
    >>> class UserDictTest(Compared):
    ...     tested = UserDict
    ...     like = "dict"
    >>> machine = UserDictTest()
    >>> machine.start(); machine.setitem(1, 2); machine.object
    {1: 2}
    """

    steps = (20, 80)
    tested: ClassVar[Any] = None
    """The class under test, or a function that creates an object of it."""
    like: ClassVar[Any] = None
    """What it behaves like: the name of a ready model (`MODELS`), a class or a function that
    creates an object, or several of them."""
    without: ClassVar[str | Sequence[str]] = ()
    """Operations and checks to leave out, by name."""
    raises: ClassVar[Any] = ()
    """Exceptions with which the tested class may refuse what the model does: a class, several, or a
    dictionary of them by operation."""
    differences: ClassVar[Mapping[str, Any]] = {}
    """Documented differences by operation: a text that says what differs, or a function of a
    `KnownCall` that tells whether it is the one. They are counted, and the test goes on."""
    calls: ClassVar[Mapping[str, str]] = {}
    """How the tested class calls an operation, if not as the model: `{"push": "o.add(x)"}`."""
    same: ClassVar[str | Sequence[str]] = ()
    """What has to agree: `result`, `exception_type`, `len`, `list`, `items` ... The default follows
    from the model."""
    value: ClassVar[Any] = None
    """Where values come from, if not small numbers."""
    key: ClassVar[Any] = None
    """Where keys come from, if not small numbers."""
    ttl: ClassVar[float] = 5
    """For the model `expiring`: how long an entry lives."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """Operations of the model that the tested class does not have."""

    object: Any = None
    """The object under test."""
    models: tuple[Any, ...] = ()
    """The objects that it is compared with."""
    now: float = 0.0
    """The time that the model `expiring` and the object under test see."""
    _operations: ClassVar[dict[str, Operation]] = {}
    _states: ClassVar[dict[str, str]] = {}
    _same: ClassVar[tuple[str, ...]] = ()
    _known: ClassVar[dict[str, Any]] = {}
    _rejections: ClassVar[dict[str, tuple[type[BaseException], ...]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls._part("tested") is not None and cls._part("like") is not None:
            _complete(cls)

    @classmethod
    def expected_exceptions(cls) -> Any:
        """Return nothing: what an operation may raise is compared, and a difference is a fault."""
        return ()

    @classmethod
    def _part(cls, name: str) -> Any:
        """Return a class attribute as it was written: a function does not become a method."""
        member = inspect.getattr_static(cls, name)
        return member.__func__ if isinstance(member, staticmethod) else member

    def start(self) -> None:
        """Create the object under test and what it is compared with."""
        self.now = 0.0
        self.object = self.new()
        self.models = tuple(self._new_model(like) for like in _likes(type(self)))

    def new(self) -> Any:
        """Create another object of the tested class."""
        return _create(type(self)._part("tested"), lambda: self.now)

    def _new_model(self, like: Any) -> Any:
        model = model_of(like)
        if model is None:
            return _create(like, lambda: self.now)
        return model.new(lambda: self.now, self.ttl) if _takes_clock(model) else model.new()

    def compare(self, operation: Operation, values: tuple[Any, ...]) -> None:
        """Do the same on all sides, and compare what came of it."""
        tested = self.object
        actual = outcome_of(lambda: operation.run(tested, _own(values)))
        if actual.error is not None and self._refuses(operation, actual.error):
            self._after_refusal(operation)
            return
        for number, model in enumerate(self.models):
            expected = outcome_of(
                lambda model=model: operation.run_on_model(  # type: ignore[misc]
                    model, _own(values), actual.result, actual.error is not None
                )
            )
            wrong = self._wrong_outcome(operation, actual, expected, model)
            wrong = wrong or self._wrong_state(operation.name, model)
            if wrong is None:
                continue
            if not self._goes_on(operation, values, actual, expected, number):
                raise wrong
            return

    def _refuses(self, operation: Operation, error: Exception) -> bool:
        """Return whether an exception is one of `raises`, or is defined by the tested package."""
        if isinstance(error, self._rejections.get(operation.name, ())):
            return True
        if isinstance(error, self._rejections.get("", ())):
            return True
        package = type(self.object).__module__.partition(".")[0]
        own = type(error).__module__.partition(".")[0] == package != "builtins"
        return own and not isinstance(error, LookupError)

    def _after_refusal(self, operation: Operation) -> None:
        """Compare the states after a call that was refused: it should have changed nothing.

        An operation with several values may have done a part of its work; then the test goes on
        with new objects.
        """
        for model in self.models:
            wrong = self._wrong_state(f"{operation.name} that was refused", model)
            if wrong is None:
                continue
            if set(operation.letters) & _SEVERAL:
                self.start()
                return
            raise wrong

    def _wrong_outcome(
        self, operation: Operation, actual: CallOutcome, expected: CallOutcome, model: Any
    ) -> Difference | None:
        what = type(model).__name__
        if actual.error is not None and expected.error is not None:
            if "exception_type" not in self._same or same_exception(actual.error, expected.error):
                return None
            wrong = f"raises {actual.kind}, where {what} raises {expected.kind}"
        elif actual.error is not None:
            wrong = f"raises {actual.kind}, where {what} does not"
        elif expected.error is not None:
            wrong = f"does not raise {expected.kind}, as {what} does"
        elif "result" not in self._same or self._same_result(operation, actual, expected, model):
            return None
        else:
            wrong = f"another result than {what}'s"
        difference = Difference(f"{operation.name}: {wrong}")
        difference.add_note(f"  tested {actual}\n  {what} {expected}")
        if actual.error is not None:
            difference = difference.with_traceback(actual.error.__traceback__)
        return difference

    def _same_result(
        self, operation: Operation, actual: CallOutcome, expected: CallOutcome, model: Any
    ) -> bool:
        if expected.result is None and operation.call is None and is_silent(operation.name):
            return True
        itself = actual.result is self.object
        if itself and (expected.result is None or expected.result is model):
            return True
        return agree(actual.result, expected.result)

    def _wrong_state(self, operation: str, model: Any) -> Difference | None:
        for code in self._states.values():
            tested = state_of(code, self.object)
            expected = state_of(code, model)
            if tested.error is None and agree(tested.result, expected.result):
                continue
            if expected.error is not None:
                continue
            wrong = f"{code} raises {tested.kind}" if tested.error else "the contents differ"
            difference = Difference(f"after {operation}: {wrong}")
            difference.add_note(
                f"  {code} of the tested object: {tested}\n"
                f"  {code} of the {type(model).__name__}: {expected}"
            )
            if tested.error is not None:
                difference = difference.with_traceback(tested.error.__traceback__)
            return difference
        return None

    def _goes_on(
        self,
        operation: Operation,
        values: tuple[Any, ...],
        actual: CallOutcome,
        expected: CallOutcome,
        number: int,
    ) -> bool:
        """Return whether the difference is a known one; then it is counted.

        If the states differ now, the test goes on with new objects.
        """
        known = self._known.get(operation.name)
        if known is None:
            return False
        call = KnownCall(operation.name, values, actual, expected)
        if callable(known) and not known(call):
            return False
        self.event(
            f"known difference: {operation.name}" + ("" if callable(known) else f" ({known})")
        )
        done = self.models[: number + 1]
        if len(done) < len(self.models) or any(self._wrong_state("it", model) for model in done):
            self.start()
        return True


def compared_machine(
    cls: type, like: str, raises: Sequence[str] = (), without: Sequence[str] = ()
) -> type[Compared]:
    """Return a machine that compares a class with a ready model.

    >>> from collections import UserList
    >>> "append" in vars(compared_machine(UserList, "list"))
    True
    """
    from swarmtest.subjects.api import named_exceptions

    model_of(like)  # to refuse a name that is none
    new = f"compared_machine({cls.__qualname__}, {like!r})()"
    members: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": f"Compares {cls.__qualname__} with the model {like}.",
        "tested": cls,
        "like": like,
        "raises": named_exceptions(cls, raises),
        "without": tuple(without),
        "imports_of_start": (f"from {__name__} import compared_machine",),
        "code_of_start": classmethod(lambda machine: ("machine", new)),
    }
    return types.new_class(cls.__name__, (Compared,), {}, lambda ns: ns.update(members))


def _create(factory: Any, clock: Callable[[], float]) -> Any:
    """Create an object; a function of one parameter called ``clock`` receives the clock."""
    if inspect.isfunction(factory) and "clock" in inspect.signature(factory).parameters:
        return factory(clock)
    return factory()


def _takes_clock(model: Model) -> bool:
    return model.name == "expiring"


def _own(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return copies of arguments that can change, so that no side sees what the other did."""
    return tuple(type(v)(v) if type(v) in (list, dict, set, bytearray) else v for v in values)


def _likes(cls: type[Compared]) -> list[Any]:
    like = cls._part("like")
    return list(like) if isinstance(like, tuple | list) else [like]


def _complete(cls: type[Compared]) -> None:
    """Derive the actions of a machine from what it says."""
    where = f"{cls.__module__}:{cls.__qualname__}"
    sample = _sample(cls, where)
    model = _model_for(_likes(cls)[0])
    operations = _model_operations(cls, model) if model else _common_operations(cls, sample)
    checks = checks_of(sample)
    without = _words(cls._part("without"))
    for word in without:
        if word not in operations and word not in checks and f"check_{word}" not in checks:
            known = [*operations, *checks]
            raise UserError(f"{where}: without names {word!r}{did_you_mean(word, known)}")
    for word in [*cls.differences, *cls.calls]:
        if word not in operations:
            raise UserError(f"{where}: no operation {word!r}{did_you_mean(word, operations)}")
    kept = {
        name: operation
        for name, operation in operations.items()
        if name not in without and all(hasattr(sample, need) for need in operation.needs)
    }
    there = _tried(lambda: [name for name, each in kept.items() if _has(cls, each)], list(kept))
    kept = {name: kept[name] for name in there}
    cls.left_out = tuple(n for n in operations if n not in kept and n not in without)
    if not kept:
        raise UserError(
            f"{where}: {type(sample).__name__} has no operation of {cls._part('like')!r}"
        )
    cls._operations, cls._known = kept, dict(cls.differences)
    cls._rejections = _rejections(cls, kept, where)
    _set_states(cls, model, sample)
    for name, operation in kept.items():
        _set_action(cls, name, _operation_action(operation))
    for name, check in checks.items():
        if name not in without and name.removeprefix("check_") not in without:
            _set_action(cls, name, check_action(check, "object", "new"))
    if model is not None and _takes_clock(model):
        _set_action(cls, "wait", _wait_action())


def _model_for(like: Any) -> Model | None:
    """Return the ready model for what a class is compared with; None if there is none.

    A function may create an object that a model stands for: a list that is not empty.
    """
    model = model_of(like)
    if model is not None or not inspect.isfunction(like) or inspect.signature(like).parameters:
        return model
    model = model_of(type(outcome_of(like).result))
    return model and replace(model, new=like)


def _tried(call: Callable[[], Any], otherwise: Any) -> Any:
    """Return what a call finds out about a class, in a fork; a crash or a hang tells nothing.

    It is left for the campaign to find.
    """
    try:
        return in_fork(call, _TRY_SECONDS)
    except NoAnswer:
        return otherwise


def _has(cls: type[Compared], operation: Operation) -> bool:
    """Return whether the tested class has an operation in this form.

    It has not if it answers with TypeError or the like whatever the arguments are, and the model
    never does; or if it compares only with objects of its own kind.
    """
    machine = cls()
    if operation.call is None and (same := equal_when_empty(operation.name)) is not None:
        Compared.start(machine)
        empty: tuple[Any, ...] = ({},) if operation.letters == ("d",) else ([],)
        if outcome_of(lambda: operation.run(machine.object, empty)).result is not same:
            return False
    for seed in range(_TRIES):
        rng = random.Random(seed)
        values = tuple(
            as_generator(operation.arguments[letter]).draw(rng) for letter in operation.letters
        )
        Compared.start(machine)
        actual = outcome_of(lambda: operation.run(machine.object, _own(values)))  # noqa: B023
        if not isinstance(actual.error, _MISSING) or isinstance(actual.error, LookupError):
            return True
        model = machine.models[0]
        expected = outcome_of(
            lambda: operation.run_on_model(model, _own(values), None, True)  # noqa: B023
        )
        if isinstance(expected.error, _MISSING):
            return True
    return False


def _set_action(cls: type[Compared], name: str, step: Callable[..., Any]) -> None:
    if name in vars(cls):  # the user's own
        return
    step.__module__ = cls.__module__
    step.__name__ = name
    step.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, step)


def _sample(cls: type[Compared], where: str) -> Any:
    try:
        return _create(cls._part("tested"), lambda: 0.0)
    except Exception as error:
        raise UserError(
            f"{where}: tested cannot be created: {message_of(error)}; write tested as a function "
            "without arguments that creates it"
        ) from error


def _model_operations(cls: type[Compared], model: Model) -> dict[str, Operation]:
    value, key = cls._part("value"), cls._part("key")
    if value is None and not _tried(lambda: _accepts(cls, model, {}), True):
        for sources in _OTHER_SOURCES:
            if key is None and _tried(partial(_accepts, cls, model, sources), False):
                value, key = sources.get("values"), sources.get("keys")
                break
    operations = model.operations(
        None if value is None else as_generator(value, "value"),
        None if key is None else as_generator(key, "key"),
    )
    for name, code in cls._part("calls").items():
        if name in operations:
            operation = operations[name]
            letters = [letter for letter in letters_of(code) if letter != "r"]
            unknown = set(letters) - set(operation.letters)
            if unknown:
                raise UserError(
                    f"{cls.__qualname__}: calls[{name!r}] uses {unknown.pop()!r}, and {name} has "
                    f"only {', '.join(operation.letters) or 'no arguments'}"
                )
            operations[name] = operation.called_as(code)
    return operations


_FILLING = ("setitem", "append", "add", "put", "push", "update", "insert", "extend")
"""Operations that put a value into a container, in the order in which they are tried."""


def _accepts(cls: type[Compared], model: Model, sources: Mapping[str, Any]) -> bool:
    """Return whether a class keeps values from some sources, judged by one operation."""
    operations = model.operations(**sources)
    sample = _create(cls._part("tested"), lambda: 0.0)
    for name in _FILLING:
        operation = operations.get(name)
        if operation is not None and all(hasattr(sample, need) for need in operation.needs):
            return all(_keeps(cls, model, operation, seed) for seed in range(_TRIES))
    return True


def _keeps(cls: type[Compared], model: Model, operation: Operation, seed: int) -> bool:
    """Return whether a class and its model are alike after an operation has filled both.

    A class that takes `a` and `A` for the same key, or turns numbers into texts, is not.
    """
    rng = random.Random(seed)
    clock: Callable[[], float] = lambda: 0.0  # noqa: E731
    tested = _create(cls._part("tested"), clock)
    known = model.new(clock, cls.ttl) if _takes_clock(model) else model.new()
    for _ in range(5):
        values = tuple(
            as_generator(operation.arguments[letter]).draw(rng) for letter in operation.letters
        )
        outcome = outcome_of(lambda: operation.run(tested, _own(values)))  # noqa: B023
        if isinstance(outcome.error, _WRONG_VALUES):
            return False
        operation.run(known, _own(values))
    for code in model.states.values():
        seen, expected = state_of(code, tested), state_of(code, known)
        if (
            expected.error is None
            and seen.error is None
            and not agree(seen.result, expected.result)
        ):
            return False
        if isinstance(seen.error, _WRONG_VALUES):
            return False
    return True


def _common_operations(cls: type[Compared], sample: Any) -> dict[str, Operation]:
    """Return the public methods that the tested class has in common with what it is like."""
    from swarmtest.subjects.api import method_operations

    likes = [_create(like, lambda: 0.0) for like in _likes(cls)]
    operations = method_operations(type(likes[0]))
    return {
        name: operation
        for name, operation in operations.items()
        if all(hasattr(one, name) for one in (sample, *likes))
    }


def _rejections(
    cls: type[Compared], operations: Mapping[str, Operation], where: str
) -> dict[str, tuple[type[BaseException], ...]]:
    raises = cls._part("raises")
    by_operation = dict(raises) if isinstance(raises, Mapping) else {"": raises}
    found = {}
    for name, errors in by_operation.items():
        if name and name not in operations:
            raise UserError(f"{where}: raises names {name!r}{did_you_mean(name, operations)}")
        several = errors if isinstance(errors, tuple) else (errors,)
        if not all(inspect.isclass(e) and issubclass(e, BaseException) for e in several):
            raise UserError(f"{where}: raises is an exception class, or several, not {errors!r}")
        found[name] = several
    return found


def _set_states(cls: type[Compared], model: Model | None, sample: Any) -> None:
    states = dict(model.states) if model else {}
    wanted = cls._part("same")
    if not wanted:
        usual = states or {name: STATES[name] for name in ("len", "list")}
        names = [name for name, code in usual.items() if _can_see(code, sample)]
        cls._same = (*OUTCOMES, *names)
    else:
        cls._same = same_names(wanted, states)
    known = STATES | states
    cls._states = {name: known[name] for name in cls._same if name not in OUTCOMES}


def state_of(code: str, tested: Any) -> CallOutcome:
    """Return what an expression over an object gives, or the exception that it raises.

    >>> state_of("len(o)", [1, 2]).result
    2
    """
    return outcome_of(lambda: evaluated(code, tested))


def _can_see(code: str, sample: Any) -> bool:
    return state_of(code, sample).error is None


def _operation_action(operation: Operation) -> Callable[..., Any]:
    def step(self: Any, *values: Any) -> Any:
        return self.compare(operation, values)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("self", *operation.letters)]
    step.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    step.__doc__ = f"Do ``{operation.code}`` on all sides, and compare."

    def render(subject: str, arguments: Sequence[str]) -> str:
        call = f"{subject}.{step.__name__}({', '.join(arguments)})"
        shown = operation.text([Code(argument) for argument in arguments])
        return f"{call}  # {shown}"

    setattr(step, ACTION, {"args": dict(operation.arguments), "_render": render})
    return step


def _wait_action() -> Callable[..., Any]:
    def step(self: Any, n: Any) -> None:
        self.now += n

    setattr(step, ACTION, {"args": {"n": integers(0, 3)}})
    return step


def _words(text: str | Sequence[str]) -> list[str]:
    return text.replace(",", " ").split() if isinstance(text, str) else list(text)
