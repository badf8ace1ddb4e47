"""A grammar and a function as a subject: run, replayed, reduced, journalled, in a campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Verdict
from swarmtest.coverage.native.program import ProgramRun
from swarmtest.subjects.grammar.subject import GrammarSubject
from swarmtest.subjects.subject import Subject

GRAMMAR = """
start: item*
item: "a" -> a | "b" -> b | "(" item ")" -> nested | /[0-9]+/ -> n
%ignore " "
"""


class Wrong(ValueError):
    """What the program says to bad input."""


def run(text: str) -> set[str]:
    if "9" in text:
        raise Wrong(text)
    if "b b" in text:
        raise AssertionError("two in a row")
    return {"nested"} if "(" in text else set()


def subject(**options: Any) -> GrammarSubject:
    return GrammarSubject(GRAMMAR, run, length=(5, 40), raises=Wrong, **options)


def failing(tested: GrammarSubject) -> Any:
    results = (tested.execute(tested.space.default(), seed) for seed in range(100))
    return next(result for result in results if result.fault)


def test_it_is_a_subject() -> None:
    assert isinstance(subject(), Subject)


def test_a_failure_is_a_fault_and_a_known_exception_is_not() -> None:
    tested = subject()
    results = [tested.execute(tested.space.default(), seed) for seed in range(100)]
    assert {result.fault.signature for result in results if result.fault} == {
        "AssertionError: two in a row [run]"
    }
    assert any("9" in tested.test_of(tested.space.default(), seed)["text"] for seed in range(100))


def test_what_run_returns_are_events_and_uses_are_counted() -> None:
    tested = subject()
    only = tested.space.configuration({"a": 1, "nested": 1, "start*item": 1})
    result = next(r for s in range(50) if (r := tested.execute(only, s)).hits)
    assert result.hits == ("event:nested",)
    used = dict(zip(tested.space.feature_names, result.used, strict=True))
    assert used["nested"] > 0 == used["b"]
    assert result.steps == sum(used[n] for n in ("a", "nested")) + used["nested"]


def test_the_same_configuration_and_seed_give_the_same_result() -> None:
    one, other = subject(), subject()
    for seed in range(30):
        assert one.execute(one.space.default(), seed) == other.execute(other.space.default(), seed)


def test_a_saved_test_replays_prints_and_survives_json() -> None:
    tested = subject()
    result = failing(tested)
    saved = json.loads(json.dumps(result.test))
    assert tested.replay(saved).fault == result.fault
    assert "b b" in tested.code(saved)


def test_a_saved_test_runs_after_the_grammar_was_edited() -> None:
    saved = failing(subject()).test
    edited = GrammarSubject('start: "c" | "d"\n', run, raises=Wrong)
    assert edited.replay(saved).fault is not None
    with pytest.raises(UserError, match="was the grammar edited since"):
        edited.reduced(saved, lambda test: True)


def test_a_test_is_reduced_to_what_it_takes() -> None:
    tested = subject()
    result = failing(tested)
    reduced = tested.reduced(result.test, lambda t: tested.replay(t).fault == result.fault)
    assert reduced["text"] == "b b"


def test_a_test_that_kills_its_process_is_rebuilt_from_the_journal() -> None:
    tested = subject()
    told: list[Any] = []
    tested.journal = told.append
    tested.execute(tested.space.default(), 3)
    result = tested.result_of_journal(told, tested.space.default(), Fault("signal", "SIGSEGV"))
    assert result.verdict is Verdict.FAILED
    assert result.test == tested.test_of(tested.space.default(), 3)
    assert sum(result.used) > 0


def test_a_configuration_from_which_nothing_can_be_made_is_invalid_not_a_fault() -> None:
    tested = GrammarSubject('start: "a" | "(" start ")"\n', run, effective=False)
    free = type(tested.space)(tested.space.features)
    result = tested.execute(free.configuration(["start:(start)"]), 1)
    assert result.verdict is Verdict.INVALID
    assert "one of these would end it: start:a" in result.missing


def test_another_length_leaves_the_first_subject_as_it_was() -> None:
    tested = subject()
    longer = tested.resized((200, 200))
    long, short = (s.test_of(s.space.default(), 3) for s in (longer, tested))
    assert len(long["text"]) > 2 * len(short["text"])


@pytest.mark.parametrize("wrong", [{}, {"format": "swarmtest grammar test 1"}, None, [1]])
def test_what_is_no_saved_test_is_refused(wrong: object) -> None:
    with pytest.raises(UserError, match="saved grammar test"):
        subject().replay(wrong)


FILE = """
import os
from swarmtest.subjects.grammar.subject import GrammarSubject

def run(text):
    if "((x" in text:
        os.abort()
    assert text != "y"

brackets = GrammarSubject("brackets.lark", run, length=(1, 9))
"""


def test_a_campaign_finds_what_raises_and_what_crashes(swarmtest: Any, tmp_path: Path) -> None:
    (tmp_path / "brackets.py").write_text(FILE)
    (tmp_path / "brackets.lark").write_text('start: "x" | "y" | "(" start ")"\n')
    assert swarmtest("run", "brackets.py", "--tests", 60, "-q", cwd=tmp_path).returncode == 1
    shown = swarmtest("faults", cwd=tmp_path).stdout
    assert "AssertionError [run: assert " in shown
    assert "SIGABRT" in shown
    assert "((x" in shown


class Doubled:
    """A native program, as far as a subject knows one: it fails for two b in a row."""

    timeout = 4.0

    def run(self, data: bytes) -> ProgramRun:
        return ProgramRun(status=None, signal=6) if b"b b" in data else ProgramRun(status=0)


def test_a_native_program_runs_on_the_texts_and_its_fault_is_that_of_the_test() -> None:
    tested = GrammarSubject(GRAMMAR, Doubled(), length=(5, 40))
    tests = [tested.generate(tested.space.default(), seed) for seed in range(40)]
    results = [tested.run(test) for test in tests]
    faults = {r.fault.signature for r in results if r.fault is not None}
    assert faults == {"SIGABRT"}
    assert {r.verdict for r in results} == {Verdict.PASSED, Verdict.FAILED}
    assert all(("b b" in r.test["text"]) == (r.fault is not None) for r in results)
    assert {len(r.used) for r in results} == {len(tested.space.feature_names)}
    assert tested.seconds == 4.0
