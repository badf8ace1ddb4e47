"""Constants of the program under test, which Hypothesis likes to draw: the same in every process.

Hypothesis takes them from whichever modules happen to be imported when it draws, so a seed would
give one test in a worker and another in a replay. Here they come from the modules that the state
machine's own module reaches by its imports, read once.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

from swarmtest.subjects.rule_based.internals import (
    HypothesisProvider,
    choice_constraints_key,
    choice_permitted,
)

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
