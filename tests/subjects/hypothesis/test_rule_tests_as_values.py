"""A state machine's test is a value: it saves as JSON, replays, loses steps, prints as code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import state_machines
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule
from state_machines import Deadly, Files, Stack

from swarmtest import Budget, Campaign, UserError, Verdict
from swarmtest.core.result import Fault
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest, smaller_choices

MACHINES = Path(state_machines.__file__).parent


def failing(subject: RuleBasedSubject, names: list[str] | None = None) -> Any:
    space = subject.space
    configuration = space.configuration(names) if names else space.default()
    found = (subject.execute(configuration, seed) for seed in range(300))
    return next(result for result in found if result.fault)


def saved(test: Any) -> Any:
    return json.loads(json.dumps(test))


def run(program: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, str(tmp_path / "program.py")]
    return subprocess.run(
        command, env={"PYTHONPATH": str(MACHINES)}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("machine", [Stack, Files])
def test_a_saved_test_replays_without_a_random_generator(machine: type) -> None:
    subject = RuleBasedSubject(machine)
    subject.keep_tests = True
    for seed in range(40):
        result = subject.execute(subject.space.default(), seed)
        again = subject.replay(saved(result.test))
        assert again.test == result.test
        assert (again.fault, again.used, again.skipped) == (result.fault, result.used, 0)


def test_a_test_that_lost_steps_still_runs() -> None:
    subject = RuleBasedSubject(Files)
    subject.keep_tests = True
    whole = RuleTest.from_json(subject.execute(subject.space.default(), 8).test)
    for lost in range(len(whole.steps)):
        steps = whole.steps[:lost] + whole.steps[lost + 1 :]
        result = subject.replay(RuleTest(whole.subject, steps).to_json())
        assert result.verdict is Verdict.PASSED or "few" in result.fault.signature  # type: ignore[union-attr]


def test_a_step_whose_value_is_gone_is_skipped_and_the_others_keep_theirs() -> None:
    seen: list[tuple[int, ...]] = []

    class Things(RuleBasedStateMachine):
        things = Bundle("things")

        @rule(target=things, value=st.integers(0, 99))
        def make(self, value: int) -> int:
            return value

        @rule(thing=things)
        def use(self, thing: int) -> None:
            seen.append((thing,))

    steps = [
        RuleStep("make", 1, (11,)),
        RuleStep("make", 2, (22,)),
        RuleStep("make", 3, (33,)),
        RuleStep("use", 4, names=("v2",)),
        RuleStep("use", 5, names=("v3",)),
    ]
    subject = RuleBasedSubject(Things)
    subject.replay(RuleTest("x", tuple(steps)).to_json())
    assert seen == [(22,), (33,)]
    seen.clear()
    result = subject.replay(RuleTest("x", (steps[0], *steps[2:])).to_json())
    assert seen == [(33,)]
    assert result.skipped == 1


def test_choices_that_do_not_fit_any_more_become_the_simplest() -> None:
    seen = []

    class Draws(RuleBasedStateMachine):
        @rule(low=st.integers(5, 9), word=st.text(), data=st.data())
        def draw(self, low: int, word: str, data: Any) -> None:
            seen.append((low, word, data.draw(st.booleans())))

    subject = RuleBasedSubject(Draws)
    # Arguments are drawn in the order of their names: data draws nothing yet, then low, then word.
    for choices in [(7, "x", True), (77, 8, True), (), ("x",)]:
        subject.replay(RuleTest("x", (RuleStep("draw", 1, choices),)).to_json())
    assert seen == [(7, "x", True), (5, "", True), (5, "", False), (5, "", False)]


def test_the_code_of_a_test_shows_its_fault(tmp_path: Path) -> None:
    for machine, message in ((Stack, "overflow"), (Files, "few")):
        subject = RuleBasedSubject(machine)
        result = failing(subject, ["push"] if machine is Stack else None)
        ran = run(subject.code(saved(result.test)), tmp_path)
        assert ran.returncode == 1
        assert message in ran.stderr


def test_the_code_of_a_test_that_passes_runs_to_its_end(tmp_path: Path) -> None:
    subject = RuleBasedSubject(Files)
    found = (subject.test_of(subject.space.default(), seed) for seed in range(50))
    test = next(t for t in found if subject.replay(t).verdict is Verdict.PASSED)
    code = subject.code(test)
    assert "draws(" in code
    assert "Point(" in code
    ran = run(code, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_code_of_a_test_imports_what_python_prints_values_with(tmp_path: Path) -> None:
    subject = RuleBasedSubject(Stack)
    texts = {
        "a": "[Decimal('1.5'), Fraction(1, 3), UUID(int=7), deque([Counter()]), -inf]",
        "b": "datetime.timedelta(days=datetime.date(2000, 1, 1).day)",
    }
    code = subject.code(RuleTest("x", (RuleStep("push", 1, texts=texts),)).to_json())
    ran = run(code.replace("state.push", "print"), tmp_path)
    assert "NameError" not in ran.stderr
    assert "TypeError" in ran.stderr  # print was called, with all arguments
    assert "keyword" in ran.stderr


def test_code_that_cannot_run_says_so() -> None:
    subject = RuleBasedSubject(Stack)
    steps = (RuleStep("push", 1, texts={"value": "<Thing object>"}),)
    assert subject.code(RuleTest("x", steps).to_json()).startswith(
        "# This shows the test, but does not run: <Thing object> is not code.\n"
    )


def test_the_code_of_a_small_test_reads_well() -> None:
    subject = RuleBasedSubject(Files)
    names = ("v1_2",)
    steps = (
        RuleStep("name_some", 1, (2,), texts={"count": "2"}, gives=2),
        RuleStep("begin", 2),
        RuleStep("open", 3, names=names, texts={"name": "v1_2"}),
        RuleStep("close", 4, names=("v3",), texts={"file": "v3"}),
    )
    assert subject.code(RuleTest("x", steps, "few").to_json()) == (
        "from state_machines import Files\n\n"
        "state = Files()\n"
        "v1_1, v1_2 = state.name_some(count=2)\n"
        "state.begin()\n"
        "v3 = state.open(name=v1_2)\n"
        "state.close(file=v3)\n"
        "state.few()\n"
        "state.teardown()\n"
    )


def test_arguments_are_printed_as_they_were_before_the_rule_changed_them() -> None:
    class Changes(RuleBasedStateMachine):
        @rule(items=st.lists(st.integers(0, 9), min_size=2))
        def spoil(self, items: list[int]) -> None:
            items.clear()

    subject = RuleBasedSubject(Changes, steps=1)
    subject.keep_tests = True
    (step,) = RuleTest.from_json(subject.execute(subject.space.default(), 3).test).steps
    assert len(json.loads(step.texts["items"])) >= 2


def test_a_reduced_test_has_the_steps_and_values_it_needs() -> None:
    subject = RuleBasedSubject(Files)
    result = failing(subject)
    small = subject.reduced(result.test, lambda test: subject.replay(test).fault == result.fault)
    steps = RuleTest.from_json(small).steps
    rules = [step.rule for step in steps]
    assert sorted(rules[:2]) == ["begin", "name_some"]
    assert rules[2:] == ["open"] * 6
    assert [step.texts for step in steps if step.rule == "name_some"] == [{"count": "1"}]


def test_a_step_that_only_a_complicated_argument_needed_goes_too() -> None:
    class Pairs(RuleBasedStateMachine):
        values: Bundle[int] = Bundle("values")

        @rule(target=values, value=st.integers(0, 99))
        def make(self, value: int) -> int:
            return value

        @rule(value=values)
        def use(self, value: int) -> None:
            raise ValueError("used")

        @rule(first=st.integers(0, 99), second=st.integers(0, 99))
        def compare(self, first: int, second: int) -> None:
            assert first <= second

    subject = RuleBasedSubject(Pairs)

    def reduced(*steps: RuleStep) -> tuple[RuleStep, ...]:
        test = RuleTest("x", steps).to_json()
        fault = subject.replay(test).fault
        assert fault is not None
        small = subject.reduced(test, lambda test: subject.replay(test).fault == fault)
        return RuleTest.from_json(small).steps

    # Without its own value, `use` takes the last one; then the first is not needed.
    made = RuleStep("make", 1, (7,)), RuleStep("make", 2, (8,)), RuleStep("use", 3, names=("v1",))
    assert [step.rule for step in reduced(*made)] == ["make", "use"]
    # The first number can be small when the second is.
    (step,) = reduced(RuleStep("compare", 1, (77, 50)))
    assert step.choices == (1, 0)


def test_reduction_makes_values_small() -> None:
    class Sum(RuleBasedStateMachine):
        @rule(values=st.lists(st.integers(-1000, 1000)), word=st.text())
        def add(self, values: list[int], word: str) -> None:
            assert not any(value > 77 for value in values) or "x" not in word

        @rule()
        def rest(self) -> None: ...

    subject = RuleBasedSubject(Sum, steps=200)
    steps = (RuleStep("rest", 1), RuleStep("add", 2, (True, 5, True, 900, False, "fax")))
    test = RuleTest("x", steps).to_json()
    assert subject.replay(test).fault is not None
    small = subject.reduced(test, lambda test: subject.replay(test).fault is not None)
    (step,) = RuleTest.from_json(small).steps
    assert step.texts == {"values": "[78]", "word": "'x'"}


def test_letters_and_bytes_that_do_not_matter_become_simple() -> None:
    assert smaller_choices(["axb"], lambda c: len(c) == 1 and "x" in c[0][1:]) == ("0x",)
    assert smaller_choices([b"\x07\x09"], lambda c: len(c) == 1 and len(c[0]) == 2) == (b"\0\0",)


def test_a_simple_float_stays_as_it_is() -> None:
    assert smaller_choices([0.0, 1.0, 3.5], lambda choices: len(choices) == 3) == (0.0, 0.0, 0.0)


def test_a_test_that_kills_its_process_is_kept_with_all_it_drew() -> None:
    outcome = Campaign(
        RuleBasedSubject(Deadly),
        strategy="all-on",
        budget=Budget(tests=3),
        workers=1,
        store=":memory:",
    ).run()
    (fault,) = outcome.faults
    assert fault.kind == "signal"
    assert fault.test is not None
    last = RuleTest.from_json(json.loads(fault.test)).steps[-1]
    assert last.rule == "die"
    assert last.drawn == ("3",)
    assert last.choices[-1] == 3


def test_a_journal_rebuilds_the_test() -> None:
    subject = RuleBasedSubject(Files)
    subject.keep_tests = True
    result = subject.execute(subject.space.default(), 4)
    told: list[Any] = []
    subject.journal = told.append
    subject.execute(subject.space.default(), 4)
    fault = Fault("signal", "SIGSEGV")
    rebuilt = subject.result_of_journal(saved(told), subject.space.default(), fault)
    assert RuleTest.from_json(rebuilt.test).steps == RuleTest.from_json(result.test).steps
    assert rebuilt.used == result.used


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ({"format": "other"}, "its format should be"),
        ({"format": "swarmtest rule test 1", "steps": 3}, "'steps' is not a list of steps"),
        (
            RuleTest("x", (RuleStep("pushh", 1),)).to_json(),
            "calls 'pushh', which .* does not have; did you mean 'push'",
        ),
    ],
)
def test_a_broken_test_is_refused_in_one_line(test: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        RuleBasedSubject(Stack).replay(test)
