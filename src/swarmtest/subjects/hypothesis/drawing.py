"""Drawing arguments as Hypothesis draws them, but step by step.

Hypothesis draws everything from a `ConjectureData`, a sequence of primitive *choices*. `Draws` is
one of these, and differs in three ways:

- It starts a new sequence for every step, so that a step can be replayed when others are gone.
- A draw from a bundle is no choice, but the *name* of a value: the index that Hypothesis would keep
  means another value as soon as an earlier step is gone.
- It keeps no spans and no timings, which serve Hypothesis's shrinker and make up half of the cost.

In a replay, a choice that does not fit (the program is in another state, because steps were
removed) gives way to the simplest one that does, as it does in Hypothesis.
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

# -------------------------------------------------------------------------------------------------
# Constants of the program under test, which Hypothesis likes to draw: the same in every process.
#
# Hypothesis takes them from whichever modules happen to be imported when it draws, so a seed would
# give one test in a worker and another in a replay. Here they come from the modules that the state
# machine's own module reaches by its imports, read once.

_MOST_KEPT = 4096


def reached_from(module: ModuleType) -> list[ModuleType]:
    """A module and those that it imported, directly or not, in a fixed order."""
    found = {module.__name__: module}
    waiting = [module]
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            name = _module_of(value)
            other = sys.modules.get(name)
            if other is not None and name not in found and _is_local(other):
                found[name] = other
                waiting.append(other)
    return [found[name] for name in sorted(found)]


def _module_of(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    # Nothing is asked of the value itself: it may be a proxy that objects.
    asked = value if isinstance(value, type | FunctionType) else type(value)
    name = asked.__module__
    return name if isinstance(name, str) else ""


def _is_local(module: ModuleType) -> bool:
    from hypothesis.internal.constants_ast import is_local_module_file

    file = getattr(module, "__file__", None)
    own = module.__name__.partition(".")[0] == "swarmtest"
    return file is not None and not own and bool(is_local_module_file(file))


def provider_for(module: ModuleType | None) -> type[Any]:
    """A provider of Hypothesis that draws the constants of these modules only."""
    found: type[Any] = HypothesisProvider
    try:
        from hypothesis.internal.conjecture.providers import GLOBAL_CONSTANTS
        from hypothesis.internal.constants_ast import constants_from_module
    except ImportError:  # a version that draws no constants
        return found

    local = [
        constants_from_module(reached)
        for reached in (reached_from(module) if module is not None else ())
        if _is_local(reached)
    ]
    kept: dict[Any, list[tuple[Any, ...]]] = {}

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
            if key not in kept:
                if len(kept) > _MOST_KEPT:
                    kept.clear()
                kept[key] = permitted(choice_type, constraints)
            pools = kept[key]
            return random.choice(random.choice(pools)) if pools else None

    return Provider


# -------------------------------------------------------------------------------------------------

_DEEPEST = 100
_CHOICE_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    bytes: "bytes",
}


class Draws(ConjectureData):  # type: ignore[misc]
    """Where the arguments of one test come from: a random source, or what was drawn before."""

    def __init__(self, random: Random | None, provider: type[Any], machine: Any) -> None:
        super().__init__(random=random, provider=provider)
        self.hypothesis_runner = machine
        self.in_body: Callable[[Any], None] | None = None
        """Told of every value that a rule's body draws, while it runs."""
        self.taken: list[tuple[list[Any], int, Any]] = []
        """What this step consumed from bundles: the bundle, the position and the reference."""
        self.begin()

    def begin(
        self, choices: Sequence[Any] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Start a step: from the random source, or with the choices and names of a saved one."""
        self.drawn: list[Any] = []
        self.named: list[str] = []
        self._choices = None if choices is None else iter(choices)
        self._names = None if names is None else iter(names)
        self.taken.clear()
        self.length = self.depth = 0
        self.frozen = False  # by a draw that gave up, in a step that was skipped

    def give_back(self) -> None:
        """Undo what this step took from bundles: it will not run."""
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
        # What is forced was saved as well: it counts in the sequence.
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
            # As Hypothesis does: no two NaNs are the same object.
            value = int_to_float(float_to_int(value))
        if observe:
            self.drawn.append(value)
            self.length += len(value) if isinstance(value, str | bytes) else 2
            if self.length > BUFFER_SIZE:
                self.mark_overrun()
        return value

    def _refer(self, strategy: Any) -> Any:
        """Draw from a bundle, as `Bundle.do_draw` does, but by name."""
        machine = self.hypothesis_runner
        bundle = machine.bundle(strategy.name)
        transformations = getattr(strategy, "_transformations", ())
        for position in self._positions(bundle):
            reference = bundle[position]
            kept, value = _transformed(machine.names_to_values[reference.name], transformations)
            if kept:
                break
        else:
            self.mark_invalid(f"Cannot draw from bundle {strategy.name!r}")
        if strategy.consume:
            self.taken.append((bundle, position, bundle.pop(position)))
        self.named.append(reference.name)
        return reference if getattr(strategy, "draw_references", True) else value

    def _positions(self, bundle: list[Any]) -> Sequence[int]:
        """Where to look in a bundle, in the order of preference."""
        if self._names is None:
            positions = list(range(len(bundle)))
            self._random.shuffle(positions)
            return positions
        name = next(self._names, None)
        if name is None:  # fewer were drawn when the test was made
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
    """A bundle's value after the `.filter` and `.map` of the strategy; whether it passed."""
    for name, function, *_ in transformations:
        if name == "map":
            value = function(value)
        elif not function(value):
            return False, None
    return True, value


def resolved(machine: Any, value: Any) -> Any:
    """An argument as the rule gets it: references become the values they name."""
    if isinstance(value, VarReference):
        return machine.names_to_values[value.name]
    if isinstance(value, list) and value and all(isinstance(v, VarReference) for v in value):
        return [machine.names_to_values[item.name] for item in value]
    return value
