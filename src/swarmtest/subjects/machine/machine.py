"""Machines: a program under test as a plain Python class whose `@action` methods are the features.

A machine is an ordinary class. Its methods stay ordinary methods: the decorators only leave a note
on them. So a failing test prints as code that calls them, and runs without swarmtest's engine.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, overload

from swarmtest.core.constraints import Constraint
from swarmtest.core.dimensions import Feature, Setting
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Covered, Hits
from swarmtest.subjects.machine.generators import Generator

Method = TypeVar("Method", bound=Callable[..., Any])
ACTION = "_swarmtest_action"
INVARIANT = "_swarmtest_invariant"


class Pool:
    """Values that earlier actions made, for later actions to use.

    ``@action(into=files)`` puts what the action returns (unless None) into the pool;
    ``@action(file=files)`` draws from it, and is possible only while there is something to draw.
    On a running machine ``self.files`` is the live pool: it has a length and can be iterated.

    >>> class Disk(Machine):
    ...     files = Pool()
    ...     @action(into=files)
    ...     def open(self): return object()
    ...     @action(file=files)
    ...     def write(self, file): pass
    ...     @action(file=consumes(files))
    ...     def close(self, file): pass
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, Any]] = []
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)


@dataclass(frozen=True)
class FromPool:
    """An argument drawn from a pool; `consumed` values leave it."""

    pool: Pool
    consumed: bool = False


def consumes(pool: Pool) -> FromPool:
    """An argument that is drawn from a pool and leaves it: what ``close`` does to a file.

    >>> consumes(Pool()).consumed
    True
    """
    return FromPool(pool, consumed=True)


@dataclass(frozen=True)
class Action:
    """What the decorator noted about one action."""

    name: str
    feature: Feature
    arguments: dict[str, Generator[Any] | FromPool] = field(default_factory=dict)
    """Where the values of the parameters come from, in the order of the method's signature."""
    positional: int = 0
    """How many of the arguments can be passed by position."""
    when: Callable[[Any], Any] | None = None
    raises: tuple[type[BaseException], ...] = ()
    into: Pool | None = None
    render: Callable[[str, Sequence[str]], str] | None = None
    """How to print a call, from the machine's name and the arguments' code; None: as a method."""


@overload
def action(method: Method, /) -> Method: ...
@overload
def action(
    *,
    when: Callable[[Any], Any] | None = None,
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
    into: Pool | None = None,
    rate: float | None = None,
    group: str | None = None,
    requires: Sequence[str] = (),
    excludes: Sequence[str] = (),
    mandatory: bool = False,
    args: dict[str, Any] | None = None,
    **arguments: Any,
) -> Callable[[Method], Method]: ...
def action(method: Any = None, /, **options: Any) -> Any:
    """Make a method an action of its machine, and so a feature that tests may leave out.

    Keyword arguments name the method's parameters and say where their values come from: a
    generator (``integers(0, 9)``), a function of a random source, a `Pool`, or a Hypothesis
    strategy. The others are options:

    ``when``
        a function of the machine; the action is possible only while it is true.
    ``raises``
        exceptions that are a correct outcome of this action.
    ``into``
        the pool that gets what the action returns.
    ``rate``, ``group``, ``requires``, ``excludes``, ``mandatory``
        what `Feature` takes.
    ``args``
        arguments as a dictionary, for parameters whose name is one of these options.

    >>> class StackMachine(Machine):
    ...     def start(self): self.stack = []
    ...     @action(value=lambda rng: rng.randrange(10))
    ...     def push(self, value): self.stack.append(value)
    ...     @action(when=lambda self: self.stack)
    ...     def pop(self): self.stack.pop()
    """
    if method is not None:
        return _noted(method, {})
    return lambda method: _noted(method, options)


def invariant(method: Method) -> Method:
    """Make a method an invariant: checked after the start and after every step.

    It fails when it raises or returns False.

    >>> class Bounded(Machine):
    ...     def start(self): self.size = 0
    ...     @action
    ...     def grow(self): self.size += 1
    ...     @invariant
    ...     def size_is_bounded(self): assert self.size <= 32
    """
    setattr(method, INVARIANT, True)
    return method


class Machine:
    """A program under test and what can be done to it. Subclass it and add `@action` methods.

    For each test a fresh machine is made, `start` is called, then actions are chosen at random
    among those that the configuration includes and whose guard is true, then `stop` is called.

    >>> class Counter(Machine):
    ...     steps = (10, 50)
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1
    ...     @action(when=lambda self: self.n)
    ...     def down(self): self.n -= 1
    >>> machine = Counter()
    >>> machine.start(); machine.up(); machine.n
    1
    """

    steps: ClassVar[int | tuple[int, int] | Callable[[random.Random], int]] = 100
    """Steps of a test: a number, a range (low, high), or a function of a random source."""
    dimensions: ClassVar[Sequence[Setting]] = ()
    """Settings beside the features; read them as ``self.settings["name"]``."""
    constraints: ClassVar[Sequence[Constraint]] = ()
    """Constraints between features that the actions' own options do not say."""

    settings: Mapping[str, Any] = MappingProxyType({})
    """The values of `dimensions` in the test at hand."""
    _events: AbstractSet[str] = frozenset()
    _covered: tuple[Hits, ...] = ()
    _missing: str = ""
    _pools: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._pools = tuple(
            {
                n: 0
                for base in cls.__mro__
                for n, member in vars(base).items()
                if type(member) is Pool
            }
        )

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        for name in cls._pools:
            setattr(self, name, Pool())
        return self

    @classmethod
    def code_of_start(cls) -> tuple[str, str]:
        """The name of the machine in a printed test, and the code that makes it."""
        return "machine", f"{cls.__qualname__}()"

    def start(self) -> None:
        """Set the program up; called before the first step of each test."""

    def stop(self) -> None:
        """Tear the program down; called after the last step, also after a failure."""

    def event(self, name: str) -> None:
        """Note that something happened in this test: a target like a line or a branch.

        >>> machine = Machine()
        >>> machine.event("stack was full")
        """
        if name not in self._events:
            self._events |= {str(name)}

    def cover(self, run: Covered) -> None:
        """Note what a native program reached in this test (`swarmtest.Program.run`).

        If it could not tell, the test counts, and its coverage is marked as missing.
        """
        if run.hits is not None:
            self._covered += (run.hits,)
        if run.missing:
            self._missing = run.missing

    def hits(self) -> tuple[str, ...]:
        """The events of the test so far, as targets."""
        return tuple(f"event:{name}" for name in sorted(self._events))


def _noted(method: Any, options: dict[str, Any]) -> Any:
    if not inspect.isfunction(method):
        raise UserError(f"@action decorates methods, not {method!r}")
    setattr(method, ACTION, options)
    return method
