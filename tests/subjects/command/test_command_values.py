"""Tests of commands as values: saved, replayed, printed, made smaller."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest import UserError
from swarmtest.core.result import Fault, Verdict
from swarmtest.subjects.command.reduction import blocks, lines
from swarmtest.subjects.command.test import CommandTest


@given(
    st.binary(),
    st.dictionaries(st.text(), st.integers() | st.text()),
    st.none() | st.integers(0, 2**63 - 1),
    st.none() | st.lists(st.text()).map(tuple),
)
def test_a_test_of_any_bytes_survives_json(content, settings, seed, features):
    test = CommandTest("x.toml", content, settings, seed, features)
    assert CommandTest.from_json(json.loads(json.dumps(test.to_json()))) == test


@given(st.lists(st.sampled_from(["a;\n", "f() {\n", "}\n", "} else {\n", "\n", "x"])))
def test_blocks_and_lines_leave_nothing_out(parts):
    content = "".join(parts).encode()
    assert b"".join(lines(content)) == content
    assert b"".join(blocks(content)) in (content, b"")


@pytest.mark.parametrize("data", [{}, [], {"format": "swarmtest command test 1"}, {"text": "x"}])
def test_what_is_no_saved_test_is_refused(data):
    with pytest.raises(UserError, match="saved command test"):
        CommandTest.from_json(data)


def test_binary_tests_are_replayed_byte_by_byte(subject):
    made = subject(
        """
        [generate]
        command = ["printf", '\\377\\000{seed}{features}']
        [features]
        a = "a"
        [[steps]]
        run = ["sh", "-c", "od -An -tx1 {test}; exit 1"]
        """
    )
    result = made.execute(made.space.default(), 1)
    assert " ff 00 32 61\n" in result.fault.details
    assert "base64" in result.test
    assert made.replay(result.test).fault.details == result.fault.details


def test_a_test_can_be_replayed_without_its_generator(steps):
    made = steps('[[steps]]\nrun = ["grep", "-q", "bye", "{test}"]')
    test = made.test_of(made.space.default(), 1)
    assert made.replay(test).fault.signature == "step1: exit status 1"
    assert made.replay(test | {"text": "bye\n"}).verdict == Verdict.PASSED


def test_the_commands_by_hand_do_the_same(steps, tmp_path):
    made = steps(
        """
        [[steps]]
        run = ["sh", "-c", "tr a-z A-Z < {test} > {dir}/made"]
        [[steps]]
        run = ["sh", "-c", "cat; echo $A; ls {dir}; pwd"]
        stdin = "{dir}/made"
        env = { A = "two words" }
        cwd = "{here}"
        """
    )
    test = made.test_of(made.space.default(), 1)
    place = tmp_path / "by-hand"
    place.mkdir()
    (place / "test").write_text(made.code(test))
    done = subprocess.run(
        ["sh", "-ec", "\n".join(made.commands(test))], cwd=place, capture_output=True, text=True
    )
    assert done.stdout == f"HELLO\ntwo words\nmade\ntest\n{tmp_path}\n"


def test_passing_tests_are_kept_only_if_asked_for(steps):
    made = steps('[[steps]]\nrun = "true"')
    assert made.execute(made.space.default(), 1).test is None
    made.keep_tests = True
    assert made.code(made.execute(made.space.default(), 1).test) == "hello\n"


def test_a_test_that_ends_its_own_process_is_known_from_the_journal(steps):
    made = steps('[[steps]]\nrun = "true"')
    told: list[Any] = []
    made.journal = told.append
    made.execute(made.space.default(), 1)
    fault = Fault("timeout", "timeout")
    result = made.result_of_journal(told, made.space.default(), fault)
    assert (result.verdict, result.fault, result.steps) == (Verdict.FAILED, fault, 1)
    assert made.code(result.test) == "hello\n"
    nothing = made.result_of_journal([], made.space.default(), fault)
    assert nothing.verdict == Verdict.INVALID
    assert nothing.missing == "the generator did not end (timeout)"


PROGRAM = """\
int a;
int needed;
int f() {
  a = 1;
  return 2;
}
int g() {
  needed = 3;
}
int b;
"""


def reduce(made, content, keeps):
    """The reduced text, and how many candidates were tried."""
    tried = []

    def interesting(test):
        tried.append(test["text"])
        return keeps(test["text"])

    test = CommandTest("x", content.encode()).to_json()
    return made.code(made.reduced(test, interesting)), len(tried)


def test_lines_and_blocks_that_are_not_needed_go(steps):
    made = steps('[[steps]]\nrun = "true"')
    text, tried = reduce(made, PROGRAM, lambda text: "needed = 3" in text)
    assert text == "  needed = 3;\n"
    balanced, _ = reduce(
        made, PROGRAM, lambda t: "needed = 3" in t and t.count("{") == t.count("}") == 1
    )
    assert balanced == "int g() {\n  needed = 3;\n}\n"
    long = "".join(f"line {n};\n" for n in range(1000)) + PROGRAM
    _, tried = reduce(made, long, lambda text: "needed = 3" in text)
    assert tried < 100


REDUCER = """
import os, pathlib, subprocess, sys, tempfile
script, name = sys.argv[1:]
file = pathlib.Path(name)
while True:
    text = file.read_text()
    for i in range(len(text)):
        candidate = text[:i] + text[i + 1:]
        with tempfile.TemporaryDirectory() as place:
            (pathlib.Path(place) / name).write_text(candidate)
            if subprocess.run([script], cwd=place).returncode == 0:
                file.write_text(candidate)
                break
    else:
        break
import time
time.sleep({pause})
"""


def external(steps, pause, seconds):
    return steps(
        f"""
        [[steps]]
        run = "true"
        [reduce]
        command = ["{sys.executable}", "-S", "{{here}}/reducer.py", "{{script}}", "{{test}}"]
        seconds = {seconds}
        """,
        reducer_py=REDUCER.replace("{pause}", str(pause)),
    )


def test_an_external_reducer_asks_the_same_question(steps):
    made = external(steps, pause=0, seconds=60)
    text, _ = reduce(made, "a needed thing\nmore\n", lambda text: "needed" in text)
    assert text == "needed"


def test_an_external_reducer_is_ended_when_its_time_is_up_and_its_best_is_kept(steps):
    made = external(steps, pause=f"9{os.getpid()}", seconds=4)
    asked = []

    def has_y(text):
        asked.append(text)
        return "y" in text

    text, _ = reduce(made, "xyz\n", has_y)
    assert text == min((text for text in asked if "y" in text), key=len) != "xyz\n"


def test_an_error_in_the_question_ends_the_reducer(steps):
    made = external(steps, pause=0, seconds=60)
    asked = []

    def tired(text):
        asked.append(text)
        if len(asked) > 3:
            raise TimeoutError
        return "y" in text

    with pytest.raises(TimeoutError):
        reduce(made, "xyz and more\n", tired)


def test_cvise_reduces_inside_lines(steps):
    if not shutil.which("cvise"):
        pytest.skip("needs cvise: apt-get install cvise")
    made = steps('[[steps]]\nrun = "true"\n[reduce]\nexternal = "cvise"\nseconds = 170')

    def has_needed_int(text):
        if "int" in text and "needed" in text and "more" not in text:
            raise SmallEnough  # cvise would go on for seconds
        return "int" in text and "needed" in text

    with pytest.raises(SmallEnough):
        reduce(made, "int x, needed, y; int more() { return 1; }\n", has_needed_int)


class SmallEnough(Exception):
    """The text is as small as a test wants it."""


def test_an_external_reducer_that_is_not_asked_for_is_not_run(steps):
    made = steps('[[steps]]\nrun = "true"\n[reduce]\nexternal = "auto"')
    text, _ = reduce(made, "a needed thing\n", lambda text: "needed" in text)
    assert text == "a needed thing\n"  # not C, so nothing fits


GRAMMAR = """
start: "echo $((" sum "))" NL
sum: NUMBER -> number
   | sum "+" sum -> add
   | sum "/" sum -> divide
NUMBER: /[0-9]/
NL: "\\n"
"""


def test_tests_may_come_from_a_grammar(subject):
    pytest.importorskip("lark")
    made = subject(
        """
        [generate]
        grammar = "sums.lark"
        length = [4, 30]
        suffix = ".sh"
        [features]
        add = { rate = 0.3 }
        [[steps]]
        name = "sh"
        run = "sh {test}"
        [oracle]
        patterns = [{ regex = "division by" }]
        """,
        sums_lark=GRAMMAR,
    )
    assert made.check(thorough=True) == []
    assert made.weighted
    assert {f.name: f.rate for f in made.space.features}["add"] == 0.3
    results = [made.execute(made.space.default(), seed) for seed in range(30)]
    failed = max((r for r in results if r.fault), key=lambda r: r.steps)
    assert failed.fault.signature == "sh: division by"
    used = dict(zip(made.space.feature_names, failed.used, strict=True))
    assert used["divide"] == made.code(failed.test).count("/")
    small = made.reduced(failed.test, lambda test: made.replay(test).fault == failed.fault)
    result = made.replay(small)
    assert result.steps < failed.steps
    assert made.code(small).count("/") == 1
