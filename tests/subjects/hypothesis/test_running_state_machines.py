"""A state machine runs under swarmtest as under Hypothesis, with our configurations."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import state_machines
import state_machines as machines
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from state_machines import Careful, Files, Gambler, Stack

from swarmtest import Budget, Campaign, Verdict
from swarmtest.subjects.hypothesis.declaration import is_state_machine, state_machine_of
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
from swarmtest.subjects.loading import SubjectReference

MACHINES = Path(state_machines.__file__)


def results(subject: RuleBasedSubject, names: list[str] | None = None, tests: int = 100) -> Any:
    space = subject.space
    configuration = space.configuration(names) if names else space.default()
    return [subject.execute(configuration, seed) for seed in range(tests)]


def test_a_class_and_its_test_case_are_the_same_machine() -> None:
    for found in (Stack, machines.StackTest, machines.ShortStackTest):
        assert is_state_machine(found)
        assert state_machine_of(found) is Stack
    assert not is_state_machine(RuleBasedStateMachine)
    assert not is_state_machine(Stack())


def test_rules_are_features_and_initialize_rules_are_not() -> None:
    assert RuleBasedSubject(Stack).space.feature_names == ("push", "pop", "clear")
    assert RuleBasedSubject(Files).space.feature_names == ("open", "close", "link", "read")


def test_a_rule_requires_the_only_one_that_fills_its_bundle() -> None:
    space = RuleBasedSubject(Files).space
    needs = {feature.name: feature.requires for feature in space.features}
    # `names` is filled when the test starts, so opening needs nothing.
    assert needs == {"open": (), "close": ("open",), "link": ("open",), "read": ()}


def test_a_rule_requires_whatever_its_bundles_cannot_begin_without() -> None:
    class Lists(RuleBasedStateMachine):
        lists: Bundle[list[int]] = Bundle("lists")
        sizes: Bundle[int] = Bundle("sizes")

        @rule(target=lists)
        def make(self) -> list[int]:
            return []

        @rule(target=lists, old=lists)
        def copy(self, old: list[int]) -> list[int]:
            return [*old]

        @rule(target=sizes, old=lists)
        def measure(self, old: list[int]) -> int:
            return len(old)

        @rule(size=sizes)
        def compare(self, size: int) -> None: ...

        @rule()
        def rest(self) -> None: ...

    space = RuleBasedSubject(Lists).space
    needs = {feature.name: feature.requires for feature in space.features}
    assert needs == {
        "make": (),
        "copy": ("make",),
        "measure": ("make",),
        "compare": ("make", "measure"),
        "rest": (),
    }


def test_tests_are_as_long_as_the_settings_of_the_test_case_say() -> None:
    assert {r.steps for r in results(RuleBasedSubject(Stack), ["clear"], 5)} == {50}
    assert {r.steps for r in results(RuleBasedSubject(machines.ShortStackTest), ["clear"], 5)} == {
        7
    }
    lengths = {r.steps for r in results(RuleBasedSubject(Stack, steps=(3, 5)), ["clear"], 40)}
    assert lengths == {3, 4, 5}


def test_only_included_rules_run() -> None:
    for result in results(RuleBasedSubject(Stack), ["pop", "clear"]):
        push, pop, clear = result.used
        # Nothing was pushed, so the precondition of pop never held.
        assert (push, pop, clear) == (0, 0, 50)


def test_leaving_out_what_suppresses_a_fault_finds_it() -> None:
    subject = RuleBasedSubject(Stack)
    with_all = sum(r.verdict is Verdict.FAILED for r in results(subject))
    without = sum(r.verdict is Verdict.FAILED for r in results(subject, ["push", "pop"]))
    only = results(subject, ["push"])
    assert with_all < without < 100
    assert {(r.verdict, r.steps) for r in only} == {(Verdict.FAILED, 9)}
    (signature,) = {r.fault.signature for r in only}
    assert signature.startswith("AssertionError: overflow [Stack.push: assert ")


def test_weights_change_how_often_a_rule_comes() -> None:
    subject = RuleBasedSubject(Stack, steps=200)
    configuration = subject.space.configuration({"push": 0.25, "clear": 1})
    used = Counter[str]()
    for seed in range(20):
        result = subject.execute(configuration, seed)
        used += Counter(dict(zip(subject.space.feature_names, result.used, strict=True)))
        used["skipped"] += result.skipped
    # Of 4000 picks half are pushes, of which three quarters are spent: 5 standard deviations.
    assert abs(used["push"] - 500) < 105
    assert abs(used["clear"] - 2000) < 160
    assert used["push"] + used["clear"] + used["skipped"] == 4000


def test_a_machine_with_everything_runs_as_it_should() -> None:
    # Its own assertions check bundles, consumed values and what is passed on by identity.
    verdicts = Counter(
        r.fault.signature if r.fault else "" for r in results(RuleBasedSubject(Files), tests=200)
    )
    found = {signature for signature in verdicts if signature}
    assert found
    assert all(re.match(r"invariant few after \w+: AssertionError \[Files.few: ", s) for s in found)
    assert verdicts[""] > 20


def test_a_violated_invariant_is_named() -> None:
    failed = next(r for r in results(RuleBasedSubject(Files), ["open"]) if r.fault)
    assert failed.fault.kind == "invariant"
    assert failed.fault.signature.startswith("invariant few after open: AssertionError [Files.few")


def test_a_configuration_and_a_seed_give_one_test() -> None:
    for machine in (Stack, Files, Gambler):
        subject = RuleBasedSubject(machine)
        subject.keep_tests = True
        assert results(subject, tests=30) == results(subject, tests=30)


def test_another_process_gives_the_same_tests() -> None:
    program = (
        "import pickle, sys; from swarmtest.subjects.hypothesis.subject import RuleBasedSubject\n"
        "from state_machines import Files, Gambler\n"
        "for machine in (Files, Gambler):\n"
        "    subject = RuleBasedSubject(machine); subject.keep_tests = True\n"
        "    space = subject.space\n"
        "    found = [subject.execute(space.default(), seed) for seed in range(30)]\n"
        "    sys.stdout.buffer.write(pickle.dumps([(r.test, r.fault, r.used) for r in found]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=MACHINES.parent, capture_output=True, check=True
    )
    expected = b""
    for machine in (Files, Gambler):
        subject = RuleBasedSubject(machine)
        subject.keep_tests = True
        found = [subject.execute(subject.space.default(), seed) for seed in range(30)]
        expected += pickle.dumps([(r.test, r.fault, r.used) for r in found])
    assert ran.stdout == expected


def test_the_global_random_state_stays_as_it_was() -> None:
    import random

    random.seed(5)
    before = random.getstate()
    results(RuleBasedSubject(Gambler), tests=3)
    assert random.getstate() == before


def test_a_rule_without_arguments_to_draw_is_skipped() -> None:
    for result in results(RuleBasedSubject(Careful), ["step", "impossible"], 10):
        step, _, impossible = result.used
        assert impossible == 0
        assert step + result.skipped == 50
        assert result.skipped > 10


def test_a_rule_that_gives_up_ends_the_test() -> None:
    subject = RuleBasedSubject(Careful)
    found = results(subject, ["step", "give_up"])
    # Half of the tests give up in the first step: nothing ran.
    invalid = [r for r in found if r.verdict is Verdict.INVALID]
    assert 25 < len(invalid) < 75
    assert invalid[0].missing.startswith("rule give_up gave up: failed to satisfy assume()")
    passed = [r for r in found if r.verdict is Verdict.PASSED]
    assert all(0 < r.steps < 50 and r.used[1] == 0 for r in passed)


def test_an_invariant_that_gives_up_ends_the_test_without_a_fault() -> None:
    class Doubtful(RuleBasedStateMachine):
        steps = 0

        @rule()
        def step(self) -> None:
            self.steps += 1

        @invariant()
        def assumed(self) -> None:
            assume(self.steps < 5)

    (result,) = results(RuleBasedSubject(Doubtful), tests=1)
    assert (result.verdict, result.steps) == (Verdict.PASSED, 5)


def test_a_test_that_skips_itself_is_invalid() -> None:
    class Skips(RuleBasedStateMachine):
        @rule()
        def step(self) -> None:
            pytest.skip("not on this platform")

    (result,) = results(RuleBasedSubject(Skips), tests=1)
    assert result.verdict is Verdict.INVALID
    assert result.missing == "it skipped itself: Skipped: not on this platform"


def test_included_rules_that_can_never_run_make_an_invalid_test() -> None:
    class Locked(RuleBasedStateMachine):
        @precondition(lambda self: False)
        @rule()
        def enter(self) -> None: ...

        @rule()
        def knock(self) -> None: ...

    (result,) = results(RuleBasedSubject(Locked), ["enter"], 1)
    assert result.verdict is Verdict.INVALID
    assert result.missing == "none of the included rules can run"


def test_a_test_that_could_not_start_is_invalid() -> None:
    class Unlucky(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None: ...

        @initialize(value=st.integers().filter(lambda value: False))
        def impossible(self, value: int) -> None: ...

        @rule()
        def go(self) -> None: ...

    for result in results(RuleBasedSubject(Unlucky), tests=4):
        assert result.verdict is Verdict.INVALID
        assert result.missing == "initialize rule impossible got no arguments"


def test_events_are_targets() -> None:
    found = {r.hits for r in results(RuleBasedSubject(Stack), ["push", "clear"], 20)}
    assert ("event:cleared",) in found


def test_teardown_runs_also_after_a_failure() -> None:
    ended = []

    class Fails(RuleBasedStateMachine):
        @rule()
        def fail(self) -> None:
            raise ValueError("no")

        def teardown(self) -> None:
            ended.append(self)

    (result,) = results(RuleBasedSubject(Fails), tests=1)
    assert len(ended) == 1
    assert result.fault.signature == (
        "ValueError: no [test_teardown_runs_also_after_a_failure.<locals>.Fails.fail]"
    )


def test_frames_of_hypothesis_are_not_part_of_a_signature() -> None:
    class Wrapped(RuleBasedStateMachine):
        # In this order Hypothesis calls the rule through two functions of its own.
        @rule(data=st.data())
        @precondition(lambda self: True)
        def fail(self, data: st.DataObject) -> None:
            empty: dict[int, int] = {}
            data.draw(st.integers().map(lambda n: empty[n]))

    (result,) = results(RuleBasedSubject(Wrapped), tests=1)
    place = "test_frames_of_hypothesis_are_not_part_of_a_signature.<locals>.Wrapped.fail"
    assert f"[{place}.<locals>.<lambda>: data.draw(" in result.fault.signature
    assert "site-packages/hypothesis" not in result.fault.details


def test_check_invariants_of_the_users_own_is_called() -> None:
    class Own(RuleBasedStateMachine):
        def check_invariants(self, settings: Any, output: Any, runtimes: Any) -> None:
            super().check_invariants(settings, output, runtimes)
            raise RuntimeError("mine")

        @rule()
        def step(self) -> None: ...

    (result,) = results(RuleBasedSubject(Own), tests=1)
    assert result.fault.signature.startswith("RuntimeError: mine")


logs: set[tuple[str, ...]] = set()


class Watched(RuleBasedStateMachine):
    """Tells what happened, in the words of the loop."""

    things = Bundle("things")

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    @initialize(target=things)
    def first(self) -> int:
        self.log.append("first")
        return 1

    @initialize()
    def second(self) -> None:
        self.log.append("second")

    @rule(target=things, thing=things)
    def grow(self, thing: int) -> object:
        self.log.append(f"grow {thing}")
        return multiple(thing + 1, thing + 2)

    @precondition(lambda self: len(self.bundle("things")) > 1)
    @rule(thing=consumes(things))
    def shrink(self, thing: int) -> None:
        self.log.append(f"shrink {thing}")

    @invariant(check_during_init=True)
    def always(self) -> None:
        self.log.append("always")

    @invariant()
    def later(self) -> None:
        self.log.append("later")

    def teardown(self) -> None:
        logs.add((*self.log, "teardown"))


def test_everything_is_called_in_the_order_of_hypothesis() -> None:
    """Both loops show the same set of logs: all that are possible in four steps."""
    subject = RuleBasedSubject(Watched, steps=4)
    for seed in range(250):
        subject.execute(subject.space.default(), seed)
    ours = set(logs)
    logs.clear()
    run_state_machine_as_test(
        Watched,
        settings=settings(
            max_examples=250,
            stateful_step_count=4,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    theirs = {log for log in logs if len(log) == max(map(len, logs))}
    assert ours == theirs


@settings(max_examples=25, deadline=None)
@given(
    strategy=st.sampled_from(
        [
            st.integers(),
            st.floats(),
            st.text(),
            st.binary(max_size=9),
            st.lists(st.integers(0, 5), unique=True),
            st.dictionaries(st.text(max_size=2), st.floats(allow_nan=False)),
            st.recursive(st.booleans(), lambda inner: st.lists(inner, max_size=3)),
            st.one_of(st.none(), st.datetimes(), st.fractions()),
            st.from_regex(r"[a-z]+[0-9]?"),
            st.shared(st.integers(), key="one"),
        ]
    ),
    seed=st.integers(0, 2**32),
)
def test_any_strategy_draws_the_same_from_its_choices(strategy: Any, seed: int) -> None:
    drawn: list[Any] = []

    class Draws(RuleBasedStateMachine):
        @rule(value=strategy)
        def draw(self, value: Any) -> None:
            drawn.append(value)

    subject = RuleBasedSubject(Draws, steps=5)
    subject.keep_tests = True
    result = subject.execute(subject.space.default(), seed)
    again = subject.replay(result.test)
    assert result.steps == again.steps
    assert result.steps + result.skipped == 5
    half = len(drawn) // 2
    assert repr(drawn[:half]) == repr(drawn[half:])


def test_a_campaign_takes_a_test_case_by_its_name() -> None:
    reference = SubjectReference(f"{MACHINES}::StackTest")
    outcome = Campaign(
        reference, budget=Budget(tests=200), seed=1, workers=1, store=":memory:"
    ).run()
    assert outcome.progress.tests == 200
    (fault,) = outcome.faults
    assert fault.signature.startswith("AssertionError: overflow [Stack.push: assert ")


def test_a_campaign_covers_lines_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "def half(n):\n    if n > 5:\n        return 1\n    return 2\n"
    )
    (tmp_path / "test_program.py").write_text(
        "from hypothesis import strategies as st\n"
        "from hypothesis.stateful import RuleBasedStateMachine, rule\n"
        "from program import half\n"
        "class Halves(RuleBasedStateMachine):\n"
        "    @rule(n=st.integers(0, 9))\n"
        "    def go(self, n): half(n)\n"
    )
    words = ["test_program.py::Halves", "--tests", "20", "--coverage", "line", "--store", "s.db"]
    run = subprocess.run(
        [sys.executable, "-m", "swarmtest", "run", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "coverage: line 4 of 4 (100%)" in run.stdout


@pytest.mark.parametrize("strategy", ["all-on", "coin", "layered", "covering"])
def test_every_strategy_drives_a_state_machine(strategy: str) -> None:
    outcome = Campaign(
        RuleBasedSubject(Stack),
        strategy=strategy,
        budget=Budget(tests=40),
        seed=3,
        workers=1,
        store=":memory:",
    ).run()
    assert outcome.progress.tests == 40
