"""A share of the tests to each of several strategies."""

from collections import Counter

import pytest

from swarmtest import Space, UserError
from swarmtest.strategies import Mixture, Stream, parse_strategy, strategy_text

FOUR = Space(["a", "b", "c", "d"])


def asked(strategy, trials, space=FOUR):
    return [strategy.ask(space, trial, Stream(0, trial)) for trial in range(trials)]


@pytest.mark.parametrize("start", [0, 1000, 7000])
def test_shares_are_exact_in_every_thousand(start):
    mixture = parse_strategy("mixture:all-on=0.1,coin=0.7,sized=0.2")
    assert isinstance(mixture, Mixture)
    origins = Counter(
        mixture.ask(FOUR, trial, Stream(0, trial)).origin.split("/")[0]
        for trial in range(start, start + 1000)
    )
    assert origins == {"all-on": 100, "coin": 700, "sized": 200}


def test_turns_are_shuffled_not_in_blocks():
    origins = [q.origin for q in asked(parse_strategy("mixture:all-on=0.5,coin=0.5"), 100)]
    assert {"all-on", "coin"} == set(origins[:10])


def test_shares_need_not_make_one():
    mixture = Mixture({"all-on": 1, "coin": 3})
    assert Counter(q.origin for q in asked(mixture, 1000)) == {"all-on": 250, "coin": 750}


def test_shares_can_be_per_cent():
    percent, share = (
        parse_strategy(f"mixture:all-on={a},coin={b}") for a, b in (("10%", "90%"), (0.1, 0.9))
    )
    assert strategy_text(percent) == strategy_text(share)


def test_each_member_counts_its_own_trials_so_that_a_covering_array_runs_through_its_rows():
    mixture = parse_strategy("mixture:all-on=0.3,covering(t=2)=0.7")
    assert isinstance(mixture, Mixture)
    mixture.prepare(FOUR)
    rows = [q.origin for q in asked(mixture, 1500) if q.origin != "all-on"]
    cycle = len(set(rows))
    assert rows == [f"covering/row {turn % cycle}" for turn in range(len(rows))]


def test_complete_in_a_mixture_still_has_each_subset():
    mixture = parse_strategy("mixture:all-on=0.5,complete=0.5")
    complete = [q.configuration.bits for q in asked(mixture, 60) if q.origin == "complete"]
    assert sorted(complete[:15]) == list(range(1, 16))


def test_members_keep_the_odds_they_logged():
    for proposal in asked(parse_strategy("mixture:all-on=0.5,coin(p=1)=0.5"), 20):
        assert proposal.propensities == (1.0,)


def test_mixtures_can_be_mixed():
    mixture = parse_strategy("mixture:mixture(all-on=1,coin(p=0.3)=1)=0.5,sized(low=2,high=3)=0.5")
    origins = Counter(q.origin.rpartition("/")[0] or q.origin for q in asked(mixture, 1000))
    assert sum(n for origin, n in origins.items() if origin.startswith("sized")) == 500


@pytest.mark.parametrize(
    "text",
    [
        "mixture:all-on=0.1,coin=0.9",
        "mixture:all-on=0.1,coin(p=0.3,n=7)=0.9",
        "mixture:mixture(all-on=0.5,covering(t=3,fill=include)=0.5)=0.5,layered=0.5",
        "mixture:coin(n=3,by=time)=0.5,sized=0.5",
    ],
)
def test_its_text_names_the_same_mixture_again(text):
    mixture = parse_strategy(text)
    assert strategy_text(mixture) == text
    again = parse_strategy(strategy_text(mixture))
    assert asked(again, 40) == asked(mixture, 40)


def test_thirds_survive_being_written_down():
    mixture = parse_strategy("mixture:all-on=1,coin=1,sized=1")
    again = parse_strategy(strategy_text(mixture))
    assert strategy_text(again) == strategy_text(mixture)
    assert asked(again, 100) == asked(mixture, 100)


def test_a_strategy_with_a_small_share_is_never_dropped_in_silence():
    try:
        mixture = parse_strategy("mixture:all-on=0.0004,coin=0.9996")
    except UserError:
        return  # saying that the share is too small is right too
    assert {q.origin for q in asked(mixture, 5000)} == {"all-on", "coin"}


def test_naming_a_strategy_twice_is_refused_or_both_shares_count():
    try:
        mixture = parse_strategy("mixture:coin=0.5,all-on=0.25,coin=0.25")
    except UserError:
        return
    assert Counter(q.origin for q in asked(mixture, 1000)) == {"coin": 750, "all-on": 250}


def test_only_a_mixture_with_a_learner_wants_to_be_told():
    assert not hasattr(parse_strategy("mixture:coin=1"), "tell")
    assert hasattr(parse_strategy("mixture:coin(n=3,by=time)=1"), "tell")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mixture", "shares"),
        ("mixture:coin", "NAME=VALUE"),
        ("mixture:coin=much", "'much'"),
        ("mixture:coin=-1,all-on=2", "above 0"),
        ("mixture:coin=0", "above 0"),
        ("mixture:coin=nan", "above 0"),
        ("mixture:coin=inf", "inf"),
        ("mixture:cion=1", "did you mean 'coin'"),
        ("mixture:coin(q=1)=1", "no parameter 'q'"),
        ("mixture:coin(p=7)=1", "p is above 0"),
        ("mixture:coin(p=0.5=1", "mixture"),
    ],
)
def test_bad_shares_get_one_clear_line(text, says):
    with pytest.raises(UserError) as refused:
        parse_strategy(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
