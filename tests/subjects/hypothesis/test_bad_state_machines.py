"""What is wrong with a state machine is said in one line, before any test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

from swarmtest import UserError
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects.hypothesis.declaration import state_machine_of
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

HEAD = """
from hypothesis import settings, strategies as st
from hypothesis.stateful import *
"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "    @invariant()\n    def fine(self): pass",
            "state machine 'M' has no rules: decorate at least one method with @rule()",
        ),
        (
            "    def __init__(self, size): super().__init__()\n    @rule()\n    def a(self): pass",
            "is created without arguments, but its __init__ needs size",
        ),
        (
            "    @rule(n=st.integers(9, 3))\n    def a(self, n): pass",
            "rule M.a, argument 'n': .*max_value=3",
        ),
        ("    @rule(m=st.integers())\n    def a(self, n): pass", "rule M.a: .*'n'"),
        (
            "    @precondition(lambda self: True)\n    def a(self): pass\n"
            "    @rule()\n    def b(self): pass",
            "state machine 'M': M.a has been decorated with @precondition",
        ),
        (
            "    @rule()\n    def a(self): pass\n    b = a",
            "has two rules named 'a'",
        ),
    ],
)
def test_a_mistake_in_a_class_is_one_line(body: str, words: str, tmp_path: Path) -> None:
    name = f"bad_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"{HEAD}\nclass M(RuleBasedStateMachine):\n{body}\n")
    machine = load_object(f"{tmp_path / name}.py:M", "machine")
    with pytest.raises(UserError, match=words) as caught:
        RuleBasedSubject(machine)
    assert "\n" not in str(caught.value)


def test_settings_that_do_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text(
        f"{HEAD}\nclass M(RuleBasedStateMachine):\n    settings = settings(max_examples=3)\n"
        "    @rule()\n    def a(self): pass\n"
    )
    subject = RuleBasedSubject(load_object(f"{tmp_path / 'idle'}.py:M", "machine"))
    with pytest.raises(UserError, match="Assigning settings"):
        subject.execute(subject.space.default(), 1)


def test_steps_that_are_no_number_are_refused() -> None:
    from state_machines import Stack

    with pytest.raises(UserError, match="steps is a number above 0 or a range, not 0"):
        RuleBasedSubject(Stack, steps=0)


def test_a_rule_that_can_never_run_is_told_when_one_asks() -> None:
    class Idle(RuleBasedStateMachine):
        files: Bundle[str] = Bundle("files")

        @rule(file=files)
        def close(self, file: str) -> None: ...

    class Busy(Idle):
        @rule()
        def rest(self) -> None: ...

    words = "can never run: no rule fills bundle 'files'"
    assert RuleBasedSubject(Idle).check() == [f"rule Idle.close {words}"]
    assert RuleBasedSubject(Busy).check() == []  # as in Hypothesis
    assert RuleBasedSubject(Busy).check(thorough=True) == [f"rule Busy.close {words}"]


def test_something_else_is_no_state_machine() -> None:
    with pytest.raises(UserError, match="dict is not a RuleBasedStateMachine"):
        state_machine_of(dict)


def test_recognising_a_state_machine_does_not_import_hypothesis() -> None:
    program = (
        "import sys; from swarmtest.subjects.hypothesis import is_state_machine\n"
        "assert not is_state_machine(dict); assert 'hypothesis' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_version_of_hypothesis_without_the_internals_is_refused_in_one_line() -> None:
    program = (
        "import hypothesis.internal.conjecture.choice as choice\n"
        "del choice.choice_permitted\n"
        "from swarmtest.core.errors import UserError\n"
        "try: import swarmtest.subjects.hypothesis.subject\n"
        "except UserError as error: print(error)\n"
    )
    # Hypothesis itself needs the name: it is taken away after it was imported.
    program = "import hypothesis, hypothesis.stateful\n" + program
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "cannot drive the state machines of Hypothesis" in ran.stdout, ran.stderr
    assert "choice_permitted" in ran.stdout
    assert ran.stdout.count("\n") == 1
