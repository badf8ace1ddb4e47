"""The bandit: shares follow what is new, a fixed part stays, and propensities stay right."""

import pytest

from swarmtest import (
    Campaign,
    Fault,
    Machine,
    Result,
    Space,
    UserError,
    Verdict,
    action,
    open_store,
)
from swarmtest.roles import Study
from swarmtest.strategies import Bandit, Hedged, Stream, parse_strategy, strategy_text
from swarmtest.strategies.bandit import learnt_shares
from swarmtest.strategies.hedged import HEDGED_FAMILIES
from swarmtest.strategies.layered import chances_of

SPACE = Space([f"f{number}" for number in range(8)])
SHARES = [share for _, share, _ in HEDGED_FAMILIES]
NAMES = [name for name, _, _ in HEDGED_FAMILIES]


def result(trial, hits=(), fault=None, verdict=Verdict.PASSED):
    return Result(verdict, fault, (), tuple(hits), trial=trial)


def campaign(strategy, tests, hits_of):
    """Ask and tell so many tests; return the proposals."""
    stream, proposals = Stream(7), []
    for trial in range(tests):
        stream.rekey(trial + 1)
        proposals.append(strategy.ask(SPACE, trial, stream))
        strategy.tell(result(trial, hits_of(trial, proposals[-1])))
    return proposals


def test_it_can_be_named_with_its_fixed_part():
    assert strategy_text(parse_strategy("bandit")) == "bandit"
    assert strategy_text(parse_strategy("bandit:fixed=0.7")) == "bandit:fixed=0.7"
    with pytest.raises(UserError, match="fixed is above 0"):
        parse_strategy("bandit:fixed=0")


def test_where_nothing_is_new_its_tests_are_those_of_hedged():
    stream = Stream(7)
    for trial, proposal in enumerate(campaign(Bandit(), 60, lambda trial, proposal: ())):
        stream.rekey(trial + 1)
        assert proposal == Hedged().ask(SPACE, trial, stream)


def test_a_family_that_reaches_new_targets_gets_more_of_the_tests():
    def hits_of(trial, proposal):
        return (f"event:{trial}",) if proposal.origin == "equal" else ()

    late = campaign(Bandit(), 600, hits_of)[200:]
    share = sum(proposal.origin == "equal" for proposal in late) / len(late)
    assert share > 2 * dict(zip(NAMES, SHARES, strict=True))["equal"]


def test_what_was_reached_before_is_not_new():
    strategy = Bandit()
    asked = [strategy.ask(SPACE, trial, Stream(1, trial)) for trial in range(4)]
    assert len(asked) == 4
    strategy.tell(result(0, ["event:a"]))
    strategy.tell(result(1, ["event:a"]))
    assert sum(strategy._new) == pytest.approx(1.0, abs=0.05)
    fault = Fault("exception", "AssertionError: no [f]")
    strategy.tell(result(2, ["event:a"], fault, Verdict.FAILED))
    strategy.tell(result(3, ["event:b"], verdict=Verdict.INVALID))
    assert sum(strategy._new) == pytest.approx(2.0, abs=0.1)


def test_the_fixed_part_of_every_family_is_never_taken_away():
    for gains in ([0.0] * 9, [50.0] + [0.0] * 8, [0.0] * 8 + [50.0]):
        for fixed in (0.3, 0.5, 1.0):
            shares = learnt_shares(gains, [50.0] * 9, fixed)
            assert sum(shares) == pytest.approx(1)
            for learnt, share in zip(shares, SHARES, strict=True):
                assert learnt >= fixed * share - 1e-12


def test_propensities_are_those_of_the_family_whatever_was_learnt():
    def hits_of(trial, proposal):
        return (f"event:{trial}",) if proposal.origin == "ladder" else ()

    for proposal in campaign(Bandit(), 200, hits_of):
        bits = proposal.configuration.bits
        assert proposal.propensities == chances_of(proposal.origin, 8, bits)


class Till(Machine):
    steps = 20

    def start(self):
        self.open = 0

    @action
    def enter(self):
        self.open += 1
        self.event(f"{self.open} open")
        assert self.open < 6, "too many"

    @action
    def leave(self):
        self.open = 0

    @action
    def look(self): ...

    @action
    def wait(self): ...


def test_a_campaign_learns_finds_faults_and_their_roles():
    with open_store(":memory:") as store:
        Campaign(Till, "bandit", 600, seed=2, store=store, workers=0).run()
        study = Study(store, [1])
        roles = {role.feature: role.role for role in study.roles(study.find("fault"))}
        origins = {trial.origin for trial in store.trials(1)}
    assert roles["enter"] == "trigger"
    assert roles["leave"] == "suppressor"
    assert origins == set(NAMES)
