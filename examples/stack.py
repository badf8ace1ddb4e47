"""A stack for 32 elements whose overflow check is off by one, and a machine that tests it."""

from swarmtest import Machine, action, integers, invariant


class BoundedStack:
    """The program under test. `push` should refuse the 33rd element; it refuses the 34th."""

    capacity = 32

    def __init__(self):
        self.items = []

    def push(self, value):
        if len(self.items) > self.capacity:
            raise OverflowError("stack is full")
        self.items.append(value)

    def pop(self):
        return self.items.pop()


class StackMachine(Machine):
    """What can be done to a stack: each action is a feature that a test may leave out."""

    steps = 100

    def start(self):
        self.stack = BoundedStack()

    @action(value=integers(0, 9), raises=OverflowError)
    def push(self, value):
        self.stack.push(value)

    @action(when=lambda self: self.stack.items)
    def pop(self):
        self.stack.pop()

    @action(when=lambda self: len(self.stack.items) >= 2)
    def add(self):
        self.stack.push(self.stack.pop() + self.stack.pop())

    @invariant
    def never_above_capacity(self):
        assert len(self.stack.items) <= self.stack.capacity
