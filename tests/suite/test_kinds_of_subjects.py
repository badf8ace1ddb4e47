"""Suites of every kind of subject, and of programs that do not behave."""

from __future__ import annotations

import ast
import sys

import pytest
from tests.suite.conftest import CART, Run, Workplace

FILE = "tests/test_regressions.py"


def test_a_class_is_tested_without_swarmtest(workplace: Workplace) -> None:
    workplace.write("cart.py", CART.replace("name, count", "name: str, count: int"))
    workplace.run("cart:Cart", "--api", "--tests", "60", "--coverage", "line")
    told = workplace.swarmtest("suite", "-o", FILE)
    assert "it does not need swarmtest" in told
    tree = ast.parse((workplace.path / FILE).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "swarmtest" not in {str(module).partition(".")[0] for module in modules}


DEADLY = """
import os
from swarmtest import Machine, action

class Deadly(Machine):
    steps = 12
    def start(self): self.n = 0
    @action
    def up(self):
        self.n += 1
        if self.n == 6: self.event("six")
    @action
    def crash(self):
        if self.n == 3: os.abort()
        self.n = 0
"""


@pytest.fixture(scope="module")
def deadly(tmp_path_factory: pytest.TempPathFactory, swarmtest: Run) -> Workplace:
    """A project with a campaign of a machine that ends its process."""
    made = Workplace(tmp_path_factory.mktemp("deadly"), swarmtest)
    made.write("deadly.py", DEADLY)
    made.run("deadly.py", "--tests", "60", "--no-reduce")
    return made


def test_a_test_that_ends_its_process_does_not_end_pytest(deadly: Workplace) -> None:
    deadly.swarmtest("suite", "-o", FILE)
    text = (deadly.path / FILE).read_text()
    assert "They need swarmtest: deadly.py imports it." in text
    assert "@pytest.mark.xfail(run=False," in text
    status, output = deadly.pytest(FILE)
    assert status == 0
    assert "1 passed, 1 xfailed" in output


def test_a_file_of_somebody_else_is_overwritten_only_by_force(deadly: Workplace) -> None:
    deadly.write("tests/test_mine.py", "# mine\n")
    error = deadly.swarmtest("suite", "-o", "tests/test_mine.py", status=2)
    assert "use --force to overwrite it" in error
    assert (deadly.path / "tests/test_mine.py").read_text() == "# mine\n"
    deadly.swarmtest("suite", "-o", "tests/test_mine.py", "--force", "--faults", "none")
    assert "made by swarmtest" in (deadly.path / "tests/test_mine.py").read_text()


RULES = """
from cart import Cart
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

class CartRules(RuleBasedStateMachine):
    names = Bundle("names")

    @initialize(percent=st.integers(0, 3))
    def begin(self, percent):
        self.cart = Cart()
        self.cart.redeem(percent)

    @rule(target=names, name=st.sampled_from("abc"), count=st.integers(1, 4))
    def add(self, name, count):
        self.cart.add(name, count)
        return name

    @rule(name=names)
    def remove(self, name):
        self.cart.remove(name)

    @rule()
    def total(self):
        assert self.cart.total() >= 0

    @invariant()
    def positive(self):
        assert all(count > 0 for count in self.cart.items.values())
"""


def test_rules_of_hypothesis_are_called_without_swarmtest(workplace: Workplace) -> None:
    workplace.write("cart.py", CART)
    workplace.write("rules.py", RULES)
    workplace.run("rules.py", "--tests", "60", "--coverage", "line")
    told = workplace.swarmtest("suite", "-o", FILE)
    assert "1 failed as expected" in told
    assert "it does not need swarmtest" in told
    text = (workplace.path / FILE).read_text()
    assert "state.begin(percent=" in text
    assert "check(state)" in text


CALCULATOR = """
import ast

def value(node):
    if isinstance(node, ast.BinOp):
        left, right = value(node.left), value(node.right)
        if isinstance(node.op, ast.Mult):
            return left * right
        if left == 7:
            raise RuntimeError("seven")
        return left / right
    return node.value

def run(text):
    return value(ast.parse(text, mode="eval").body)
"""
CALCULATIONS = """
from calculator import run
from swarmtest.subjects import GrammarSubject

GRAMMAR = '''
?start: start "*" NUMBER -> times | start "/" NUMBER -> by | NUMBER -> number
NUMBER: /[0-9]/
'''
subject = GrammarSubject(GRAMMAR, run, raises=ZeroDivisionError, length=(1, 9))
"""


def test_texts_of_a_grammar_are_given_to_the_function_without_swarmtest(
    workplace: Workplace,
) -> None:
    workplace.write("calculator.py", CALCULATOR)
    workplace.write("calculations.py", CALCULATIONS)
    workplace.run("calculations.py", "--tests", "80", "--coverage", "line")
    told = workplace.swarmtest("suite", "-o", FILE, "--kinds", "coverage")
    assert "it does not need swarmtest" in told
    text = (workplace.path / FILE).read_text()
    assert "from calculator import run\n" in text
    assert "    with suppress(ZeroDivisionError):\n        run(" in text
    assert "@pytest.mark.xfail(strict=True, raises=RuntimeError, reason=" in " ".join(
        text.replace("(\n    ", "(").split()
    )


GENERATOR = """
import random, sys
draw = random.Random(int(sys.argv[1]))
for _ in range(4):
    print("echo", draw.choice([word for word in sys.argv[2:] if word] or ["x"]))
"""
COMMANDS = """
[generate]
command = "{python} {{here}}/generate.py {{seed}} {{features}}"
suffix = ".sh"
[features]
one = "one"
bad = "bad"
[[steps]]
name = "look"
run = "sh {{here}}/look.sh {{test}}"
[[steps]]
name = "run"
run = "sh {{test}}"
"""


def test_commands_are_run_on_files_without_swarmtest(workplace: Workplace) -> None:
    workplace.write("generate.py", GENERATOR)
    workplace.write("look.sh", "if grep -q bad $1; then exit 3; fi\n")
    workplace.write("words.toml", COMMANDS.format(python=sys.executable))
    workplace.run("words.toml", "--tests", "20")
    told = workplace.swarmtest("suite", "-o", FILE)
    assert "1 failed as expected" in told
    assert "it does not need swarmtest" in told
    files = [one.read_text() for one in (workplace.path / "tests/test_regressions_data").iterdir()]
    assert files == ["echo bad\n"]
    workplace.write("look.sh", "exit 0\n")
    assert "XPASS(strict)" in workplace.pytest(FILE)[1]


def test_what_an_oracle_in_python_judges_is_replayed_by_swarmtest(workplace: Workplace) -> None:
    workplace.write("generate.py", GENERATOR)
    workplace.write(
        "judge.py", "def judge(steps, text):\n    return 'bad' if 'bad' in text else None\n"
    )
    oracle = '[oracle]\npython = "judge.py:judge"\n'
    steps = COMMANDS.replace("sh {{here}}/look.sh", "cat")
    workplace.write("words.toml", steps.format(python=sys.executable) + oracle)
    workplace.run("words.toml", "--tests", "20")
    told = workplace.swarmtest("suite", "-o", FILE)
    assert "it needs swarmtest" in told
    status, output = workplace.pytest(FILE)
    assert status == 0
    assert "1 xfailed" in output


FLAKY = """
import os
from pathlib import Path
from swarmtest import Machine, action

class Flaky(Machine):
    steps = 5
    def start(self): self.n = 0
    @action
    def up(self):
        self.n += 1
        self.event(f"up {self.n}")
        if Path("broken").exists(): raise RuntimeError("broken")
    @action
    def down(self): self.n -= 1
"""


def test_tests_that_do_not_end_as_they_did_are_not_taken(workplace: Workplace) -> None:
    workplace.write("flaky.py", FLAKY)
    workplace.run("flaky.py", "--tests", "20")
    workplace.write("broken", "")
    error = workplace.swarmtest("suite", status=2)
    assert "no test can be used: passed in the campaign, and shows fault" in error


def test_other_features_are_told(workplace: Workplace) -> None:
    workplace.write("flaky.py", FLAKY)
    workplace.run("flaky.py", "--tests", "20")
    # Of another length: a file of the same size and second would be taken from its .pyc.
    workplace.write("flaky.py", FLAKY.replace("def down", "def leftwards"))
    error = workplace.swarmtest("suite", status=2)
    assert "flaky.py::Flaky has other features now than in campaign 1" in error


def test_nothing_to_keep_is_told(workplace: Workplace) -> None:
    workplace.write("quiet.py", FLAKY.replace('self.event(f"up {self.n}")', "pass"))
    workplace.run("quiet.py", "--tests", "5")
    error = workplace.swarmtest("suite", status=2)
    assert "campaign 1 has nothing to keep: no faults, and nothing was hit" in error
