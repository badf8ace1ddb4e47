"""A random source that knows values worth trying.

Three groups of values are kept beside the random numbers:

- *constants* that the program's source mentions, with those in comparisons (`ProgramConstants`);
- values that this test has *used* before;
- values with which the program has *compared* something in this test, and found it different
  (`comparisons`).

The last two begin empty in every test: a test still follows from its configuration and seed.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple, Self

from swarmtest.subjects.machine.mixtures.comparisons import Log, noted_values
from swarmtest.subjects.machine.mixtures.program_constants import NOTHING, ProgramConstants, read

_MOST_USED = 64
_TRIES = 3


class DrawState(NamedTuple):
    """The state of a random source, with the values it has noted."""

    numbers: Any
    used: tuple[Any, ...]
    compared: Log


class ProgramRandom(random.Random):
    """A random source that knows the constants in the source of the program under test.

    >>> rng = ProgramRandom("swarmtest.subjects.machine.mixtures.program_constants")
    >>> 300_000 in rng.constants.numbers
    True
    """

    def __init__(self, module: str = "", seed: int = 0) -> None:
        """Create the source; `module` is the module of the machine."""
        super().__init__(seed)
        self.module = module
        self.used: list[Any] = []
        """Numbers and texts that this test has drawn."""
        self.compared: Log = {}
        """Numbers and texts in comparisons of the program that failed, in this test."""
        self._constants: ProgramConstants | None = None

    def __new__(cls, *arguments: object, **named: object) -> Self:
        """Create the source: `random.Random` itself takes no name of a module."""
        return super().__new__(cls)

    @property
    def constants(self) -> ProgramConstants:
        """The constants; they are looked for when they are first needed."""
        if self._constants is None:
            self._constants = read(self.module)
        return self._constants

    def begin(self) -> None:
        """Forget what the test before has used."""
        self.used.clear()
        self.compared.clear()

    def note(self, value: Any) -> None:
        """Remember a value that the test uses; of many, the latest."""
        used = self.used
        used.append(value)
        if len(used) > 2 * _MOST_USED:
            del used[:_MOST_USED]

    def draw_state(self) -> DrawState:
        """Return everything that the next draw depends on."""
        return DrawState(self.getstate(), tuple(self.used), dict(self.compared))

    def set_draw_state(self, state: DrawState) -> None:
        """Continue from a state that `draw_state` returned."""
        self.setstate(state.numbers)
        self.used[:] = state.used
        self.compared.clear()
        self.compared.update(state.compared)


def constants_of(rng: random.Random) -> ProgramConstants:
    """Return the constants that a random source knows."""
    return rng.constants if isinstance(rng, ProgramRandom) else NOTHING


def used_value(rng: random.Random, kind: type) -> Any:
    """Return a value of a type that the test has used; None if a few tries find none."""
    if not isinstance(rng, ProgramRandom):
        return None
    used = rng.used
    for _ in range(_TRIES if used else 0):
        value = used[int(rng.random() * len(used))]
        if type(value) is kind:
            return value
    return None


def compared_in(rng: random.Random) -> list[Any]:
    """Return the values with which the program compared in vain so far."""
    if not isinstance(rng, ProgramRandom) or not rng.compared:
        return []
    return noted_values(rng.compared, rng.used)
