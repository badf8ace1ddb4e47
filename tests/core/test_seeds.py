"""A test is reproducible from its name: what a trial draws, wherever and whenever it is drawn."""

import copy
import json
import math
import os
import pickle
import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import Feature, Space
from swarmtest.core.seeds import key_of, named_of_trials, seed_of_test, trial_key
from swarmtest.strategies import Coin, Layered, Stream

examples = settings(derandomize=True, deadline=None, max_examples=60)
seeds = st.integers(-(2**70), 2**70)
trials = st.integers(0, 2**40)

NAMES = [f"feature {i}" for i in range(8)]
MANY = 20_000
RARE = 1e-9
"""Every statistical bound below is missed with at most this probability."""


def kolmogorov_bound(count):
    """No sample of uniform numbers is further from the diagonal (Dvoretzky-Kiefer-Wolfowitz)."""
    return math.sqrt(math.log(2 / RARE) / (2 * count))


def distance_from_uniform(sample):
    ordered = np.sort(np.asarray(sample))
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())


def chi_square_bound(degrees):
    """The tail bound of Laurent and Massart (2000), lemma 1."""
    x = -math.log(RARE)
    return degrees + 2 * math.sqrt(degrees * x) + 2 * x


DRAW = """
import json
from swarmtest import Space
from swarmtest.strategies import Coin, Layered, Stream
from swarmtest.core.seeds import seed_of_test
space = Space(["push", "pop", "add"])
drawn = []
for trial in (0, 1, 10**9):
    rng = Stream(-7, trial)
    numbers = [rng.named("push"), rng.random(), rng.split("a").random()]
    drawn.append([*numbers, seed_of_test(-7, trial)])
    drawn += [s.ask(space, trial, Stream(-7, trial)).configuration.to_bytes().hex()
              for s in (Coin(), Layered())]
print(json.dumps(drawn))
"""


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_a_trial_draws_the_same_in_another_process_with_another_hash_seed(hash_seed):
    child = subprocess.run(
        [sys.executable, "-c", DRAW],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    space = Space(["push", "pop", "add"])
    drawn: list[object] = []
    for trial in (0, 1, 10**9):
        rng = Stream(-7, trial)
        numbers = [rng.named("push"), rng.random(), rng.split("a").random()]
        drawn.append([*numbers, seed_of_test(-7, trial)])
        for strategy in (Coin(), Layered()):
            proposal = strategy.ask(space, trial, Stream(-7, trial))
            drawn.append(proposal.configuration.to_bytes().hex())
    assert json.loads(child.stdout) == drawn


def test_the_numbers_never_change_from_one_version_to_the_next():
    assert key_of("push") == 11061147689312906577
    assert trial_key(1, 0) == 13830413928045401970
    assert Stream(1, 0).named("push") == 0.7564422451859399
    assert seed_of_test(7, 3) == 1009542823296000436


def test_the_sequence_is_that_of_splitmix64():
    stream = Stream()
    stream.rekey(1234567)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [stream.getrandbits(64) for _ in published] == published


@examples
@given(seeds, trials)
def test_seed_and_trial_decide_everything(seed, trial):
    one, other = Stream(seed, trial), Stream(seed, trial)
    assert one.named("push") == other.named("push")
    assert [one.random() for _ in range(3)] == [other.random() for _ in range(3)]


def test_other_seeds_and_other_trials_draw_other_numbers():
    drawn = {Stream(seed, trial).named("push") for seed in range(50) for trial in range(50)}
    assert len(drawn) == 2500


def test_what_a_feature_draws_does_not_change_when_features_are_added():
    few, many = Space(["push", "pop"]), Space(["new", "pop", "newer", "push", *NAMES])
    seen = 0
    for trial in range(500):
        before = Coin().ask(few, trial, Stream(3, trial)).configuration
        after = Coin().ask(many, trial, Stream(3, trial)).configuration
        if Stream(3, trial).named("push") < 0.5 or Stream(3, trial).named("pop") < 0.5:
            assert [n in before for n in ("push", "pop")] == [n in after for n in ("push", "pop")]
            seen += 1
    assert seen > 300  # three quarters of the trials needed no redraw of an empty configuration


def test_what_a_feature_draws_does_not_depend_on_what_was_drawn_before():
    fresh, used = Stream(1, 5), Stream(1, 5)
    used.random()
    used.named("pop")
    used.getrandbits(100)
    assert used.named("push") == fresh.named("push")


def test_the_draws_of_one_name_over_the_trials_are_uniform():
    sample = [Stream(0, trial).named("push") for trial in range(MANY)]
    assert distance_from_uniform(sample) < kolmogorov_bound(MANY)


def test_the_draws_of_one_trial_over_the_names_are_uniform():
    rng = Stream(0, 0)
    sample = [rng.named(f"f{i}") for i in range(MANY)]
    assert distance_from_uniform(sample) < kolmogorov_bound(MANY)


def test_the_unnamed_sequence_is_uniform():
    rng = Stream(0, 0)
    assert distance_from_uniform([rng.random() for _ in range(MANY)]) < kolmogorov_bound(MANY)


def test_the_first_numbers_of_neighbouring_trials_are_uniform():
    sample = [Stream(0, trial).random() for trial in range(MANY)]
    assert distance_from_uniform(sample) < kolmogorov_bound(MANY)


def test_names_and_neighbouring_trials_are_not_correlated():
    drawn = named_of_trials(0, range(MANY), [key_of(n) for n in NAMES])
    rows = [*drawn[1:].T, *drawn[:-1].T, *named_of_trials(1, range(1, MANY), [key_of("push")]).T]
    found = np.corrcoef(np.array(rows))
    pairs = len(list(combinations(range(len(rows)), 2)))
    # r * sqrt(n) is close to a standard normal for independent columns; Bonferroni over the pairs.
    bound = math.sqrt(2 * math.log(pairs / RARE)) / math.sqrt(MANY - 1)
    assert np.abs(found - np.eye(len(rows))).max() < bound


def test_three_features_meet_in_all_eight_ways_equally_often():
    drawn = named_of_trials(0, range(MANY), [key_of(n) for n in ("push", "pop", "add")])
    counts = np.bincount((drawn < 0.5) @ [1, 2, 4], minlength=8)
    expected = MANY / 8
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_bound(7)


def test_redraws_are_independent_of_the_first_draw():
    first = [Stream(0, trial).named("push") for trial in range(5000)]
    again = [Stream(0, trial).named("push", attempt=1) for trial in range(5000)]
    assert distance_from_uniform(again) < kolmogorov_bound(5000)
    assert abs(np.corrcoef(first, again)[0, 1]) < math.sqrt(2 * math.log(2 / RARE) / 4999)


@examples
@given(seeds, st.lists(trials, max_size=5), st.lists(st.text(), max_size=20), st.integers(0, 9))
def test_drawing_many_at_once_draws_the_same(seed, numbers, names, attempt):
    keys = [key_of(n) for n in names]
    one_by_one = [[Stream(seed, t).named(n) for n in names] for t in numbers]
    assert named_of_trials(seed, numbers, keys).tolist() == one_by_one
    for trial in numbers:
        rng = Stream(seed, trial)
        assert rng.named_each(keys, attempt) == [rng.named(n, attempt) for n in names]


@examples
@given(seeds, trials)
def test_a_test_seed_fits_a_databases_integer(seed, trial):
    assert 0 <= seed_of_test(seed, trial) < 2**63


def test_test_seeds_are_not_the_numbers_that_the_strategy_sees():
    rng = Stream(1, 0)
    assert seed_of_test(1, 0) not in {rng.getrandbits(63) for _ in range(1000)}


@pytest.mark.parametrize("bits", [0, 1, 7, 31, 32, 63, 64, 65, 128, 1000])
def test_random_bits_are_in_range_and_use_it(bits):
    rng = Stream(0, bits)
    drawn = [rng.getrandbits(bits) for _ in range(100)]
    assert all(0 <= number < 2**bits for number in drawn)
    if bits:
        assert max(drawn) >= 2 ** (bits - 1) > min(drawn)  # both halves, but for 1 in 2**99


def test_a_negative_number_of_random_bits_is_refused_as_by_the_standard_library():
    with pytest.raises(ValueError, match="non-negative"):
        Stream().getrandbits(-1)


def test_a_stream_is_a_random_source_like_any_other():
    rng = Stream(1, 2)
    assert isinstance(rng, random.Random)
    assert rng.choice("abc") in "abc"
    assert len(set(rng.sample(range(100), 10))) == 10
    cards = list(range(52))
    rng.shuffle(cards)
    assert sorted(cards) == list(range(52)) != cards
    assert 0 <= rng.betavariate(0.5, 2) <= 1
    assert 3 <= rng.randint(3, 5) <= 5
    assert 2.0 <= rng.uniform(2, 4) <= 4.0
    assert len(rng.randbytes(5)) == 5
    assert isinstance(rng.gauss(0, 1), float)
    assert set(rng.choices("ab", weights=[0, 1], k=5)) == {"b"}


def test_every_card_comes_first_equally_often():
    first = [0] * 10
    for trial in range(10_000):
        cards = list(range(10))
        Stream(0, trial).shuffle(cards)
        first[cards[0]] += 1
    assert sum((n - 1000) ** 2 / 1000 for n in first) < chi_square_bound(9)


def test_gauss_keeps_nothing_from_the_trial_before():
    used = Stream(1, 0)
    used.gauss(0, 1)  # the standard library keeps the second of a pair for later
    used.rekey(trial_key(1, 1))
    assert used.gauss(0, 1) == Stream(1, 1).gauss(0, 1)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_a_copy_of_a_stream_goes_on_where_the_stream_was(again):
    rng = Stream(5, 7)
    rng.random()
    twin = again(rng)
    assert twin.named("push") == rng.named("push")
    assert twin.random() == rng.random()


def test_a_streams_state_can_be_kept_and_brought_back():
    rng = Stream(5, 7)
    state = rng.getstate()
    drawn = [rng.random() for _ in range(3)]
    rng.setstate(state)
    assert [rng.random() for _ in range(3)] == drawn


def test_parts_of_a_strategy_get_streams_of_their_own():
    rng = Stream(1, 0)
    parts = [rng.split("a"), rng.split("b"), rng.split("a").split("b"), rng]
    assert len({part.random() for part in parts}) == 4
    assert rng.split("a").random() == Stream(1, 0).split("a").random()


@pytest.mark.parametrize("seed", [0, 1, -1, 2**64 - 1])
def test_what_is_drawn_for_the_whole_campaign_is_no_trials_own(seed):
    of_campaign = {Stream(seed, 17).of_campaign(number).random() for number in range(100)}
    assert of_campaign == {Stream(seed, 5).of_campaign(number).random() for number in range(100)}
    assert not of_campaign & {Stream(seed, trial).random() for trial in range(100)}


def test_a_feature_keeps_its_draw_whatever_its_other_attributes():
    plain, fancy = Space(["push", "pop"]), Space([Feature("push", group="g"), Feature("pop")])
    for trial in range(50):
        ask = [Coin().ask(s, trial, Stream(1, trial)).configuration.bits for s in (plain, fancy)]
        assert ask[0] == ask[1]
