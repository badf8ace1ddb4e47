"""Spaces: the ordered dimensions of a test, with the constraints between them.

Invariants: names are unique; the constraints can all be satisfied (otherwise creating the space
fails and names the constraints that conflict); no configuration created here is empty or violates a
constraint.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swarmtest.core.configuration import RENORMALISED, Configuration, weighted
from swarmtest.core.constraints import (
    Clause,
    Constraint,
    at_least_one_of,
    conflict,
    excludes,
    mandatory,
    requires,
)
from swarmtest.core.dimensions import (
    Dimension,
    Feature,
    Scalar,
    Setting,
    dimension_from_json,
    dimension_to_json,
)
from swarmtest.core.errors import UserError, did_you_mean


class Space:
    """The dimensions of a test, and the constraints between them.

    >>> space = Space([Feature("open"), Feature("close", requires=["open"])])
    >>> print(space.default())
    open close
    >>> Space(["push", "pop"]).feature_names
    ('push', 'pop')
    >>> Space([Feature("a", mandatory=True, excludes=["b"]), Feature("b", mandatory=True)])
    Traceback (most recent call last):
    ...
    swarmtest.UserError: these constraints cannot all be met: 'a' is mandatory; ...
    """

    def __init__(
        self, dimensions: Iterable[Dimension | str], constraints: Iterable[Constraint] = ()
    ) -> None:
        if isinstance(dimensions, str):
            raise UserError(f"a space takes a list of dimensions: write [{dimensions!r}]")
        self.dimensions: tuple[Dimension, ...] = tuple(
            Feature(d) if isinstance(d, str) else d for d in dimensions
        )
        self.features: tuple[Feature, ...] = tuple(
            d for d in self.dimensions if isinstance(d, Feature)
        )
        self.settings: tuple[Setting, ...] = tuple(
            d for d in self.dimensions if not isinstance(d, Feature)
        )
        self.feature_names: tuple[str, ...] = tuple(f.name for f in self.features)
        self.setting_names: tuple[str, ...] = tuple(s.name for s in self.settings)
        self.feature_number: dict[str, int] = {n: i for i, n in enumerate(self.feature_names)}
        self.constraints: tuple[Constraint, ...] = tuple(constraints)
        self._check_names()
        self._hash = hash((self.dimensions, self.constraints))
        self.clauses: tuple[Clause, ...] = tuple(map(self._clause, self._all_constraints()))
        everything = (1 << len(self.features)) - 1
        self.never_empty = Clause(everything, 0, at_least_one_of(*self.feature_names))
        clash = conflict([self.never_empty, *self.clauses] if self.features else [])
        if clash:
            raise UserError(
                f"these constraints cannot all be met: {'; '.join(dict.fromkeys(map(str, clash)))}"
            )

    def configuration(self, values: Mapping[str, Any] | Iterable[str] = ()) -> Configuration:
        """Return the configuration with these values, after checking them.

        A feature that is not named is off, and a setting that is not named has its default.

        >>> print(Space(["push", "pop"]).configuration(["pop"]))
        -push pop
        """
        if isinstance(values, str):
            raise UserError(f"features are given as a list of names: write [{values!r}]")
        if not isinstance(values, Mapping):
            values = dict.fromkeys(values, 1)
        for name in values:
            if name not in self.feature_number and name != RENORMALISED:
                self.setting_number(name)
        weights = [values.get(name, 0) for name in self.feature_names]
        settings = tuple(self._setting(s, values) for s in self.settings)
        renormalised = bool(values.get(RENORMALISED, False))
        configuration = weighted(self, weights, settings, renormalised)
        broken = self.violated(configuration.bits)
        if broken:
            raise UserError(f"configuration '{configuration}' violates: {'; '.join(broken)}")
        return configuration

    def default(self) -> Configuration:
        """Return the papers' C_D: every feature on, every setting at its default."""
        bits = (1 << len(self.features)) - 1
        broken = self.violated(bits)
        if broken:
            raise UserError(
                f"all features together violate: {'; '.join(broken)}; there is no default "
                "configuration for this space: use a strategy that leaves features out, like coin"
            )
        return Configuration(self, bits, None, self.default_settings)

    @functools.cached_property
    def default_settings(self) -> tuple[Scalar, ...]:
        """Return every setting's default, in order."""
        return tuple(self._setting(s, {}) for s in self.settings)

    def settings_among(self, values: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return a value for each setting, after checking it; values of anything else are left out.

        >>> from swarmtest.core.dimensions import Flag, Integer
        >>> Space([Flag("fast"), Integer("level", 1, 3)]).settings_among({"level": 2, "gone": 7})
        {'fast': False, 'level': 2}
        """
        return {setting.name: self._setting(setting, values) for setting in self.settings}

    def constrained(self, more: Sequence[Constraint]) -> Space:
        """Return the same space with more constraints.

        >>> space = Space(["push", "pop"]).constrained([requires("pop", "push")])
        >>> space.violated(0b10)
        ["'pop' requires 'push'"]
        """
        return Space(self.dimensions, [*self.constraints, *more]) if more else self

    def violated(self, bits: int) -> list[str]:
        """Return, as text, the constraints that a set of included features violates."""
        if self.features and not bits:
            return ["a configuration is never empty"]
        return [str(clause.constraint) for clause in self.clauses if not clause.holds(bits)]

    def setting_number(self, name: str) -> int:
        """Return the position of a setting; raise an error that suggests the nearest name."""
        try:
            return self.setting_names.index(name)
        except ValueError:
            names = self.feature_names + self.setting_names
            raise UserError(f"the space has no {name!r}{did_you_mean(name, names)}") from None

    def to_json(self) -> dict[str, Any]:
        """Return dimensions and constraints as plain data.

        >>> Space.from_json(Space(["push"]).to_json()) == Space(["push"])
        True
        """
        data: dict[str, Any] = {"dimensions": [dimension_to_json(d) for d in self.dimensions]}
        if self.constraints:
            data["constraints"] = [constraint.to_json() for constraint in self.constraints]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Space:
        """Return the space that `to_json` described."""
        return cls(
            [dimension_from_json(d) for d in data["dimensions"]],
            map(Constraint.from_json, data.get("constraints", ())),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self.dimensions == other.dimensions and self.constraints == other.constraints

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<Space {' '.join(d.name for d in self.dimensions)}>"

    def _check_names(self) -> None:
        if not self.dimensions:
            raise UserError("a space needs at least one dimension")
        names = [d.name for d in self.dimensions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(
                f"each dimension of a space needs its own name; used twice: {', '.join(twice)}"
            )

    def _all_constraints(self) -> Sequence[Constraint]:
        constraints: list[Constraint] = []
        for feature in self.features:
            if feature.mandatory:
                constraints.append(mandatory(feature.name))
            constraints += [requires(feature.name, other) for other in feature.requires]
            constraints += [excludes(feature.name, other) for other in feature.excludes]
        return [*constraints, *self.constraints]

    def _clause(self, constraint: Constraint) -> Clause:
        masks = []
        for names in (constraint.on, constraint.off):
            mask = 0
            for name in names:
                number = self.feature_number.get(name)
                if number is None:
                    raise UserError(
                        f"constraint {str(constraint)!r} names a feature that the space does not "
                        f"have: {name!r}{did_you_mean(name, self.feature_names)}"
                    )
                mask |= 1 << number
            masks.append(mask)
        return Clause(masks[0], masks[1], constraint)

    def _setting(self, setting: Setting, values: Mapping[str, Any]) -> Scalar:
        value = values.get(setting.name, setting.default)
        if value not in setting.values:
            raise UserError(f"{setting.kind} {setting.name!r} cannot be {value!r}")
        # 1 and True, 3.0 and 3 are equal: use the dimension's own value, so that JSON is stable.
        return setting.values[setting.values.index(value)]
