"""Draw arguments as Hypothesis draws them, but separately for each step.

Hypothesis draws everything from a `ConjectureData`, a sequence of primitive *choices*.
`ArgumentDraws` is a `ConjectureData` that differs in three ways:

- It starts a new sequence for every step, so that a step can be replayed without the others.
- A draw from a bundle is recorded as the *name* of a value, not as a choice. The index that
  Hypothesis records would mean another value as soon as an earlier step is removed.
- It records no spans and no timings, which only Hypothesis's shrinker needs and which make up half
  of the cost.

In a replay, a choice may no longer fit, because steps were removed and the program is in another
state. It is then replaced by the simplest choice that fits, as in Hypothesis.

`provider_for` makes the constants that Hypothesis draws the same in every process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from random import Random
from types import FunctionType, ModuleType
from typing import Any

from swarmtest.subjects.hypothesis.internals import (
    BUFFER_SIZE,
    ConjectureData,
    HypothesisProvider,
    Reference,
    VarReference,
    choice_constraints_key,
    choice_from_index,
    choice_permitted,
    float_to_int,
    int_to_float,
    unwrap_strategies,
)

_DEEPEST = 100
_CHOICE_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    bytes: "bytes",
}


class ArgumentDraws(ConjectureData):  # type: ignore[misc]
    """The source of the arguments of one test: random draws, or the draws of a saved test."""

    def __init__(self, random: Random | None, provider: type[Any], machine: Any) -> None:
        super().__init__(random=random, provider=provider)
        self.hypothesis_runner = machine
        self.in_body: Callable[[Any], None] | None = None
        """Called with every value that the body of the current rule draws."""
        self.taken: list[tuple[list[Any], int, Any]] = []
        """What this step consumed: for each draw the bundle, the position and the reference."""
        self.begin()

    def begin(
        self, choices: Sequence[Any] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Start a step, with random draws or with the choices and names of a saved step."""
        self.drawn: list[Any] = []
        self.named: list[str] = []
        self._choices = None if choices is None else iter(choices)
        self._names = None if names is None else iter(names)
        self.taken.clear()
        self.length = self.depth = 0
        self.frozen = False  # a draw that gave up, in a step that was skipped, sets it

    def give_back(self) -> None:
        """Put back what this step consumed from bundles, because it will not run."""
        for bundle, position, reference in reversed(self.taken):
            bundle.insert(position, reference)
        self.taken.clear()

    def draw(self, strategy: Any, label: Any = None, observe_as: Any = None) -> Any:
        strategy.validate()
        unwrapped = unwrap_strategies(strategy)
        if isinstance(unwrapped, Reference):
            value = self._refer(unwrapped)
        else:
            if strategy.is_empty or self.depth >= _DEEPEST:
                self.mark_invalid()
            self.depth += 1
            try:
                value = unwrapped.do_draw(self)
            finally:
                self.depth -= 1
        if self.in_body is not None and observe_as is not None:
            self.in_body(value)
        return value

    def _draw(self, choice_type: str, constraints: Any, *, observe: bool, forced: Any) -> Any:
        # Forced values are saved too, so they take a place in the sequence.
        saved = next(self._choices, None) if self._choices is not None and observe else None
        if forced is not None:
            value = forced
        elif self._choices is None or not observe:
            value = getattr(self.provider, f"draw_{choice_type}")(**constraints)
        elif _CHOICE_TYPES.get(type(saved)) == choice_type and choice_permitted(saved, constraints):
            value = saved
        else:
            value = choice_from_index(0, choice_type, constraints)
        if value != value:
            # Like Hypothesis, return a new object for each NaN.
            value = int_to_float(float_to_int(value))
        if observe:
            self.drawn.append(value)
            self.length += len(value) if isinstance(value, str | bytes) else 2
            if self.length > BUFFER_SIZE:
                self.mark_overrun()
        return value

    def _refer(self, strategy: Any) -> Any:
        """Draw from a bundle, like `Bundle.do_draw`, but by name."""
        machine = self.hypothesis_runner
        bundle = machine.bundle(strategy.name)
        transformations = getattr(strategy, "_transformations", ())
        for position in self._positions(bundle):
            reference = bundle[position]
            passed, value = _transformed(machine.names_to_values[reference.name], transformations)
            if passed:
                break
        else:
            self.mark_invalid(f"Cannot draw from bundle {strategy.name!r}")
        if strategy.consume:
            self.taken.append((bundle, position, bundle.pop(position)))
        self.named.append(reference.name)
        return reference if getattr(strategy, "draw_references", True) else value

    def _positions(self, bundle: list[Any]) -> Sequence[int]:
        """Return the positions of a bundle to try, in the order of preference."""
        if self._names is None:
            positions = list(range(len(bundle)))
            self._random.shuffle(positions)
            return positions
        name = next(self._names, None)
        if name is None:  # the saved step has fewer names than the rule draws now
            return range(len(bundle) - 1, -1, -1)
        return [at for at, reference in enumerate(bundle) if reference.name == name][:1]

    def start_span(self, label: int) -> None:
        self.depth += 1

    def stop_span(self, *, discard: bool = False) -> None:
        self.depth -= 1

    def freeze(self) -> None:
        self.frozen = True

    def _pooled_constraints(self, choice_type: str, constraints: Any) -> Any:
        return constraints

    def track_arg_span(self) -> Any:
        return _NoSpan()


class _NoSpan:
    def __enter__(self) -> int:
        return 0

    def __exit__(self, *error: object) -> None:
        return None


def _transformed(value: Any, transformations: Sequence[Any]) -> tuple[bool, Any]:
    """Apply the `.filter` and `.map` of a strategy; return whether the value passed, and it."""
    for name, function, *_ in transformations:
        if name == "map":
            value = function(value)
        elif not function(value):
            return False, None
    return True, value


def resolved(machine: Any, value: Any) -> Any:
    """Return an argument as the rule gets it, with references replaced by values."""
    if isinstance(value, VarReference):
        return machine.names_to_values[value.name]
    if isinstance(value, list) and value and all(isinstance(v, VarReference) for v in value):
        return [machine.names_to_values[item.name] for item in value]
    return value


# Constants of the program under test.
#
# Hypothesis sometimes draws constants of the program, and takes them from all modules that happen
# to be imported when it draws. So a seed could give one test in a worker and another in a replay.
# Here they come only from the modules that the state machine's module imports, directly or not.

_MOST_CACHED = 4096


def reached_from(module: ModuleType) -> list[ModuleType]:
    """Return a module and the modules that it imported, directly or not, in a fixed order."""
    reached = {module.__name__: module}
    waiting = [module]
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            name = _module_of(value)
            other = sys.modules.get(name)
            if other is not None and name not in reached and _is_local(other):
                reached[name] = other
                waiting.append(other)
    return [reached[name] for name in sorted(reached)]


def _module_of(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    # Read no attribute of the value itself: it may be a proxy that raises.
    owner = value if isinstance(value, type | FunctionType) else type(value)
    name = owner.__module__
    return name if isinstance(name, str) else ""


def _is_local(module: ModuleType) -> bool:
    from hypothesis.internal.constants_ast import is_local_module_file

    file = getattr(module, "__file__", None)
    own = module.__name__.partition(".")[0] == "swarmtest"
    return file is not None and not own and bool(is_local_module_file(file))


def provider_for(module: ModuleType | None) -> type[Any]:
    """Return a Hypothesis provider that draws only constants of the modules reached from one."""
    original: type[Any] = HypothesisProvider
    try:
        from hypothesis.internal.conjecture.providers import GLOBAL_CONSTANTS
        from hypothesis.internal.constants_ast import constants_from_module
    except ImportError:  # this version of Hypothesis draws no constants
        return original

    local = [
        constants_from_module(reached)
        for reached in (reached_from(module) if module is not None else ())
        if _is_local(reached)
    ]
    cache: dict[Any, list[tuple[Any, ...]]] = {}

    def permitted(choice_type: Any, constraints: Any) -> list[tuple[Any, ...]]:
        pools = [[GLOBAL_CONSTANTS], local]
        return [
            values
            for pool in pools
            if (
                values := tuple(
                    value
                    for constants in pool
                    for value in constants.set_for_type(choice_type)
                    if choice_permitted(value, constraints)
                )
            )
        ]

    class Provider(HypothesisProvider):  # type: ignore[misc]
        def _maybe_draw_constant(
            self, choice_type: str, constraints: Any, *, p: float = 0.05
        ) -> Any:
            random = self._random
            if random.random() > p:
                return None
            key = (choice_type, choice_constraints_key(choice_type, constraints))
            if key not in cache:
                if len(cache) > _MOST_CACHED:
                    cache.clear()
                cache[key] = permitted(choice_type, constraints)
            pools = cache[key]
            return random.choice(random.choice(pools)) if pools else None

    return Provider
