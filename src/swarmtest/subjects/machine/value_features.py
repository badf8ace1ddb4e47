"""Values of arguments as features, which a test may leave out like an action.

Some faults need an argument never, or always, to be of some kind: only small numbers, never an
empty text, one key of five again and again. So each argument has *classes* of values, and each
class is a feature:

- each value of a small set: of `sampled_from`, `booleans`, and a range of up to eight numbers;
- of wider ranges: zero, negative, small (to 16), large and huge (above 65,536) numbers;
- of texts, bytes and lists: empty, short and long ones, texts with and without a final newline;
- of numbers in wide ranges and texts: that they repeat an earlier value of the test.

Actions that draw from the same generator under the same name share these features, so that a test
may leave out a key everywhere. A configuration without any class of an argument does not restrict
it. In a configuration with weights, classes are drawn in proportion to them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.core.constraints import at_least_one_of
from swarmtest.core.space import Space
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.machine.machine import Action, FromPool

_MOST_OPTIONS = 8
_LONGEST_NAME = 24
_SMALL, _LARGE = 16, 1 << 16
_TRIES = 12
"""Values that are drawn until one is of a class; after that, it may be of another."""
_SAMPLES = 400
_LEVELS = 8
"""Weights are rounded to eighths."""
_REPEATED = 0.5
"""The share of values that repeat, in tests with that feature."""

Classify = Callable[[Any], str]


@dataclass(frozen=True)
class ValueClasses:
    """The classes of the values of one argument: their features, and how to draw from them."""

    features: tuple[str, ...]
    labels: tuple[str, ...]
    classify: Classify | None
    """Returns the label of a value; None if each value of `options` is a class of its own."""
    options: tuple[Any, ...] = ()


class ValueChoice:
    """The classes of one argument that the current configuration includes."""

    def __init__(self, classes: ValueClasses, source: Generator[Any]) -> None:
        self.classes = classes
        self._source = source
        self._labels: list[str] = []
        """The included labels, each as often as its weight says; empty: no restriction."""
        self._options: list[Any] = []

    def restrict(self, weights: Mapping[str, float]) -> None:
        """Draw from the classes with a weight above 0 from now on."""
        pairs = list(zip(self.classes.features, self.classes.labels, strict=True))
        counts = [round(weights.get(feature, 0.0) * _LEVELS + 0.49) for feature, _ in pairs]
        if len(set(counts)) == 1:  # all alike: as the generator draws them
            counts = [0] * len(pairs)
        labels = [
            label for (_, label), count in zip(pairs, counts, strict=True) for _ in range(count)
        ]
        self._labels[:] = labels
        if self.classes.classify is None:
            self._options[:] = [
                option
                for option, count in zip(self.classes.options, counts, strict=True)
                for _ in range(count)
            ]

    def draw(self, rng: random.Random) -> Any:
        """Draw a value of an included class."""
        if self._options:
            return self._options[int(rng.random() * len(self._options))]
        if not self._labels or self.classes.classify is None:
            return self._source.draw(rng)
        label = self._labels[int(rng.random() * len(self._labels))]
        for _ in range(_TRIES):
            value = self._source.draw(rng)
            if self.classes.classify(value) == label:
                return value
        simple = _simple_value(label, type(value), rng)
        allows = self._source.allows
        return simple if simple is not None and allows and allows(simple) else value


class RepeatChoice:
    """Whether the values of one generator repeat, and those that the test has used."""

    def __init__(self, feature: str, draw: Callable[[random.Random], Any]) -> None:
        self.feature = feature
        self._draw = draw
        self._on = False
        self._used: list[Any] = []

    def restrict(self, weights: Mapping[str, float]) -> None:
        """Begin a test; its values repeat if the feature is included."""
        self._on = weights.get(self.feature, 0.0) > 0
        self._used.clear()

    def draw(self, rng: random.Random) -> Any:
        """Draw a value, or return one that the test has drawn before."""
        if not self._on:
            return self._draw(rng)
        if self._used and rng.random() < _REPEATED:
            return self._used[int(rng.random() * len(self._used))]
        value = self._draw(rng)
        self._used.append(value)
        return value


class ValueFeatures:
    """The features of the argument values of a machine's actions."""

    def __init__(self, actions: Sequence[Action], taken: Sequence[str]) -> None:
        """Find the classes; `taken` are the names of other features."""
        self._choices: dict[tuple[str, int], tuple[Generator[Any], list[Any]]] = {}
        self.names: tuple[str, ...] = ()
        users = Counter(
            (name, id(source))
            for action in actions
            for name, source in action.arguments.items()
            if isinstance(source, Generator)
        )
        names: dict[str, None] = {}
        for action in actions:
            for argument, source in action.arguments.items():
                key = argument, id(source)
                if isinstance(source, FromPool) or key in self._choices:
                    continue
                prefix = argument if users[key] > 1 else f"{action.name}.{argument}"
                choices = _choices_of(source, prefix, [*taken, *names])
                self._choices[key] = choices
                names |= dict.fromkeys(name for choice in choices[1] for name in _features(choice))
        self.names = tuple(names)

    def action(self, action: Action) -> Action:
        """Return an action that draws its arguments from the included classes."""
        arguments = {
            name: self._choices[name, id(source)][0] if isinstance(source, Generator) else source
            for name, source in action.arguments.items()
        }
        return replace(action, arguments=arguments)

    def begin(self, weights: Sequence[float]) -> None:
        """Begin a test; `weights` are those of `names`, in order."""
        by_name = dict(zip(self.names, weights, strict=True))
        for _, choices in self._choices.values():
            for choice in choices:
                choice.restrict(by_name)


def with_value_features(space: Space, actions: Sequence[Action], names: Sequence[str]) -> Space:
    """Return a space with more features, of which at least one is an action."""
    more = [at_least_one_of(*(action.name for action in actions))] if names else []
    return Space([*space.dimensions, *names], [*space.constraints, *more])


def _features(choice: ValueChoice | RepeatChoice) -> tuple[str, ...]:
    return (choice.feature,) if isinstance(choice, RepeatChoice) else choice.classes.features


def _choices_of(
    source: Generator[Any], prefix: str, taken: Sequence[str]
) -> tuple[Generator[Any], list[Any]]:
    """Return a generator that follows the configuration, and what it follows."""
    choices: list[Any] = []
    draw = source.draw
    for classes in _classes_of(source, prefix):
        if set(classes.features) & set(taken):
            continue
        choice = ValueChoice(classes, replace(source, draw=draw))
        choices.append(choice)
        draw = choice.draw
    repeated = f"{prefix}: repeated"
    if source.immutable and repeated not in taken and _repeats_matter(source):
        again = RepeatChoice(repeated, draw)
        choices.append(again)
        draw = again.draw
    if not choices:
        return source, []
    return replace(source, draw=draw, inline="", constants={}), choices


def _repeats_matter(source: Generator[Any]) -> bool:
    if source.bounds is not None:
        return source.bounds[1] - source.bounds[0] > 2 * _SMALL
    return source.mixed


def _classes_of(source: Generator[Any], prefix: str) -> list[ValueClasses]:
    """Return the ways in which the values of a generator are divided into classes."""
    options: tuple[Any, ...] = source.options
    if not options and source.bounds is not None and source.allows is not None:
        low, high = source.bounds
        if high - low < _MOST_OPTIONS and source.allows(low):
            options = tuple(range(int(low), int(high) + 1))
    if options:
        names = [_shown(option) for option in options]
        if 2 <= len(options) <= _MOST_OPTIONS and len(set(names)) == len(names):
            features = tuple(f"{prefix}={name}" for name in names)
            return [ValueClasses(features, tuple(names), None, options)]
        return []
    rng = random.Random(0)
    try:
        values = [source.draw(rng) for _ in range(_SAMPLES)]
    except Exception:
        return []  # the campaign reports it when the argument is drawn
    kinds = {type(value) for value in values}
    if kinds <= {int} or kinds <= {float}:
        return _with_labels(values, [_number_class], prefix)
    if len(kinds) == 1 and kinds <= {str, bytes, list}:
        longest = max(map(len, values))
        ways: list[Classify] = [lambda value: _length_class(value, longest)]
        if kinds == {str}:
            ways.append(_end_class)
        return _with_labels(values, ways, prefix)
    return []


def _with_labels(
    values: Sequence[Any], ways: Sequence[Classify], prefix: str
) -> list[ValueClasses]:
    divided = []
    for classify in ways:
        counts = Counter(map(classify, values))
        labels = tuple(sorted(label for label, count in counts.items() if count > 1))
        if len(labels) > 1:
            divided.append(
                ValueClasses(tuple(f"{prefix}: {label}" for label in labels), labels, classify)
            )
    return divided


def _number_class(number: float) -> str:
    if number == 0:
        return "zero"
    if not number > 0:
        return "negative"
    if number <= _SMALL:
        return "small"
    return "large" if number <= _LARGE else "huge"


def _simple_value(label: str, kind: type, rng: random.Random) -> Any:
    """Return a value of a class that is rare among those that are drawn; None if there is none."""
    if label == "empty":
        return kind()
    number = 1 + int(rng.random() * _SMALL)
    simple = {"zero": 0, "small": number, "negative": -number}
    return kind(simple[label]) if label in simple else None


def _length_class(value: Any, longest: int) -> str:
    if not len(value):
        return "empty"
    return "short" if len(value) * 2 <= longest else "long"


def _end_class(text: str) -> str:
    return "final newline" if text.endswith("\n") else "no final newline"


def _shown(option: Any) -> str:
    """Return how a value is written in the name of a feature; names have no outer spaces."""
    name = getattr(option, "__qualname__", None) or str(getattr(option, "name", "")) or repr(option)
    name = " ".join(name.split()).replace(",", ";")
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."
