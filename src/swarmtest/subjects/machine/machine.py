"""How to write a machine: the class `Machine`, its decorators, and pools of values.

A machine is an ordinary class. Its methods stay ordinary methods: the decorators only attach an
attribute to them. So a failing test prints as code that calls them, and that code runs without
swarmtest's engine.
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
from swarmtest.core.dimensions import Dimension, Feature
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.targets import Covered, Hits
from swarmtest.subjects.machine.event_loop import IN_LOOP, INVARIANT, TestLoop, in_loop
from swarmtest.subjects.machine.generators import Generator

Method = TypeVar("Method", bound=Callable[..., Any])
ACTION = "_swarmtest_action"


class Pool:
    """Values that earlier actions returned, for later actions to use.

    ``@action(into=files)`` puts what the action returns (unless None) into the pool;
    ``@action(file=files)`` draws from it, and is possible only while the pool is not empty.
    On a running machine ``self.files`` is that machine's pool: it has a length and can be iterated.

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
        """Values with the labels of the steps that made them."""
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
    """Return an argument that is drawn from a pool and removed from it, as ``close`` needs.

    >>> consumes(Pool()).consumed
    True
    """
    return FromPool(pool, consumed=True)


@dataclass(frozen=True)
class Action:
    """One action of a machine, as its decorator describes it."""

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
    """Writes a call, from the machine's name and the code of the arguments; None: as a method."""


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
        the pool that receives what the action returns.
    ``rate``, ``group``, ``requires``, ``excludes``, ``mandatory``
        passed on to `Feature`.
    ``args``
        arguments as a dictionary, for parameters that have the name of one of these options.

    >>> class StackMachine(Machine):
    ...     def start(self): self.stack = []
    ...     @action(value=lambda rng: rng.randrange(10))
    ...     def push(self, value): self.stack.append(value)
    ...     @action(when=lambda self: self.stack)
    ...     def pop(self): self.stack.pop()
    """
    if method is not None:
        return _marked(method, {})
    return lambda method: _marked(method, options)


def invariant(method: Method) -> Method:
    """Make a method an invariant, which is checked after the start and after every step.

    It fails if it raises an exception or returns False.

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

    For each test a new machine is created and `start` is called. Then actions are chosen at random
    among those that the configuration includes and whose guard is true. At the end `stop` is
    called.

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
    """Steps of a test: a number, a range (low, high), or a function of a random source. A range is
    a setting: lengths are drawn with the configuration, and have roles."""
    dimensions: ClassVar[Sequence[Dimension]] = ()
    """Settings in addition to the actions; read them as ``self.settings["name"]``. A `Feature` is
    a mode, like an option of the start: it is on or off in a test. An `Integer` named ``steps`` is
    the length of the test. All of them have roles."""
    constraints: ClassVar[Sequence[Constraint]] = ()
    """Constraints between features, in addition to the options of the actions."""

    raises: ClassVar[Any] = ()
    """Exceptions that are a correct outcome of every action, in addition to the actions' own."""
    tolerate: Sequence[str] = ()
    """Known faults after which a test goes on, each named by its id or by a part of its signature.
    They are counted as events."""
    tolerate_and: ClassVar[str] = "restart"
    """What happens after a tolerated fault: `restart`, with `stop` and `start`, or `go on`. After
    an invariant was violated, the test always restarts."""

    compared: ClassVar[bool | None] = None
    """Whether failed comparisons of the program are logged, so that generators can draw the values
    that it compares with (see `mixtures.comparisons`). None: if a generator makes use of them."""

    value_features: ClassVar[bool] = False
    """Whether classes of argument values are features, which tests may leave out (see
    `value_features`)."""

    settings: Mapping[str, Any] = MappingProxyType({})
    """The values of `dimensions` in the current test."""
    _events: AbstractSet[str] = frozenset()
    _covered: tuple[Hits, ...] = ()
    _missing: str = ""
    _pools: ClassVar[tuple[str, ...]] = ()
    _in_loop: ClassVar[bool] = False
    """Whether the methods run in an event loop, because one of them is a coroutine function."""
    _loop: TestLoop | None = None
    _is_tested: bool = False
    """Whether a campaign or a replay calls the methods, and not a printed test."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._pools = tuple(
            dict.fromkeys(
                name
                for base in cls.__mro__
                for name, member in vars(base).items()
                if type(member) is Pool
            )
        )
        cls._run_in_loop()

    @classmethod
    def _run_in_loop(cls) -> None:
        """Let actions, invariants, `start` and `stop` run in a loop, if one of them is async."""
        names = [
            name
            for base in reversed(cls.__mro__)
            for name, member in vars(base).items()
            if name in ("start", "stop") or hasattr(member, ACTION) or hasattr(member, INVARIANT)
        ]
        methods = {name: inspect.getattr_static(cls, name) for name in names}
        cls._in_loop = any(
            inspect.iscoroutinefunction(method) or hasattr(method, IN_LOOP)
            for method in methods.values()
        )
        if cls._in_loop:
            for name, method in methods.items():
                if inspect.isfunction(method) and method is not getattr(Machine, name, None):
                    setattr(cls, name, in_loop(method))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Pools are created here, because a subclass may have an __init__ that does not call ours.
        self = super().__new__(cls)
        for name in cls._pools:
            setattr(self, name, Pool())
        return self

    @classmethod
    def expected_exceptions(cls) -> Any:
        """Return the exceptions that are a correct outcome of every action."""
        return cls.raises

    imports_of_start: ClassVar[tuple[str, ...]] = ()
    """Lines that the code of `code_of_start` needs, like ``from shop import Till``."""

    @classmethod
    def code_of_start(cls) -> tuple[str, str]:
        """Return the name of the machine in a printed test, and the code that creates it."""
        return "machine", f"{cls.__qualname__}()"

    def start(self) -> Any:
        """Set up the program; called before the first step of each test. It may be async."""

    def stop(self) -> Any:
        """Tear down the program; called after the last step or a failure. It may be async."""

    def _end(self) -> None:
        """Call `stop`, and close the event loop of the test if there is one."""
        try:
            self.stop()
        finally:
            loop, self._loop = self._loop, None
            if loop is not None:
                loop.close()

    def event(self, name: str) -> None:
        """Record that something happened in this test; it is a target, as a line or a branch is.

        >>> machine = Machine()
        >>> machine.event("stack was full")
        """
        if name not in self._events:
            self._events |= {str(name)}

    def cover(self, run: Covered) -> None:
        """Record what a native program reached in this test (`swarmtest.coverage.Program.run`).

        If its coverage is unknown, the test still counts, and its coverage is marked as missing.
        """
        hits = run.hits  # read once: a library forgets what was read
        if hits is not None:
            self._covered += (hits,)
        if run.missing:
            self._missing = run.missing

    def tolerates(self, error: Exception, fault: Fault, *, restart: bool = False) -> bool:
        """Return whether a fault is a known one, and the test goes on; then it is counted.

        >>> from swarmtest.core.faults import fault_of_exception
        >>> machine = Machine()
        >>> machine.tolerate = ["KeyError"]
        >>> error = KeyError(3)
        >>> machine.tolerates(error, fault_of_exception(error)), machine.hits()
        (True, ('event:tolerated ce42a992: KeyError',))
        """
        known = any(name == fault.id or name in fault.signature for name in self.tolerate)
        if known:
            self.event(f"tolerated {fault.id}: {fault.signature}")
            if restart or self.tolerate_and == "restart":
                for name in self._pools:
                    getattr(self, name).entries.clear()
                self._end()
                self.start()
        return known

    def hits(self) -> tuple[str, ...]:
        """Return the events of the test so far, as targets."""
        return tuple(f"event:{name}" for name in sorted(self._events))


def _marked(method: Any, options: dict[str, Any]) -> Any:
    if not inspect.isfunction(method):
        raise UserError(f"@action decorates methods, not {method!r}")
    setattr(method, ACTION, options)
    return method
