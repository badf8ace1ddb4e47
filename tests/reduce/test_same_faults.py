"""After reduction: which faults are one, by their small tests."""

from __future__ import annotations

from swarmtest import Campaign, Machine, action, integers, invariant, lists, open_store
from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Result
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.reduce import reduce_faults
from swarmtest.store.fault_groups import FaultDecision
from swarmtest.subjects import MachineSubject

ENOUGH_TIME = ReductionTime(total=600.0)


class Ring:
    """It loses an element if it is appended when the ring is full."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def append(self, item: int) -> None:
        if len(self.items) == 4:
            return
        self.items.append(item)

    def extend(self, items: list[int]) -> None:
        for item in items:
            self.append(item)

    def replace(self, items: list[int]) -> None:
        self.items.clear()
        self.extend(items)


class ProudRing(Ring):
    """It has a second bug, in `extend` itself."""

    def append(self, item: int) -> None:
        if len(self.items) >= 7:
            return
        self.items.append(item)

    def extend(self, items: list[int]) -> None:
        super().extend(items[:-1] if len(items) == 3 else items)


class RingMachine(Machine):
    steps = 9

    def start(self) -> None:
        self.ring: Ring = Ring()
        self.model: list[int] = []

    @action(item=integers(0, 3))
    def append(self, item: int) -> None:
        self.ring.append(item)
        self.model.append(item)

    @action(items=lists(integers(0, 3), max_size=3))
    def extend(self, items: list[int]) -> None:
        self.ring.extend(items)
        self.model += items

    @invariant
    def holds_the_same(self) -> None:
        assert self.ring.items == self.model


class ProudRingMachine(RingMachine):
    def start(self) -> None:
        super().start()
        self.ring = ProudRing()


class Names:
    """Two operations that forget to count, and both call the same logger."""

    def __init__(self) -> None:
        self.names: set[int] = set()
        self.size = 0
        self.last = ""

    def _log(self, text: str) -> None:
        self.last = text

    def add(self, name: int) -> None:
        self._log(f"add {name}")
        self.names.add(name)
        self.size += 1

    def remove(self, name: int) -> None:
        self._log(f"remove {name}")
        self.names.discard(name)


class NamesMachine(Machine):
    def start(self) -> None:
        self.names = Names()

    @action(name=integers(0, 2))
    def add(self, name: int) -> None:
        self.names.add(name)

    @action(name=integers(0, 2))
    def remove(self, name: int) -> None:
        self.names.remove(name)

    @invariant
    def knows_its_size(self) -> None:
        assert self.names.size == len(self.names.names)


def decisions_of(machine: type[Machine], tests: int = 200) -> tuple[set[str], list[FaultDecision]]:
    """The operations after which faults were recorded, and which of them are one."""
    subject = MachineSubject(machine)
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", tests, workers=0, store=store).run().campaign
        reduce_faults(subject, store, campaign, ENOUGH_TIME)
        recorded = {fault.signature.split(":")[0] for fault in store.recorded.faults(campaign)}
        return recorded, list(store.fault_decisions())


def test_a_fault_of_an_operation_that_calls_the_faulty_one_is_the_same() -> None:
    recorded, decisions = decisions_of(RingMachine)
    assert recorded == {
        "invariant holds_the_same after append",
        "invariant holds_the_same after extend",
    }
    [decision] = decisions
    assert (
        decision.reason == "extend calls all that append calls, and this fails in its state as well"
    )


def test_an_operation_that_has_a_bug_of_its_own_keeps_its_fault() -> None:
    recorded, decisions = decisions_of(ProudRingMachine)
    assert len(recorded) == 2
    assert decisions == []


def test_operations_that_only_share_a_part_have_faults_of_their_own() -> None:
    recorded, decisions = decisions_of(NamesMachine)
    assert len(recorded) == 2
    assert decisions == []


class Listening:
    """A strategy that remembers the faults that it is told of."""

    def __init__(self) -> None:
        self.told: set[str] = set()

    def ask(self, space: Space, trial: int, rng: Stream) -> Configuration:
        return space.default()

    def tell(self, result: Result) -> None:
        if result.fault is not None:
            self.told.add(result.fault.id)


def test_a_strategy_that_learns_is_told_the_fault_as_which_it_is_shown() -> None:
    strategy = Listening()
    subject = MachineSubject(RingMachine)
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", 200, workers=0, store=store).run().campaign
        reduce_faults(subject, store, campaign, ENOUGH_TIME)
        [shown] = store.faults(campaign)
        Campaign(subject, strategy, 200, 7, workers=0, store=store).run()
        recorded = {fault.id for fault in store.recorded.faults(campaign + 1)}
    assert recorded == {shown.id, *shown.also}
    assert strategy.told == {shown.id}


class TalkativeMachine(Machine):
    """One bug, whose message says in other words how often it was met."""

    def start(self) -> None:
        self.full = False

    @action
    def fill(self) -> None:
        self.full = True

    @action(item=integers(0, 9))
    def push(self, item: int) -> None:
        if self.full:
            raise OverflowError(["no room", "all places are taken", "come again"][item % 3])


class DoubtfulMachine(Machine):
    """After `spoil`, one invariant is violated; after `mask`, the other one is found first."""

    def start(self) -> None:
        self.masked = self.spoilt = False

    @action
    def mask(self) -> None:
        self.masked = True

    @action
    def spoil(self) -> None:
        self.spoilt = True

    @invariant
    def first(self) -> None:
        assert not (self.spoilt and self.masked)

    @invariant
    def second(self) -> None:
        assert not self.spoilt


class TwoStepsMachine(DoubtfulMachine):
    """Here `mask` is what violates the first invariant, so there are two bugs."""

    @invariant
    def first(self) -> None:
        assert not self.masked


def test_messages_in_other_words_from_the_same_place_and_steps_are_one_fault() -> None:
    _, decisions = decisions_of(TalkativeMachine)
    assert {each.reason for each in decisions} == {
        "the same place, and small tests with the same steps"
    }
    assert len(decisions) == 2
    assert len({each.same_as for each in decisions}) == 1


def test_a_step_that_only_changes_which_invariant_is_violated_makes_no_other_fault() -> None:
    recorded, decisions = decisions_of(DoubtfulMachine)
    assert recorded == {"invariant first after spoil", "invariant second after spoil"}
    [decision] = decisions
    assert decision.reason.startswith("without step 1 of its small test, that one shows ")


def test_invariants_that_other_operations_violate_stay_two_faults() -> None:
    recorded, decisions = decisions_of(TwoStepsMachine)
    assert recorded == {"invariant first after mask", "invariant second after spoil"}
    assert decisions == []
