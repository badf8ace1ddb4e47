"""The dimensions that a space consists of.

A `Feature` is something a test may contain and the generator can leave out. The other dimensions
are settings: a `Flag`, an `Integer` range, a `Choice`, or the `Test` to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from swarmtest.core.errors import UserError

Scalar: TypeAlias = bool | int | float | str
"""The type of a setting's value, which has to survive JSON unchanged."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Something a test may contain and the generator can leave out.

    >>> Feature("close", requires=["open"]).requires
    ('open',)
    """

    kind: ClassVar[str] = "feature"

    name: str
    rate: float | None = None
    """Probability of inclusion, for strategies that draw features; None: the strategy's own."""
    group: str | None = None
    """A strategy that works by groups includes or leaves out all features of a group together."""
    requires: tuple[str, ...] = ()
    """Names of features without which this one makes no sense."""
    excludes: tuple[str, ...] = ()
    """Names of features that cannot be in the same configuration."""
    mandatory: bool = False
    """Always included."""

    if TYPE_CHECKING:  # any sequence is accepted, and kept as a tuple

        def __init__(
            self,
            name: str,
            rate: float | None = None,
            group: str | None = None,
            requires: Sequence[str] = (),
            excludes: Sequence[str] = (),
            mandatory: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "requires", _names(self.requires, self.name, "requires"))
        object.__setattr__(self, "excludes", _names(self.excludes, self.name, "excludes"))
        if self.rate is not None and not (
            isinstance(self.rate, int | float) and 0.0 <= self.rate <= 1.0
        ):
            raise UserError(
                f"feature {self.name!r}: rate is a probability, from 0 to 1, not {self.rate!r}"
            )


@dataclass(frozen=True, slots=True)
class Flag:
    """A setting that is on or off.

    >>> Flag("fsync").values
    (False, True)
    """

    kind: ClassVar[str] = "flag"

    name: str
    default: bool = False
    values: tuple[Scalar, ...] = field(default=(False, True), init=False)

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class Integer:
    """A setting from a range of integers, both ends included.

    >>> list(Integer("frequency", 0, 1000, step=250).values)
    [0, 250, 500, 750, 1000]
    """

    kind: ClassVar[str] = "integer"

    name: str
    low: int
    high: int
    step: int = 1
    default: int | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.step < 1 or self.high < self.low:
            raise UserError(
                f"integer {self.name!r}: needs low <= high and step >= 1, "
                f"not {self.low}..{self.high} by {self.step}"
            )
        if self.default is None:
            object.__setattr__(self, "default", self.low)
        elif self.default not in self.values:
            raise UserError(f"integer {self.name!r}: default {self.default} is not in its range")

    @property
    def values(self) -> Sequence[int]:
        """Return the values in order, as a range, so that nothing is stored."""
        return range(self.low, self.high + 1, self.step)


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting with one of several values; `ordered` if neighbouring values are similar.

    >>> Choice("level", ["-O0", "-O1", "-O2"], ordered=True).default
    '-O0'
    """

    kind: ClassVar[str] = "choice"

    name: str
    values: tuple[Scalar, ...]
    ordered: bool = False
    default: Scalar | None = None

    if TYPE_CHECKING:  # any sequence is accepted, and kept as a tuple

        def __init__(
            self,
            name: str,
            values: Sequence[Scalar],
            ordered: bool = False,
            default: Scalar | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_values(self)


@dataclass(frozen=True, slots=True)
class Test:
    """The dimension that selects which test runs.

    >>> Test("test", ["test_push", "test_pop"]).values
    ('test_push', 'test_pop')
    """

    __test__: ClassVar[bool] = False  # pytest: not a test class
    kind: ClassVar[str] = "test"

    name: str
    values: tuple[Scalar, ...]
    default: Scalar | None = None

    if TYPE_CHECKING:  # any sequence is accepted, and kept as a tuple

        def __init__(
            self, name: str, values: Sequence[Scalar], default: Scalar | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_values(self)


Setting: TypeAlias = Flag | Integer | Choice | Test
Dimension: TypeAlias = Feature | Setting


def dimension_to_json(dimension: Dimension) -> dict[str, Any]:
    """Return a dimension as plain data, without the fields that have their default value.

    >>> dimension_to_json(Feature("push"))
    {'kind': 'feature', 'name': 'push'}
    """
    data: dict[str, Any] = {"kind": dimension.kind}
    for slot in dimension.__dataclass_fields__.values():
        value = getattr(dimension, slot.name)
        if slot.init and value != slot.default:
            data[slot.name] = list(value) if isinstance(value, tuple) else value
    return data


def dimension_from_json(data: Mapping[str, Any]) -> Dimension:
    """Return the dimension that `dimension_to_json` described.

    >>> dimension_from_json({"kind": "integer", "name": "n", "low": 1, "high": 3})
    Integer(name='n', low=1, high=3, step=1, default=1)
    """
    fields = dict(data)
    kind = fields.pop("kind", None)
    makers: dict[str, type[Dimension]] = {
        cls.kind: cls for cls in (Feature, Flag, Integer, Choice, Test)
    }
    if kind not in makers:
        raise UserError(f"a dimension is one of {', '.join(makers)}, not {kind!r}")
    return makers[kind](**fields)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or name != name.strip() or name[0] in "*-":
        raise UserError(
            "a dimension's name is a non-empty text without outer spaces "
            f"that starts with neither * nor -, not {name!r}"
        )


def _names(value: Sequence[str], feature: str, key: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise UserError(f"feature {feature!r}: {key} is a list of names: write [{value!r}]")
    return tuple(value)


def _check_values(dimension: Choice | Test) -> None:
    where = f"{dimension.kind} {dimension.name!r}"
    if isinstance(dimension.values, str):
        raise UserError(f"{where}: values are a list: write [{dimension.values!r}]")
    values = tuple(dimension.values)
    object.__setattr__(dimension, "values", values)
    if not all(isinstance(value, bool | int | float | str) for value in values):
        raise UserError(f"{where}: values are numbers, texts, True or False, not {values!r}")
    if not values or len(set(values)) != len(values):
        raise UserError(
            f"{dimension.kind} {dimension.name!r}: needs at least one value, and no value twice"
        )
    if dimension.default is None:
        object.__setattr__(dimension, "default", values[0])
    elif dimension.default not in values:
        raise UserError(
            f"{dimension.kind} {dimension.name!r}: default {dimension.default!r} is not a value"
        )
