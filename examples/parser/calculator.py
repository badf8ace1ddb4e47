"""A calculator for sums like `2 + 3 * -4`, and a machine that writes sums and compares results."""

import re

from swarmtest import Machine, action, integers

TOKEN = re.compile(r"\d+|\*\*|[-+*()]")


class Calculator:
    """The program under test: a parser by recursive descent that computes as it reads."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(text)

    def result(self):
        value = self.total()
        if self.tokens:
            raise SyntaxError(f"unexpected {self.tokens[0]}")
        return value

    def next_is(self, *expected):
        return bool(self.tokens) and self.tokens[0] in expected

    def total(self):
        value = self.product()
        while self.next_is("+", "-"):
            value = value + self.product() if self.tokens.pop(0) == "+" else value - self.product()
        return value

    def product(self):
        value = self.power()
        while self.next_is("*"):
            self.tokens.pop(0)
            value *= self.power()
        return value

    def power(self):
        value = self.operand()
        if self.next_is("**"):
            self.tokens.pop(0)
            value = value ** self.power()
        return value

    def operand(self):
        token = self.tokens.pop(0)
        if token == "-":
            return -self.operand()  # the bug: -2 ** 2 is -(2 ** 2)
        if token == "(":
            value = self.total()
            self.tokens.pop(0)
            return value
        return int(token)


class CalculatorMachine(Machine):
    """Extends a sum step by step; each way to extend it is a feature."""

    steps = 6

    def start(self):
        self.text = "1"

    def extend(self, text):
        self.text = text
        assert Calculator(text).result() == eval(text)

    @action(number=integers(0, 9))
    def add(self, number):
        self.extend(f"{self.text} + {number}")

    @action(number=integers(0, 9))
    def subtract(self, number):
        self.extend(f"{self.text} - {number}")

    @action(number=integers(0, 9))
    def multiply(self, number):
        self.extend(f"{number} * {self.text}")

    @action(number=integers(0, 2))
    def raise_to(self, number):
        self.extend(f"{self.text} ** {number}")

    @action
    def negate(self):
        self.extend(f"-{self.text}")

    @action
    def put_in_brackets(self):
        self.extend(f"({self.text})")
