"""A state machine of Hypothesis for the stack of `stack.py`, as a user of Hypothesis has it.

pytest examples/hypothesis_stack.py              Hypothesis alone
swarmtest run examples/hypothesis_stack.py       swarmtest chooses the rules
"""

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from stack import BoundedStack


class StackRules(RuleBasedStateMachine):
    """The same actions as `StackMachine`, as rules."""

    def __init__(self):
        super().__init__()
        self.stack = BoundedStack()

    @rule(value=st.integers(0, 9))
    def push(self, value):
        with suppress(OverflowError):
            self.stack.push(value)

    @precondition(lambda self: self.stack.items)
    @rule()
    def pop(self):
        self.stack.pop()

    @precondition(lambda self: len(self.stack.items) >= 2)
    @rule()
    def add(self):
        self.stack.push(self.stack.pop() + self.stack.pop())

    @invariant()
    def not_too_deep(self):
        assert len(self.stack.items) <= BoundedStack.capacity


TestStackRules = StackRules.TestCase
TestStackRules.settings = settings(TestStackRules.settings, stateful_step_count=100)
