"""A strategy that learns may say which targets it wants to hear of."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarmtest import Budget, Campaign, Machine, Space, action, open_store
from swarmtest.core.result import Result
from swarmtest.core.sampling import toss
from swarmtest.strategies import Proposal, Stream


class Noisy(Machine):
    @action
    def one(self) -> None:
        self.event("one")

    @action
    def two(self) -> None:
        self.event("two")


@dataclass
class Curious:
    wants: frozenset[str] | None = None
    heard: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        return toss(space, [0.9, 0.9], rng)

    def tell(self, result: Result) -> None:
        self.heard += result.hits
        self.notes = [f"heard of {len(self.heard)} hits"]


def told(strategy: Curious) -> tuple[set[str], list[str]]:
    with open_store(":memory:") as store:
        outcome = Campaign(Noisy, strategy, Budget(tests=50), workers=0, store=store).run()
    return set(strategy.heard), outcome.notes


def test_all_hits_are_told_unless_it_says_otherwise() -> None:
    assert told(Curious())[0] == {"event:one", "event:two"}


def test_only_what_it_wants_is_told() -> None:
    assert told(Curious(wants=frozenset({"event:two"})))[0] == {"event:two"}


def test_what_was_hit_before_is_told_again_when_a_campaign_goes_on() -> None:
    with open_store(":memory:") as store:
        first = Campaign(Noisy, Curious(), Budget(tests=20), workers=0, store=store)
        number = first.run().campaign
        again = Curious(wants=frozenset({"event:two"}))
        second = Campaign(Noisy, again, Budget(tests=20), workers=0, store=store)
        second._number = number
        second.run()
    assert set(again.heard) == {"event:two"}


def test_its_notes_are_the_campaign_s() -> None:
    strategy = Curious()
    assert told(strategy)[1] == strategy.notes
