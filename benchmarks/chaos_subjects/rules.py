"""A state machine of Hypothesis with a fault; each test adds a byte to a file."""

from __future__ import annotations

import os
import time

from hypothesis import strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

NAP = float(os.environ.get("NAP", "0")) / 1000
TESTS_RUN = os.open(os.environ["TESTS_RUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


class Rules(RuleBasedStateMachine):
    """A bounded stack."""

    @initialize()
    def begin(self) -> None:
        """Begin with nothing."""
        self.items: list[int] = []
        os.write(TESTS_RUN, b".")
        time.sleep(NAP)

    @rule(item=strategies.integers(0, 99))
    def push(self, item: int) -> None:
        """Push an item."""
        assert len(self.items) < 20
        self.items.append(item)

    @rule()
    def pop(self) -> None:
        """Pop an item."""
        if self.items and self.items.pop() == 97:
            raise KeyError("97")

    @rule()
    def clear(self) -> None:
        """Remove all items."""
        self.items.clear()
