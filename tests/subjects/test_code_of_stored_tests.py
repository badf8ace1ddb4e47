"""Tests of somebody else as code: what swarmtest writes, it may also run."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from swarmtest import Machine, UserError, action, integers
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
from swarmtest.subjects.hypothesis.test import RuleTest
from swarmtest.subjects.machine.code import ArgumentWriter
from swarmtest.suite.functions import function_of
from swarmtest.suite.suite import SuiteTest


class Disk(Machine):
    """A machine of the user, in a module that has functions, too."""

    @action(value=integers(0, 9))
    def write(self, value: Any) -> None:
        """Write a number."""


class Counter(RuleBasedStateMachine):
    """A state machine of the user."""

    @rule(x=st.integers(0, 9))
    def add(self, x: int) -> None:
        """Add a number."""


def wipe(disk: str = "") -> None:
    """Do something that no test should."""
    raise AssertionError(f"the function of the user was called with {disk!r}")


CALL = "0 if __import__('os').abort() else 0"
INJECTIONS: dict[str, Any] = {
    "a reference": {"$ref": CALL},
    "the name of a built-in": {"$name": f"builtins:({CALL})"},
    "the name of a module": {"$name": "os; import antigravity:path"},
    "a function of the system": {"$name": "os:abort"},
    "a call of the system": {"$dataclass": "os:system", "fields": {"command": "true"}},
    "a call of the user's function": {"$dataclass": f"{__name__}:wipe", "fields": {"disk": "all"}},
    "a field": {"$dataclass": "argparse:Namespace", "fields": {f"a={CALL}, b": 1}},
    "an enum": {"$enum": "re:RegexFlag", "name": f"A if {CALL} else A"},
    "a named tuple": {"$namedtuple": "os:system", "items": ["true"]},
    "a path": {"$path": [f"Path({CALL})", "x"]},
    "a shape": {"$array": "<i8", "shape": CALL, "items": [1]},
    "parts of a list": [1, {"$tuple": [{"$ref": CALL}]}],
}


def called_in(code: str) -> set[str]:
    """Return the names of what a program calls."""
    return {
        ast.unparse(node.func) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)
    }


@pytest.mark.parametrize("kind", INJECTIONS)
def test_an_argument_is_written_as_data_or_not_at_all(kind: str) -> None:
    subject = MachineSubject(Disk, harness=False)
    test = {"format": "swarmtest machine test 1", "subject": "disk"}
    try:
        code = subject.code(test | {"steps": [["write", [INJECTIONS[kind]]]]})
    except UserError:
        return
    assert called_in(code) == {"Disk", "machine.write"}


def test_a_label_or_an_exception_of_a_step_is_no_code() -> None:
    subject = MachineSubject(Disk, harness=False)
    test = {"format": "swarmtest machine test 1", "subject": "disk"}
    for steps in (
        [["write", [1], CALL, ""], ["write", [{"$ref": CALL}]]],
        [["write", [1], [], ""]],
        [["write", [{"$ref": {}}]]],
    ):
        with pytest.raises(UserError):
            subject.code(test | {"steps": steps})
    code = subject.code(test | {"steps": [["write", [1], 0, CALL]]})
    assert "abort" not in code


def test_arguments_that_a_user_may_have_are_written_as_before() -> None:
    writer = ArgumentWriter()
    assert writer.code({"$ref": 3}) == "v3"
    assert writer.code({"$enum": "shop:Colour", "name": "RED"}) == "Colour.RED"
    assert writer.code({"$enum": "shop:Colour", "name": "light red"}) == "Colour['light red']"
    assert writer.code({"$path": ["PosixPath", "a"]}) == "Path('a')"
    assert writer.code({"$array": "<i8", "shape": [1, 2], "items": [1, 2]}).endswith("([1, 2])")
    assert writer.code({"$name": "my-script:Shop.Till"}) == "Shop.Till"
    assert "import importlib; Shop = importlib.import_module('my-script').Shop" in writer.imports


def test_the_steps_of_a_state_machine_are_rules_that_it_has() -> None:
    subject = RuleBasedSubject(Counter)
    test = {"format": "swarmtest rule test 1", "subject": "counter.py::Counter"}
    for step in (
        {"rule": f"add(1) or {CALL} or state.add", "label": 1, "arguments": {"x": "1"}},
        {"rule": "add", "label": 1, "arguments": {f"x=1 if {CALL} else x": "1"}},
        {"rule": "add", "label": 1, "gives": CALL},
        {"rule": "add", "label": CALL},
    ):
        with pytest.raises(UserError):
            subject.code(test | {"steps": [step]})
    with pytest.raises(UserError):
        subject.code(test | {"steps": [], "violated": f"add(1) or {CALL} or state.add"})


def test_a_suite_writes_the_arguments_that_a_rule_got_here_not_those_of_the_store() -> None:
    subject = RuleBasedSubject(Counter)
    step = {"rule": "add", "label": 1, "choices": [4], "arguments": {"x": CALL}}
    data = RuleTest.from_json(
        {"format": "swarmtest rule test 1", "subject": "counter.py::Counter", "steps": [step]}
    ).to_json()
    function = function_of(subject, SuiteTest(1, data, 1, 1))
    assert "state.add(x=4)" in function.body
    assert "abort" not in function.body
