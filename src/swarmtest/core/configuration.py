"""Configurations: one value for each dimension of a space.

Invariants:

- A configuration never changes. It equals another one with the same values over the same
  dimensions.
- A weight is stored in 16 bits (steps of 1/65535; 0 and 1 are exact), so a weight is the same
  number when it is drawn, stored, printed and read back. A weight above 0 never rounds to 0.
- If all weights are 0 or 1, the configuration is one integer of feature bits, and `_steps` is None.

With a weight below 1, a feature that is chosen for a step is skipped with probability 1 - weight
(the blog's activation probability), and the skipped step counts as spent. In a *renormalised*
configuration no step is skipped: features are chosen in proportion to their weights.
"""

from __future__ import annotations

import functools
import itertools
import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from swarmtest.core.dimensions import Scalar
    from swarmtest.core.space import Space

FULL = 65535
"""The step that stands for a weight of 1."""
WEIGHTS, _SETTINGS, RENORMALISED_BIT = 1, 2, 4
"""Bits of the first byte of `Configuration.to_bytes`, which say what the rest consists of."""
_MANY_FEATURES = 64
"""From here on, numpy adds weights faster than Python."""
_AS_LIST = 100
"""Up to so many features a list of numbers is searched faster than an array, although each number
has to be made an object first."""
RENORMALISED = "*renormalised"
"""The key that marks a renormalised configuration in JSON; no dimension's name starts with a
star."""


@functools.cache
def _weights_of_bytes() -> Sequence[tuple[float, ...]]:
    """Return the weights of eight features for each byte of feature bits."""
    return [tuple([float(byte >> i & 1) for i in range(8)]) for byte in range(256)]


class Configuration:
    """An immutable point of a space; create one with `Space.configuration`.

    >>> from swarmtest import Feature, Space
    >>> space = Space([Feature("push"), Feature("pop"), Feature("add")])
    >>> configuration = space.configuration({"push": 1, "pop": 0.25})
    >>> print(configuration)
    push pop=0.25 -add
    >>> configuration["add"], "add" in configuration.included, configuration.included
    (0.0, False, ('push', 'pop'))
    """

    __slots__ = ("_packed", "_settings", "_steps", "_sums", "bits", "renormalised", "space")

    space: Space
    _steps: bytes | None
    _settings: tuple[Scalar, ...]
    _packed: bytes
    _sums: tuple[RunningSums, int] | None
    renormalised: bool
    """Whether features are chosen in proportion to their weights."""
    bits: int
    """Bit i is set when feature number i is included (its weight is above 0)."""

    def __init__(
        self,
        space: Space,
        bits: int,
        steps: bytes | None = None,
        settings: tuple[Scalar, ...] = (),
        renormalised: bool = False,
        packed: bytes = b"",
        sums: tuple[RunningSums, int] | None = None,
    ) -> None:
        """Keep the values; `steps` has 16 bits for each weight.

        `packed`: what `to_bytes` is to return, if it is known. `sums`: the sums of a batch of
        configurations, with the row of this one.
        """
        put = object.__setattr__  # because `__setattr__` refuses
        put(self, "space", space)
        put(self, "bits", bits)
        put(self, "_steps", steps)
        put(self, "_settings", settings)
        put(self, "renormalised", renormalised)
        put(self, "_packed", packed)
        put(self, "_sums", sums)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a configuration never changes; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a configuration never changes; cannot delete {name!r}")

    @property
    def included(self) -> tuple[str, ...]:
        """Return the names of the included features, in the space's order."""
        return tuple(n for i, n in enumerate(self.space.feature_names) if self.bits >> i & 1)

    @property
    def weights(self) -> tuple[float, ...]:
        """Return the weight of each feature, in the space's order."""
        if self._steps is None:
            count = len(self.space.features)
            # Eight at once, which takes less than half of the time of one after the other.
            eights = map(
                _weights_of_bytes().__getitem__, self.bits.to_bytes((count + 7) // 8, "little")
            )
            return tuple(itertools.chain.from_iterable(eights))[:count]
        return tuple([step / FULL for step in _unpacked(self._steps)])

    def running_weights(self) -> Sequence[float]:
        """Return the running sums of the weights, in the space's order.

        >>> from swarmtest import Space
        >>> Space(["push", "pop", "add"]).configuration({"push": 1, "add": 0.2}).running_weights()
        [1.0, 1.0, 1.2]
        """
        if self._sums is not None:
            sums, row = self._sums
            return sums.of(row)
        if self._steps is None or len(self.space.features) <= _MANY_FEATURES:
            return list(itertools.accumulate(self.weights))
        import numpy as np

        return RunningSums(np.frombuffer(self._steps, "<u2")[None, :]).of(0)

    @property
    def fractional(self) -> bool:
        """Return whether some weight is strictly between 0 and 1."""
        return self._steps is not None

    @property
    def settings(self) -> dict[str, Scalar]:
        """Return the values of the dimensions that are not features."""
        return dict(zip(self.space.setting_names, self._settings, strict=True))

    def __getitem__(self, name: str) -> Any:
        """Return a feature's weight or a setting's value."""
        number = self.space.feature_number.get(name)
        if number is None:
            return self._settings[self.space.setting_number(name)]
        if self._steps is None:
            return float(self.bits >> number & 1)
        return int.from_bytes(self._steps[2 * number : 2 * number + 2], "little") / FULL

    def __contains__(self, name: str) -> bool:
        """Return whether a feature's weight is above 0; a setting is always contained.

        Raise `UserError` for a name that the space does not have: if the answer were False, a typo
        in a harness would switch a feature off without anyone noticing.
        """
        number = self.space.feature_number.get(name)
        if number is None:
            return self.space.setting_number(name) >= 0
        return bool(self.bits >> number & 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return (
            self.bits == other.bits
            and self._steps == other._steps
            and self._settings == other._settings
            and self.renormalised == other.renormalised
            and (self.space is other.space or self.space == other.space)
        )

    def __hash__(self) -> int:
        return hash((self.bits, self._steps, self._settings))

    def __str__(self) -> str:
        words = []
        for name, weight in zip(self.space.feature_names, self.weights, strict=True):
            if weight in (0.0, 1.0):
                words.append(name if weight else f"-{name}")
            else:
                words.append(f"{name}={weight:.3g}")
        words += [f"{name}={value}" for name, value in self.settings.items()]
        words += ["(renormalised)"] if self.renormalised else []
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<Configuration {self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.space, self.bits, self._steps, self._settings, self.renormalised)
        return Configuration, values

    def to_json(self) -> dict[str, Scalar]:
        """Return every dimension with its value, as plain data."""
        values: dict[str, Scalar] = {}
        for name, weight in zip(self.space.feature_names, self.weights, strict=True):
            values[name] = int(weight) if weight in (0.0, 1.0) else weight
        extra: dict[str, Scalar] = {RENORMALISED: True} if self.renormalised else {}
        return values | self.settings | extra

    def to_bytes(self) -> bytes:
        """Return the compact form in which stores keep configurations."""
        if not self._packed:
            object.__setattr__(self, "_packed", self._to_bytes())
        return self._packed

    def _to_bytes(self) -> bytes:
        count = len(self.space.features)
        kind = WEIGHTS * (self._steps is not None) | _SETTINGS * bool(self._settings)
        kind |= RENORMALISED_BIT * self.renormalised
        if self._steps is None:
            body = self.bits.to_bytes((count + 7) // 8, "little")
        else:
            body = self._steps
        if self._settings:
            body += json.dumps(self._settings, separators=(",", ":")).encode()
        return bytes([kind]) + body

    @classmethod
    def from_bytes(cls, space: Space, data: bytes) -> Configuration:
        """Return the configuration that `to_bytes` wrote, over the same space.

        >>> from swarmtest import Feature, Space
        >>> space = Space([Feature("push"), Feature("pop")])
        >>> print(Configuration.from_bytes(space, space.default().to_bytes()))
        push pop
        """
        count = len(space.features)
        kind, steps = data[0], None
        size = 2 * count if kind & WEIGHTS else (count + 7) // 8
        body, rest = data[1 : 1 + size], data[1 + size :]
        if kind & WEIGHTS:
            steps = body
            bits = sum(1 << number for number, step in enumerate(_unpacked(body)) if step)
        else:
            bits = int.from_bytes(body, "little")
        settings = tuple(json.loads(rest)) if kind & _SETTINGS else ()
        return cls(space, bits, steps, settings, bool(kind & RENORMALISED_BIT))


class RunningSums:
    """The running sums of the weights of a batch of configurations.

    They are computed for all configurations when they are first asked for: one addition in numpy
    costs as much for a hundred configurations as for one.

    >>> import numpy as np
    >>> RunningSums(np.array([[65535, 0, 65535]], np.uint16)).of(0)
    [1.0, 1.0, 2.0]
    """

    __slots__ = ("_rows", "_steps")

    def __init__(self, steps: npt.NDArray[np.uint16]) -> None:
        """Keep the weights: a row for each configuration, in steps of 1/65535."""
        self._steps = steps
        self._rows: Sequence[Sequence[float]] | None = None

    def of(self, row: int) -> Sequence[float]:
        """Return the running sums of one configuration."""
        if self._rows is None:
            # One number after the other, so the sums are those that Python's additions give.
            sums = (self._steps / FULL).cumsum(axis=1)
            count = sums.shape[1]
            if count <= _AS_LIST:
                self._rows = sums.tolist()
            else:
                flat = sums.ravel().data
                self._rows = [flat[at : at + count] for at in range(0, len(flat), count)]
        return self._rows[row]


def weighted(
    space: Space,
    weights: Sequence[float],
    settings: tuple[Scalar, ...],
    renormalised: bool = False,
) -> Configuration:
    """Return the configuration with these feature weights, without checking constraints.

    >>> from swarmtest import Space
    >>> print(weighted(Space(["push", "pop"]), [1, 0.5], ()))
    push pop=0.5
    """
    bits, bit, fractional = 0, 1, False
    steps: list[int] = []
    for weight in weights:
        if not isinstance(weight, int | float):
            raise UserError(_not_a_weight(space.feature_names[len(steps)], weight))
        if weight == 1.0:
            bits |= bit
            steps.append(FULL)
        elif weight == 0.0:
            steps.append(0)
        elif 0.0 < weight < 1.0:
            bits |= bit
            step = round(weight * FULL) or 1  # a weight above 0 stays above 0
            fractional = fractional or step != FULL
            steps.append(step)
        else:
            raise UserError(_not_a_weight(space.feature_names[len(steps)], weight))
        bit <<= 1
    if not fractional:
        return Configuration(space, bits, None, settings)
    packed = struct.pack(f"<{len(steps)}H", *steps)
    return Configuration(space, bits, packed, settings, renormalised)


def _unpacked(steps: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(steps) // 2}H", steps)


def _not_a_weight(name: str, weight: object) -> str:
    return f"feature {name!r}: a weight is a number from 0 to 1, not {weight!r}"


def unpack_weights(packed: Sequence[bytes], count: int) -> npt.NDArray[np.float32]:
    """Return the weights of packed configurations over `count` features, one row each.

    >>> from swarmtest import Space
    >>> unpack_weights([Space(["push", "pop"]).configuration(["pop"]).to_bytes()], 2).tolist()
    [[0.0, 1.0]]
    """
    import numpy as np  # only here: a command that does not analyse need not load it

    weights = np.empty((len(packed), count), np.float32)
    fractional = np.array([data[0] & WEIGHTS for data in packed], bool)
    sizes = {False: (count + 7) // 8, True: 2 * count}
    for kind, size in sizes.items():
        rows = np.flatnonzero(fractional == kind)
        joined = b"".join([packed[row][1 : 1 + size] for row in rows.tolist()])
        bodies = np.frombuffer(joined, np.uint8).reshape(len(rows), size)
        if kind:
            weights[rows] = bodies.view("<u2") / np.float32(FULL)
        else:
            weights[rows] = np.unpackbits(bodies, axis=1, count=count, bitorder="little")
    return weights
