"""Programs whose process, host or campaign is killed at times: see `kills_once`."""

from __future__ import annotations

from hypothesis import strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from kills_once import kill_at, kill_for

from swarmtest import Machine, action, integers


class Steady(Machine):
    steps = 4

    @action(value=integers(0, 10**9))
    def work(self, value: int) -> None:
        self.event(f"worked {value % 5}")
        kill_for(value, one_in=30)
        if value % 20 == 7:
            raise RuntimeError("a real fault")

    @action
    def rest(self) -> None:
        pass


class Rules(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        kill_at({5: "campaign", 20: "host", 35: "child"})

    @rule(value=strategies.integers(1, 10**9))
    def work(self, value: int) -> None:
        if value % 200 == 7:
            raise RuntimeError("a real fault")

    @rule()
    def rest(self) -> None:
        pass
