"""Test suites, and how to run pytest on them."""

from __future__ import annotations

import os

from pytest_processes import pytest_words

FAULTY = """
    from swarmtest import Machine, action, integers

    class Stack:
        def __init__(self):
            self.items = []

        def push(self, value):
            if len(self.items) == 8:
                raise OverflowError("stack is full")
            self.items.append(value)

    class StackMachine(Machine):
        steps = 30

        def start(self):
            self.stack = Stack()

        @action(value=integers(0, 9))
        def push(self, value):
            self.stack.push(value)

        @action(when=lambda self: self.stack.items)
        def pop(self):
            self.stack.items.pop()

        @action
        def look(self):
            len(self.stack.items)
    """
FINE = """
    from swarmtest import Machine, action

    class Lamp(Machine):
        steps = 5

        @action
        def switch(self):
            pass
    """


def words_of_pytest(*arguments: str) -> list[str]:
    return pytest_words("-p", "swarmtest.pytest_plugin", *arguments)


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
