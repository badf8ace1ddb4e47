"""Generators of arguments: a small set of our own, plain callables, and Hypothesis strategies.

A generator draws a value from a `random.Random`. Our own generators have two more properties that
make machines fast: a Python expression that draws the value inline (`inline`), and whether the
values they draw can never change (`immutable`), so that a test may keep them without a copy.
"""

from __future__ import annotations

import copy
import inspect
import math
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.mixtures.numbers import any_float, mixed_float, mixed_integer
from swarmtest.subjects.machine.mixtures.texts import any_text, mixed_binary, mixed_text, note

T = TypeVar("T")

_MEDIUM, _WIDE = 1 << 12, 1 << 24
"""With more values than the first, half of the numbers of a range are not drawn uniformly; with
more than the second, most of them."""
_MIXED_TEXTS = 0.3
"""The share of texts and bytes whose letters are not independent."""
_REPEATED_ELEMENTS = 1 / 8
"""The share of lists in which an element is put into a second place."""
_HYPOTHESIS_TRIES = 50


@dataclass(frozen=True)
class Generator(Generic[T]):
    """Draws values. Any function of a `random.Random` can be used instead of a generator.

    >>> dice = Generator(lambda rng: rng.randrange(6) + 1)
    >>> 1 <= dice.draw(random.Random(0)) <= 6
    True
    """

    draw: Callable[[random.Random], T]
    inline: str = ""
    """An expression over ``random`` (the method) and the names in `constants`."""
    constants: dict[str, Any] = field(default_factory=dict)
    immutable: bool = False
    allows: Callable[[Any], bool] | None = None
    """Whether a value could have been drawn; None if unknown. Reduction tries no other values."""
    options: tuple[T, ...] = ()
    """All values that can be drawn, the simplest first, if there are few."""
    bounds: tuple[float, float] | None = None
    """The smallest and the largest number that can be drawn; None if it draws no numbers."""
    mixed: bool = False
    """Whether constants of the program, and values that the test has used, are among the values."""


def integers(low: int = -100, high: int = 100) -> Generator[int]:
    """Draw whole numbers from `low` to `high`, both included.

    Up to 4,096 values are equally likely. In a wider range half of the numbers, and in one of more
    than 16 million nearly all, are those at which programs change their minds: the ends of the
    range, numbers near 0, powers of two and their neighbours, numbers of any length, numbers that
    the test has used, those that the source of the program under test mentions, and those with
    which the program has compared in vain (see `Machine.compared`).

    >>> integers(1, 6).draw(random.Random(0)) in range(1, 7)
    True
    """
    if high < low:
        raise UserError(f"integers({low}, {high}): low is above high")
    span = high - low + 1
    allows = _within(int, low, high)
    if span > _WIDE:
        return Generator(
            lambda rng: mixed_integer(rng, low, high),
            immutable=True,
            allows=allows,
            bounds=(low, high),
            mixed=True,
        )
    uniform = f"{low} + int(random() * {span})" if low else f"int(random() * {span})"
    if span > _MEDIUM:
        return Generator(
            lambda rng: (
                mixed_integer(rng, low, high)
                if rng.random() < 0.5
                else low + int(rng.random() * span)
            ),
            f"mixed(rng, {low}, {high}) if random() < 0.5 else {uniform}",
            {"mixed": mixed_integer},
            immutable=True,
            allows=allows,
            bounds=(low, high),
            mixed=True,
        )
    return Generator(
        lambda rng: low + int(rng.random() * span),
        uniform,
        immutable=True,
        allows=allows,
        bounds=(low, high),
    )


def floats(low: float | None = -1.0, high: float | None = 1.0) -> Generator[float]:
    """Draw floating-point numbers from `low` to `high`, both included.

    A quarter of them are special: the ends, zeros of both signs, whole numbers, powers of two,
    numbers of the program's source. With None for both, any float is drawn, also NaN and infinity.

    >>> 0 <= floats(0, 1).draw(random.Random(0)) <= 1
    True
    >>> any(x != x for x in map(floats(None, None).draw, map(random.Random, range(200))))
    True
    """
    if low is None or high is None:
        if low is not None or high is not None:
            raise UserError(f"floats({low}, {high}): None stands for both ends, or for neither")
        return Generator(
            any_float, immutable=True, allows=lambda value: type(value) is float, mixed=True
        )
    low, high = float(low), float(high)
    if not (low <= high and math.isfinite(high - low)):
        raise UserError(
            f"floats({low}, {high}): low is at most high, and their difference a number; "
            "floats(None, None) draws any float"
        )
    span = high - low
    return Generator(
        lambda rng: (
            mixed_float(rng, low, high) if rng.random() < 0.25 else low + rng.random() * span
        ),
        f"mixed(rng, {low!r}, {high!r}) if random() < 0.25 else {low!r} + random() * {span!r}",
        {"mixed": mixed_float},
        immutable=True,
        allows=_within(float, low, high),
        bounds=(low, high),
        mixed=True,
    )


def booleans(p: float = 0.5) -> Generator[bool]:
    """Draw True with probability p, otherwise False.

    >>> booleans(1.0).draw(random.Random(0))
    True
    """
    return Generator(
        lambda rng: rng.random() < p,
        f"random() < {p!r}",
        immutable=True,
        options=tuple(value for value, chance in ((False, 1 - p), (True, p)) if chance > 0),
    )


def sampled_from(values: Sequence[T]) -> Generator[T]:
    """Draw one of the values, uniformly. The values are not copied, so they must be immutable.

    >>> sampled_from("abc").draw(random.Random(0)) in "abc"
    True
    """
    options = tuple(values)
    if not options:
        raise UserError("sampled_from() needs at least one value")
    count = len(options)
    return Generator(
        lambda rng: options[int(rng.random() * count)],
        f"options[int(random() * {count})]",
        {"options": options},
        immutable=True,
        options=options,
    )


def just(value: T) -> Generator[T]:
    """Draw always this value, as a new copy each time.

    >>> just([]).draw(random.Random(0))
    []
    """
    return Generator(lambda rng: copy.deepcopy(value))


def text(
    alphabet: str | None = string.ascii_lowercase, max_size: int = 10, min_size: int = 0
) -> Generator[str]:
    """Draw strings over an alphabet, every length from `min_size` to `max_size` equally likely.

    Some are repeated letters, texts that the test has used or that differ from one in one place,
    and texts that the program's source mentions. With None as the alphabet, any character is drawn,
    also surrogates, and parts that parsers care about.

    >>> len(text("ab", max_size=3).draw(random.Random(0))) <= 3
    True
    >>> len(text(None, max_size=30).draw(random.Random(0))) <= 30
    True
    """
    size = _sizes(min_size, max_size)
    if alphabet is None:

        def draw_any(rng: random.Random) -> str:
            drawn = any_text(rng, min_size, max_size)
            note(rng, drawn)
            return drawn

        return Generator(
            draw_any,
            immutable=True,
            allows=lambda value: type(value) is str and min_size <= len(value) <= max_size,
            mixed=True,
        )
    if not alphabet and max_size:
        raise UserError("text() needs at least one letter in its alphabet")
    letters = frozenset(alphabet)

    def draw(rng: random.Random) -> str:
        if rng.random() < _MIXED_TEXTS:
            drawn = mixed_text(rng, alphabet, letters, min_size, max_size)
        else:
            drawn = "".join(rng.choices(alphabet, k=size(rng)))
        note(rng, drawn)
        return drawn

    def allows(value: Any) -> bool:
        return type(value) is str and min_size <= len(value) <= max_size and letters >= set(value)

    return Generator(draw, immutable=True, allows=allows, mixed=True)


def binary(max_size: int = 10, min_size: int = 0) -> Generator[bytes]:
    """Draw byte strings, every length from `min_size` to `max_size` equally likely.

    Some are repeated bytes, text, or nearly equal to one that the test has used.

    >>> len(binary(max_size=3).draw(random.Random(0))) <= 3
    True
    """
    size = _sizes(min_size, max_size)

    def draw(rng: random.Random) -> bytes:
        if rng.random() < _MIXED_TEXTS:
            drawn = mixed_binary(rng, min_size, max_size)
        else:
            drawn = rng.randbytes(size(rng))
        note(rng, drawn)
        return drawn

    def allows(value: Any) -> bool:
        return type(value) is bytes and min_size <= len(value) <= max_size

    return Generator(draw, immutable=True, allows=allows, mixed=True)


def lists(elements: Any, max_size: int = 5, min_size: int = 0) -> Generator[list[Any]]:
    """Draw lists of drawn elements, every length from `min_size` to `max_size` equally likely.

    In one of eight lists, an element appears again in another place.

    >>> all(0 <= x <= 9 for x in lists(integers(0, 9)).draw(random.Random(0)))
    True
    """
    element, size = as_generator(elements), _sizes(min_size, max_size)
    draw, possible = element.draw, allowed_by(element)

    def allows(value: Any) -> bool:
        fits = type(value) is list and min_size <= len(value) <= max_size
        return fits and possible is not None and all(map(possible, value))

    repeats = _REPEATED_ELEMENTS if element.immutable else 0.0

    def draw_list(rng: random.Random) -> list[Any]:
        items = [draw(rng) for _ in range(size(rng))]
        if len(items) > 1 and rng.random() < repeats:
            items[int(rng.random() * len(items))] = items[int(rng.random() * len(items))]
        return items

    return Generator(draw_list, allows=allows if possible else None, mixed=element.mixed)


def tuples(*parts: Any) -> Generator[tuple[Any, ...]]:
    """Draw tuples with one drawn value per part.

    >>> tuples(just("a"), integers(1, 1)).draw(random.Random(0))
    ('a', 1)
    """
    generators = [as_generator(part) for part in parts]
    possible = [allowed_by(g) for g in generators]

    def allows(value: Any) -> bool:
        fits = type(value) is tuple and len(value) == len(possible)
        return fits and all(p is not None and p(v) for p, v in zip(possible, value, strict=True))

    return Generator(
        lambda rng: tuple(g.draw(rng) for g in generators),
        immutable=all(g.immutable for g in generators),
        allows=allows if all(possible) else None,
        mixed=any(g.mixed for g in generators),
    )


def one_of(*options: Any) -> Generator[Any]:
    """Draw a value from one of several generators, each equally likely.

    >>> one_of(just(None), integers(1, 1)).draw(random.Random(0)) in (None, 1)
    True
    """
    generators = [as_generator(option) for option in options]
    if not generators:
        raise UserError("one_of() needs at least one generator")
    possible = [allowed_by(g) for g in generators]
    return Generator(
        lambda rng: generators[int(rng.random() * len(generators))].draw(rng),
        immutable=all(g.immutable for g in generators),
        allows=lambda value: any(p is not None and p(value) for p in possible),
        mixed=any(g.mixed for g in generators),
    )


def from_hypothesis(strategy: Any) -> Generator[Any]:
    """Return a generator that draws from a Hypothesis strategy, reproducibly.

    Hypothesis has no public way to draw one value from a given `random.Random`. `ConjectureData`
    with a random source is what its own engine uses, and has been stable for years. A draw that
    Hypothesis gives up (``assume``, a filter that never passes) is repeated a few times.

    >>> from hypothesis import strategies
    >>> 0 <= from_hypothesis(strategies.integers(0, 9)).draw(random.Random(1)) <= 9
    True
    """
    from hypothesis.control import BuildContext
    from hypothesis.errors import InvalidArgument, StopTest
    from hypothesis.internal.conjecture.data import ConjectureData

    try:
        strategy.validate()
    except InvalidArgument as error:
        raise UserError(f"Hypothesis refuses the strategy {strategy!r}: {error}") from None

    # Newer versions require the test that draws.
    needs_test = "wrapped_test" in inspect.signature(BuildContext).parameters
    context: dict[str, Any] = {"wrapped_test": from_hypothesis} if needs_test else {}

    def draw(rng: random.Random) -> Any:
        for _ in range(_HYPOTHESIS_TRIES):
            data = ConjectureData(random=random.Random(rng.getrandbits(64)))
            try:
                with BuildContext(data, is_final=False, **context):
                    return data.draw(strategy)
            except StopTest:
                continue
        raise UserError(
            f"{strategy!r} gave no value in {_HYPOTHESIS_TRIES} tries: its filters are too strict"
        )

    return Generator(draw)


def as_generator(source: Any, where: str = "") -> Generator[Any]:
    """Return a generator for what a user wrote: a generator, a callable or a strategy."""
    if isinstance(source, Generator):
        return source
    if type(source).__module__.partition(".")[0] == "hypothesis":
        return from_hypothesis(source)
    if callable(source):
        return Generator(source)
    raise UserError(
        f"{where or 'a generator'}: expected a generator (like integers(0, 9)), a function of a "
        f"random source, a pool or a Hypothesis strategy, not {source!r}"
    )


def allowed_by(generator: Generator[Any]) -> Callable[[Any], bool] | None:
    """Return a function that tells whether a generator could have drawn a value; None if unknown.

    A value equals an option only if it has the same type: True is not 1.
    """
    if generator.options:
        return lambda value: any(type(value) is type(o) and value == o for o in generator.options)
    return generator.allows


def _within(kind: type[float], low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind and low <= value <= high


def _sizes(low: int, high: int) -> Callable[[random.Random], int]:
    if not 0 <= low <= high:
        raise UserError(f"sizes go from min_size to max_size: 0 <= {low} <= {high} does not hold")
    return lambda rng: low + int(rng.random() * (high - low + 1))
