"""Random numbers that are reproducible from names.

Invariants:

- `(campaign seed, trial)` determines everything that is drawn for a trial, whatever the number of
  workers, their order or their death. Nothing here depends on `PYTHONHASHSEED`, the platform or the
  Python version.
- A draw is keyed by a *name*: what feature ``push`` draws does not change when ``pop`` is added to
  the space. That is why a strategy asks ``rng.named("push")`` instead of taking the next number of
  one shared sequence.

The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
OOPSLA 2014) used as a keyed hash: name and trial are mixed into a 64-bit key, and the finaliser
turns the key into a uniform number. It needs no state, so a trial needs no seeding.

Many keys are mixed by numpy, which is imported only when that is first needed, so that a command
that draws little does not pay for the import.
"""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MASK = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15
"""The step from one number of a stream to the next."""
_MIX_1 = 0xBF58_476D_1CE4_E5B9
_MIX_2 = 0x94D0_49BB_1331_11EB
_TO_UNIT = 2.0**-53

_FEW_KEYS = 12
"""Up to this many keys, a Python loop is faster than numpy's fixed cost per call (measured: 12 to
16)."""
FEW = 7
"""The number of trials up to which numpy is not worth its import: fewer than the batches of all but
tiny campaigns."""


@functools.lru_cache(maxsize=65536)
def key_of(name: str) -> int:
    """Return the 64-bit key of a name, the same in every process.

    >>> key_of("push") == key_of("push") != key_of("pop")
    True
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def mixed(key: int) -> int:
    """Return the key after SplitMix64's finaliser: 64 well-mixed bits.

    >>> mixed(1) != mixed(2)
    True
    """
    key = (key ^ (key >> 30)) * _MIX_1 & _MASK
    key = (key ^ (key >> 27)) * _MIX_2 & _MASK
    return key ^ (key >> 31)


@functools.lru_cache(maxsize=64)
def _campaign_key(campaign_seed: int) -> int:
    return mixed(campaign_seed & _MASK)


def trial_key(campaign_seed: int, trial: int) -> int:
    """Return the key from which everything in a trial is drawn.

    >>> trial_key(0, 1) == trial_key(0, 1)
    True
    """
    return mixed((_campaign_key(campaign_seed) + (trial + 1) * GOLDEN) & _MASK)


def seed_of_test(campaign_seed: int, trial: int) -> int:
    """Return the seed of the test itself: 63 bits, so that it fits a database's signed integer.

    >>> 0 <= seed_of_test(7, 3) < 2**63
    True
    """
    return mixed(trial_key(campaign_seed, trial) ^ GOLDEN) >> 1


class Stream(random.Random):
    """The random source that a strategy receives for one trial.

    It is a `random.Random`, so ``rng.choice(...)`` and the other methods work. It also has *named*
    draws, which make the draw of a feature independent of the other features:

    >>> rng = Stream(campaign_seed=1, trial=0)
    >>> rng.named("push") == Stream(1, 0).named("push")
    True
    >>> 0.0 <= rng.named("push") < 1.0
    True

    The object gets a new key for each trial (`rekey`), so keep the numbers, not the stream.
    """

    key: int
    campaign_seed: int
    _counter: int

    def __new__(cls, campaign_seed: int = 0, trial: int = 0) -> Stream:
        # With these arguments (or none), random.Random would seed its Mersenne twister.
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def __init__(self, campaign_seed: int = 0, trial: int = 0) -> None:
        self.campaign_seed = campaign_seed
        self.rekey(trial_key(campaign_seed, trial))

    def rekey(self, key: int) -> None:
        """Start again as the stream of another key (see `trial_key`)."""
        self.key = key
        self._counter = key
        self.gauss_next = None  # where random.gauss() keeps the second number of a pair

    def named(self, name: str, attempt: int = 0) -> float:
        """Return a uniform number in [0, 1) that depends only on the trial and the name."""
        return (mixed((self.key + attempt * GOLDEN & _MASK) ^ key_of(name)) >> 11) * _TO_UNIT

    def named_each(self, keys: Sequence[int], attempt: int = 0) -> list[float]:
        """Return `named` for many names at once, given their keys (see `key_of`)."""
        base = self.key + attempt * GOLDEN & _MASK
        if len(keys) <= _FEW_KEYS:
            return [(mixed(base ^ key) >> 11) * _TO_UNIT for key in keys]
        uniform: list[float] = uniforms(_as_array(tuple(keys)) ^ base).tolist()
        return uniform

    def split(self, name: str) -> Stream:
        """Return an independent stream for a part of the strategy.

        >>> Stream(1, 0).split("a").random() != Stream(1, 0).split("b").random()
        True
        """
        stream = Stream(self.campaign_seed)
        stream.rekey(mixed(self.key ^ key_of(name)))
        return stream

    def of_campaign(self, number: int) -> Stream:
        """Return a stream that is the same in all trials.

        It is for values that a strategy draws once and keeps.

        >>> Stream(1, 0).of_campaign(3).random() == Stream(1, 99).of_campaign(3).random()
        True
        """
        stream = Stream(self.campaign_seed)
        stream.rekey(trial_key(mixed(self.campaign_seed & _MASK ^ key_of("campaign")), number))
        return stream

    def random(self) -> float:
        """Return the next uniform number in [0, 1) of the unnamed sequence."""
        self._counter = self._counter + GOLDEN & _MASK
        return (mixed(self._counter) >> 11) * _TO_UNIT

    def getrandbits(self, k: int, /) -> int:
        """Return the next `k` random bits of the unnamed sequence."""
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        bits = 0
        for _ in range((k + 63) // 64):
            self._counter = self._counter + GOLDEN & _MASK
            bits = bits << 64 | mixed(self._counter)
        return bits >> (-k % 64)

    def getstate(self) -> tuple[int, int, int]:
        """Return the position of the stream, for `setstate`."""
        return self.campaign_seed, self.key, self._counter

    def setstate(self, state: tuple[int, int, int]) -> None:  # type: ignore[override]
        """Return to the position at which `getstate` was called."""
        self.campaign_seed, self.key, self._counter = state
        self.gauss_next = None

    def __reduce__(self) -> tuple[object, ...]:
        return Stream, (self.campaign_seed,), self.getstate()

    def seed(self, *args: object, **kwargs: object) -> None:
        """Raise TypeError: a stream is keyed, not seeded."""
        raise TypeError("a stream is keyed by its trial, not seeded: use rekey()")


def named_of_trials(
    campaign_seed: int, trials: npt.ArrayLike, keys: Sequence[int], attempt: int = 0
) -> npt.NDArray[np.float64]:
    """Return `Stream.named` for many trials and names: a row per trial, a column per key.

    >>> float(named_of_trials(1, [0, 5], [key_of("push")])[1, 0]) == Stream(1, 5).named("push")
    True
    """
    return named_of_keys(trial_keys(campaign_seed, trials), keys, attempt)


def named_of_keys(
    trials: npt.NDArray[Any], keys: Sequence[int], attempt: int = 0
) -> npt.NDArray[np.float64]:
    """Return `named_of_trials`, given the keys of the trials.

    >>> float(named_of_keys(trial_keys(1, [5]), [key_of("a")])[0, 0]) == Stream(1, 5).named("a")
    True
    """
    bases = trials + (attempt * GOLDEN & _MASK) if attempt else trials
    return uniforms(bases[:, None] ^ _as_array(tuple(keys))[None, :])


def split_keys(trials: npt.NDArray[Any], keys: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return the key of `Stream.split` for many trials, given by their keys, and names.

    >>> int(split_keys(trial_keys(1, [5]), [key_of("a")])[0, 0]) == Stream(1, 5).split("a").key
    True
    """
    return mixed_array(trials[:, None] ^ _as_array(tuple(keys)))


def numbers_of_streams(keys: npt.NDArray[Any], count: int) -> npt.NDArray[np.uint64]:
    """Return the next 64-bit numbers of streams, given their counters: a row for each stream.

    >>> rng = Stream(1, 5)
    >>> numbers_of_streams(_as_array((rng.key,)), 2).tolist() == [
    ...     [rng.getrandbits(64), rng.getrandbits(64)]
    ... ]
    True
    """
    steps = _as_array(tuple((number + 1) * GOLDEN & _MASK for number in range(count)))
    return mixed_array(keys[:, None] + steps)


def seeds_of_tests(campaign_seed: int, trials: Sequence[int]) -> list[int]:
    """Return `seed_of_test` for many trials at once.

    >>> seeds_of_tests(7, [3, 4]) == [seed_of_test(7, 3), seed_of_test(7, 4)]
    True
    """
    if len(trials) <= FEW:
        return [seed_of_test(campaign_seed, trial) for trial in trials]
    seeds: list[int] = seed_array(campaign_seed, trials).tolist()
    return seeds


def seed_array(campaign_seed: int, trials: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `seed_of_test` for many trials as an array.

    >>> seed_array(7, [3]).tolist() == [seed_of_test(7, 3)]
    True
    """
    keys = mixed_array(trial_keys(campaign_seed, trials) ^ GOLDEN) >> 1
    return keys.view("int64")


def trial_keys(campaign_seed: int, trials: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `trial_key` for many trials.

    >>> trial_keys(7, [3]).tolist() == [trial_key(7, 3)]
    True
    """
    import numpy as np

    steps = (np.asarray(trials, dtype=np.uint64) + 1) * GOLDEN
    return mixed_array(steps + mixed(campaign_seed & _MASK))


@functools.lru_cache(maxsize=256)
def _as_array(keys: tuple[int, ...]) -> npt.NDArray[Any]:
    import numpy as np

    return np.array(keys, dtype=np.uint64)


def mixed_array(keys: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return keys after SplitMix64's finaliser: `mixed` for an array of 64-bit integers."""
    import numpy as np

    # In place, because temporary arrays take as long as the arithmetic.
    mixed_keys: npt.NDArray[Any] = keys >> 30
    mixed_keys ^= keys
    mixed_keys *= _MIX_1
    shifted = mixed_keys >> 27
    mixed_keys ^= shifted
    mixed_keys *= _MIX_2
    shifted = np.right_shift(mixed_keys, 31, out=shifted)
    mixed_keys ^= shifted
    return mixed_keys


def uniforms(keys: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the uniform numbers in [0, 1) that keys give."""
    words = mixed_array(keys)
    words >>= 11
    numbers = words.astype("float64")
    numbers *= _TO_UNIT
    return numbers
