"""Configurations of many trials at once: the same as `sampling` draws one by one, in less time.

Draws are made as one matrix, a row per trial and a column per feature, which takes a few
nanoseconds for each feature. Equal configurations of a batch are one object, which is packed only
once. Only constraints are still followed row by row.

numpy is imported when the first batch is drawn, so that a command that draws little does not pay
for the import.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from swarmtest.core.configuration import (
    FULL,
    RENORMALISED_BIT,
    WEIGHTS,
    Configuration,
    RunningSums,
)
from swarmtest.core.dimensions import Scalar
from swarmtest.core.errors import UserError
from swarmtest.core.sampling import (
    ORDER,
    Proposal,
    one_if_alike,
    some_below,
    space_keys,
    toss,
    toss_in_turn,
)
from swarmtest.core.seeds import FEW, Stream, named_of_trials
from swarmtest.core.space import Space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_CELLS = 1 << 15
"""Draws to make at once: 256 KB, a few of which fit the cache of a processor's core."""
_WORD_BYTES = 8


def parts_of(numbers: npt.ArrayLike, space: Space) -> Iterator[npt.NDArray[np.int64]]:
    """Yield numbers of trials, or of rows, in parts whose draws fit the cache."""
    import numpy as np

    numbers = np.asarray(numbers, dtype=np.int64)
    size = max(1, _CELLS // max(1, len(space.features)))
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]


def toss_many(
    space: Space, rates: tuple[float, ...], trials: Sequence[int], campaign_seed: int
) -> list[Proposal]:
    """Return the same proposals as `toss`, for many trials at once.

    >>> space = Space(["push", "pop"])
    >>> many = toss_many(space, (0.5, 0.5), range(100), 7)
    >>> many[3] == toss(space, (0.5, 0.5), Stream(7, 3))
    True
    """
    if len(trials) <= FEW or not space.features:
        return [toss(space, rates, Stream(campaign_seed, trial)) for trial in trials]
    proposals: list[Proposal] = []
    for part in parts_of(trials, space):
        draws = named_of_trials(campaign_seed, part, space_keys(space).keys)
        settings = settings_of_trials(space, part, campaign_seed)
        if space.clauses:
            proposals += _toss_constrained(space, rates, part, campaign_seed, draws, settings)
        else:
            proposals += _toss_free(space, rates, part, campaign_seed, draws, settings)
    return proposals


def _toss_free(
    space: Space,
    rates: tuple[float, ...],
    trials: npt.NDArray[np.int64],
    campaign_seed: int,
    draws: npt.NDArray[np.float64],
    settings: Sequence[tuple[Scalar, ...]],
) -> Iterator[Proposal]:
    import numpy as np

    present = draws < np.array(rates)
    masks = masks_of_rows(present)
    empty = [row for row, mask in enumerate(masks) if not mask]
    if empty:
        keys = space_keys(space).keys
        again = named_of_trials(campaign_seed, trials[empty], keys, attempt=1).tolist()
        for row, row_draws in zip(empty, again, strict=True):
            masks[row] = some_below(row_draws, rates)
    chances = one_if_alike(rates)
    made: dict[tuple[Any, ...], Proposal] = {}
    for key in zip(masks, settings, strict=True):
        proposal = made.get(key)
        if proposal is None:
            mask, values = key
            proposal = made[key] = Proposal(Configuration(space, mask, None, values), chances)
        yield proposal


def _toss_constrained(
    space: Space,
    rates: tuple[float, ...],
    trials: npt.NDArray[np.int64],
    campaign_seed: int,
    draws: npt.NDArray[np.float64],
    settings: Sequence[tuple[Scalar, ...]],
) -> Iterator[Proposal]:
    import numpy as np

    on = (draws < np.array(rates)).tolist()
    for row, order in enumerate(random_orders(space, trials, campaign_seed).tolist()):
        bits, chances = toss_in_turn(space, order, on[row], rates)
        yield Proposal(Configuration(space, bits, None, settings[row]), chances)


def random_orders(
    space: Space, trials: npt.NDArray[np.int64], campaign_seed: int
) -> npt.NDArray[np.intp]:
    """Return the order in which each trial's features are tossed."""
    import numpy as np

    draws = named_of_trials(campaign_seed, trials, space_keys(space).keys, ORDER)
    # The usual sort takes a quarter of the time of a stable one, and differs only for equal draws.
    order = draws.argsort(axis=1)
    ordered = np.take_along_axis(draws, order, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        return draws.argsort(axis=1, kind="stable")
    return order


def settings_of_trials(
    space: Space, trials: npt.NDArray[np.int64], campaign_seed: int
) -> list[tuple[Scalar, ...]]:
    """Return what `draw_settings` returns for each trial."""
    if not space.settings:
        return [()] * len(trials)
    draws = named_of_trials(campaign_seed, trials, space_keys(space).setting_keys)
    columns = [
        [setting.values[int(draw * len(setting.values))] for draw in column]
        for setting, column in zip(space.settings, draws.T.tolist(), strict=True)
    ]
    return list(zip(*columns, strict=True))


def weigh_many(
    space: Space,
    weights: npt.NDArray[Any],
    trials: npt.NDArray[np.int64],
    campaign_seed: int,
    renormalised: bool,
) -> list[Configuration]:
    """Return the configurations that `weigh` makes of weights, a row for each trial.

    The weights are 16-bit steps from 0 to `FULL`, or Booleans.
    """
    settings = settings_of_trials(space, trials, campaign_seed)
    if space.clauses:
        weights = _allowed_rows(space, weights, trials, campaign_seed)
    present = weights if weights.dtype == bool else weights > 0
    if not present.any(axis=1).all():
        raise UserError("a strategy proposed an empty configuration: all weights are 0")
    bodies = [b""] * len(trials) if weights.dtype == bool else _packed_steps(weights)
    sums = RunningSums(weights)
    head = bytes([WEIGHTS | RENORMALISED_BIT * renormalised])
    made: dict[Any, Configuration] = {}
    configurations = []
    masks = masks_of_rows(present)
    for row, (mask, body, values) in enumerate(zip(masks, bodies, settings, strict=True)):
        key = (body or mask, values) if values else body or mask
        configuration = made.get(key)
        if configuration is None:
            if body:
                packed = b"" if values else head + body
                configuration = Configuration(
                    space, mask, body, values, renormalised, packed, (sums, row)
                )
            else:
                configuration = Configuration(space, mask, None, values)
            made[key] = configuration
        configurations.append(configuration)
    return configurations


def _packed_steps(steps: npt.NDArray[np.uint16]) -> list[bytes]:
    """Return each row as bytes; nothing for a row in which all weights are 0 or 1."""
    import numpy as np

    # In 16 bits, 0 - 1 is FULL: of the numbers below, only those for 0 and 1 are FULL - 1 or more.
    between: npt.NDArray[np.bool_] = (steps - np.uint16(1)) < FULL - 1
    fractional = np.any(between, axis=1).tolist()
    width, data = 2 * steps.shape[1], steps.astype("<u2", copy=False).tobytes()
    return [
        data[row * width : row * width + width] if is_fractional else b""
        for row, is_fractional in enumerate(fractional)
    ]


def _allowed_rows(
    space: Space,
    weights: npt.NDArray[Any],
    trials: npt.NDArray[np.int64],
    campaign_seed: int,
) -> npt.NDArray[Any]:
    """Return the weights with forbidden features at 0, and demanded ones full if they were 0."""
    import numpy as np

    wanted = weights > 0
    order = random_orders(space, trials, campaign_seed)
    # The wanted features come first, in their random order: a stable sort of the order by it.
    wanted_first = (~np.take_along_axis(wanted, order, axis=1)).argsort(axis=1, kind="stable")
    order = np.take_along_axis(order, wanted_first, axis=1)
    rows = [
        toss_in_turn(space, row_order, on, on)[0]
        for row_order, on in zip(order.tolist(), wanted.tolist(), strict=True)
    ]
    present = rows_of_masks(rows, len(space.features))
    if weights.dtype == bool:
        return present
    return np.where(present, np.where(wanted, weights, np.uint16(FULL)), np.uint16(0))


def masks_of_rows(present: npt.NDArray[np.bool_]) -> list[int]:
    """Return the bits of each row of a matrix, the first column lowest.

    >>> import numpy as np
    >>> masks_of_rows(np.array([[True, False], [False, True]]))
    [1, 2]
    """
    import numpy as np

    packed = np.packbits(present, axis=1, bitorder="little")
    width = packed.shape[1]
    if width <= _WORD_BYTES:
        words = np.zeros((len(packed), _WORD_BYTES), np.uint8)
        words[:, :width] = packed
        masks: list[int] = words.view("<u8")[:, 0].tolist()
        return masks
    data = packed.tobytes()
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def rows_of_masks(masks: Sequence[int], count: int) -> npt.NDArray[np.bool_]:
    """Return the matrix of which `masks_of_rows` returns the masks."""
    import numpy as np

    width = (count + 7) // 8
    data = b"".join([mask.to_bytes(width, "little") for mask in masks])
    packed = np.frombuffer(data, np.uint8).reshape(len(masks), width)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").astype(bool)
