"""Which tests kill which mutants: of a machine, of a campaign, of a pytest suite."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swarmtest import Campaign, open_store
from swarmtest.core.errors import UserError
from swarmtest.mutate.baseline import KillLimits
from swarmtest.mutate.kill_matrix import CRASHED, ENDLESS, FAILED, NOT_RUN, PASSED, SLOW
from swarmtest.mutate.kills import Runner
from swarmtest.mutate.mutation import compute_kill_matrix, mutate_campaign
from swarmtest.mutate.pytest_suites import mutate_pytest
from swarmtest.subjects import MachineSubject

STACK = """
    LIMIT = 3


    class Stack:
        def __init__(self, limit=3):
            self._items = []
            self._limit = limit

        def push(self, item):
            if len(self._items) >= self._limit:
                raise OverflowError
            self._items.append(item)

        def drain(self):
            count = 0
            while self._items:
                self._items.pop()
                count += 1
            return count

        def unused(self):
            return 1
    """

MACHINE = """
    from {module} import Stack
    from swarmtest import Machine, action


    class StackMachine(Machine):
        steps = 20

        def start(self):
            self.stack, self.size = Stack(), 0

        @action
        def push(self):
            try:
                self.stack.push(1)
                self.size += 1
                assert self.size <= 3
            except OverflowError:
                assert self.size == 3

        @action
        def drain(self):
            assert self.stack.drain() == self.size
            self.size = 0
    """


class Calls:
    """Plain functions as tests; an exception that is not caught is how they end."""

    def __init__(self, **tests: Callable[[], Any]) -> None:
        self.names = list(tests)
        self._tests = list(tests.values())

    def run(self, test: int, following: int | None) -> str:
        try:
            return repr(self._tests[test]())
        except Exception as error:
            return type(error).__name__

    def finish(self) -> None:
        pass

    def why_not(self, ended: str) -> str:
        return ""


def outcomes(made: Any, tests: Calls, mutants: list[Any], **options: Any) -> Any:
    runner = Runner(tests, [made.live], KillLimits(seconds=60.0))
    runner.baseline.run()
    return runner.matrix(mutants, **options)


def test_a_test_kills_a_mutant_if_it_ends_otherwise(program: Any) -> None:
    made = program("def f(x):\n    return 6 // x\n\n\ndef g(x):\n    return x\n")
    tests = Calls(two=lambda: made.module.f(2), zero=lambda: made.module.f(0), g=made.module.g)
    mutants = [made.mutant("return 6 / x"), made.mutant("return 6 * x")]
    matrix = outcomes(made, tests, mutants)
    # Dividing by zero is how a test may end, too; what does not execute a mutant is not run.
    assert matrix.outcomes.tolist() == [[FAILED, PASSED, NOT_RUN], [FAILED, FAILED, NOT_RUN]]


def test_a_mutant_that_ends_its_process_or_never_ends_is_killed(program: Any) -> None:
    made = program(
        """
        import os, time

        def f(x):
            if x > 5:
                os._exit(3)
            while x > 0:
                x -= 1
            if x < 0:
                time.sleep(1000)
            return x
        """
    )
    tests = Calls(one=lambda: made.module.f(1), two=lambda: made.module.f(2))
    crash, endless, slow = (
        made.mutant("if x <= 5:"),
        made.mutant("x += 1"),
        made.mutant("if x >= 0:"),
    )
    runner = Runner(tests, [made.live], _Impatient(seconds=60.0))
    runner.baseline.run()
    matrix = runner.matrix([crash, endless, slow])
    assert matrix.outcomes.tolist() == [[CRASHED] * 2, [ENDLESS] * 2, [SLOW] * 2]
    assert [one.id for one in matrix.endless] == [endless.id, slow.id]


class _Impatient(KillLimits):
    def with_mutant(self, seconds: float) -> float:
        return 1.5  # what counts steps is done long before that


def test_up_to_the_first_kill_the_quickest_test_comes_first(program: Any) -> None:
    made = program("def f(x):\n    for _ in range(x):\n        pass\n    return x + 1\n")
    tests = Calls(slow=lambda: made.module.f(1_000_000), quick=lambda: made.module.f(1))
    matrix = outcomes(made, tests, [made.mutant("return x - 1")], first_kill=True)
    assert matrix.outcomes.tolist() == [[NOT_RUN, FAILED]]
    assert not matrix.complete


def test_tests_that_do_not_end_the_same_way_twice_are_left_out(program: Any) -> None:
    made = program("def f():\n    return 1 + 1\n")
    tests = Calls(steady=made.module.f, flaky=lambda: made.module.f() + os.getpid())
    matrix = outcomes(made, tests, [made.mutant("return 1 - 1")])
    assert matrix.tests == ("steady",)
    assert dict(matrix.left_out) == {"does not end the same way twice": ("flaky",)}


def test_a_test_that_dies_without_a_mutant_is_left_out(program: Any) -> None:
    made = program("def f():\n    return 1 + 1\n")
    tests = Calls(dies=lambda: os._exit(1), steady=made.module.f)
    matrix = outcomes(made, tests, [made.mutant("return 1 - 1")])
    assert matrix.tests == ("steady",)
    assert dict(matrix.left_out) == {"ended its process without a mutant": ("dies",)}


def test_a_loop_in_one_file_that_a_mutant_of_another_makes_endless_is_ended(program: Any) -> None:
    down = program("def down(x):\n    return x - 1\n")
    loop = program(
        f"from {down.path.stem} import down\n\n\ndef f(x):\n    while x:\n        x = down(x)\n"
    )
    tests = Calls(one=lambda: loop.module.f(3))
    runner = Runner(tests, [down.live, loop.live], KillLimits())
    runner.baseline.run()
    matrix = runner.matrix([down.mutant("return x + 1")])
    assert matrix.outcomes.tolist() == [[ENDLESS]]


@pytest.mark.parametrize("mutants_per_fork", [1, 16])
def test_what_a_mutant_leaves_behind_kills_no_other(program: Any, mutants_per_fork: int) -> None:
    made = program(
        """
        kept = []

        def f(x):
            if x > 100:
                kept.append(x)
            return len(kept)

        def g(x):
            return f(x) * 1
        """
    )
    tests = Calls(f=lambda: made.module.f(1), g=lambda: made.module.g(1))
    mutants = [made.mutant("if x < 100:"), made.mutant("return f(x) // 1")]
    limits = KillLimits(mutants_per_fork=mutants_per_fork)
    runner = Runner(tests, [made.live], limits, workers=1)
    runner.baseline.run()
    matrix = runner.matrix(mutants)
    assert matrix.outcomes.tolist() == [[FAILED, FAILED], [NOT_RUN, PASSED]]


def test_what_an_endless_mutant_leaves_behind_kills_no_other(program: Any) -> None:
    made = program(
        """
        kept = []

        def f(x):
            while x > 0:
                x -= 1
                if x == 5:
                    kept.append(x)
            return len(kept)

        def g(x):
            return f(x) * 1
        """
    )
    tests = Calls(f=lambda: made.module.f(2), g=lambda: made.module.g(2))
    mutants = [made.mutant("x += 1"), made.mutant("return f(x) // 1")]
    runner = Runner(tests, [made.live], KillLimits(mutants_per_fork=2), workers=1)
    runner.baseline.run()
    matrix = runner.matrix(mutants)
    assert matrix.outcomes.tolist() == [[ENDLESS, ENDLESS], [NOT_RUN, PASSED]]


def test_a_process_for_each_mutant_keeps_what_nobody_noticed_from_the_next(program: Any) -> None:
    made = program(
        """
        kept = []

        def f(x):
            if x > 100:
                kept.append(x)
            return x

        def g():
            return len(kept) * 1
        """
    )
    tests = Calls(f=lambda: made.module.f(1), g=lambda: made.module.g())
    mutants = [made.mutant("if x < 100:"), made.mutant("return len(kept) // 1")]
    runner = Runner(tests, [made.live], KillLimits(mutants_per_fork=1), workers=1)
    runner.baseline.run()
    assert runner.matrix(mutants).outcomes.tolist() == [[PASSED, NOT_RUN], [NOT_RUN, PASSED]]
    # In one process, the second is taken for what the first has done.
    runner = Runner(tests, [made.live], KillLimits(mutants_per_fork=2), workers=1)
    runner.baseline.run()
    assert runner.matrix(mutants).outcomes.tolist() == [[PASSED, NOT_RUN], [NOT_RUN, FAILED]]


def stack_machine(program: Any) -> tuple[Any, Any]:
    made = program(STACK)
    machine = program(MACHINE.format(module=made.path.stem))
    return made, machine


def test_the_tests_of_a_machine_kill_mutants_of_its_program(program: Any) -> None:
    made, machine = stack_machine(program)
    subject = MachineSubject(machine.module.StackMachine)
    tests = [subject.test_of(subject.space.default(), seed) for seed in range(5)]
    matrix = compute_kill_matrix(
        subject, tests, [str(made.path)], operators="relational,integers,delete"
    )
    assert {one.after.strip() for one in matrix.survivors} == {
        "if len(self._items) == self._limit:"
    }
    assert {one.function for one in matrix.not_reached} == {"Stack.unused"}
    assert {one.before for one in matrix.not_switchable} == {"LIMIT = 3"}
    assert len(matrix.targets()) == len(matrix.mutants)
    assert np.array_equal(matrix.killed, matrix.killed & matrix.reached)


def test_what_is_loaded_beside_the_machine_is_mutated_but_not_the_machine(program: Any) -> None:
    made, machine = stack_machine(program)
    subject = MachineSubject(machine.module.StackMachine)
    tests = [subject.test_of(subject.space.default(), 1)]
    matrix = compute_kill_matrix(subject, tests, operators="relational", first_kill=True)
    assert {one.path for one in matrix.mutants} == {made.source.path}


def test_a_campaign_has_a_kill_matrix_of_its_tests(program: Any, tmp_path: Path) -> None:
    made, machine = stack_machine(program)
    with open_store(str(tmp_path / "store.db")) as store:
        outcome = Campaign(
            str(machine.path), "coin", 12, store=store, workers=1, coverage="line"
        ).run()
        shown: list[tuple[int, int]] = []
        matrix = mutate_campaign(
            store,
            outcome.campaign,
            operators="relational",
            sample=3,
            tests=6,
            on_progress=lambda done, count: shown.append((done, count)),
        )
    assert len(matrix.mutants) == 3
    assert matrix.population == 5
    assert {one.path for one in matrix.mutants} == {made.source.path}
    assert len(matrix.tests) == 6
    assert all(name.startswith(f"{outcome.campaign}#") for name in matrix.tests)
    assert shown[-1] == (3, 3)


SUITE = """
    import pytest
    from {module} import Stack

    made = []

    @pytest.fixture
    def stack():
        yield Stack()

    @pytest.mark.parametrize("count", [0, 3])
    def test_drain(stack, count):
        for i in range(count):
            stack.push(i)
        assert stack.drain() == count

    def test_full(stack, capsys):
        print("hello")
        for i in range(3):
            stack.push(i)
        with pytest.raises(OverflowError):
            stack.push(9)

    @pytest.mark.skip
    def test_skipped():
        pass

    @pytest.mark.xfail
    def test_expected_to_fail():
        assert False

    def test_fails():
        assert False
    """


def test_a_pytest_suite_has_a_kill_matrix(program: Any, tmp_path: Path) -> None:
    made, suite = program(STACK), tmp_path / "test_stack.py"
    suite.write_text(textwrap.dedent(SUITE.format(module=made.path.stem)))
    matrix = mutate_pytest([str(suite)], [str(made.path)], operators="relational,negate")
    names = [name.partition("::")[2] for name in matrix.tests]
    assert names == ["test_drain[0]", "test_drain[3]", "test_full"]
    assert {why: len(names) for why, names in matrix.left_out.items()} == {
        "skipped without a mutant": 2,
        "failed without a mutant": 1,
    }
    assert {one.after.strip() for one in matrix.survivors} == {
        "if len(self._items) == self._limit:"
    }


def test_a_suite_finds_a_program_in_the_directory_at_hand(program: Any, tmp_path: Path) -> None:
    made, suite = program(STACK), tmp_path / "tests" / "test_stack.py"
    sys.path.remove(str(tmp_path))
    suite.parent.mkdir()
    suite.write_text(textwrap.dedent(SUITE.format(module=made.path.stem)))
    assert mutate_pytest(["tests"], [str(made.path)], operators="negate").is_killed.any()


def test_a_suite_that_asks_for_many_processes_is_run_in_forks(program: Any, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    made, suite = program(STACK), tmp_path / "test_stack.py"
    suite.write_text(textwrap.dedent(SUITE.format(module=made.path.stem)))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -n 2\n")
    matrix = mutate_pytest([str(suite)], [str(made.path)], operators="negate")
    assert matrix.is_killed.any()


def test_a_suite_that_cannot_be_collected_is_one_clear_line(program: Any, tmp_path: Path) -> None:
    made = program(STACK)
    (tmp_path / "test_broken.py").write_text("import no_such_module_anywhere\n")
    with pytest.raises(
        UserError, match=r"failed before it ran a test: .*test_broken\.py: Mod.*'no_such"
    ):
        mutate_pytest([str(tmp_path / "test_broken.py")], [str(made.path)])
    with pytest.raises(UserError, match=r"unrecognized arguments: --no-such.*-oaddopts="):
        mutate_pytest([str(tmp_path)], [str(made.path)], options=["--no-such"])
    (tmp_path / "other.py").write_text("def f():\n    return 1\n")
    (tmp_path / "test_other.py").write_text("def test_nothing():\n    pass\n")
    # Nothing imports it.
    with pytest.raises(UserError, match="is not loaded by what is tested"):
        mutate_pytest([str(tmp_path / "test_other.py")], [str(tmp_path / "other.py")])


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (["no.py"], {}, "no.py: there is no such file to mutate"),
        (
            [__file__],
            {"lines": {}},
            "no mutant of test_kills.py is left: choose other lines or operators",
        ),
        ([__file__], {"sample": 0}, "at least one mutant"),
    ],
)
def test_what_cannot_be_mutated_is_one_clear_line(
    program: Any, files: list[str], options: dict[str, Any], message: str
) -> None:
    _, machine = stack_machine(program)
    subject = MachineSubject(machine.module.StackMachine)
    tests = [subject.test_of(subject.space.default(), 1)]
    with pytest.raises(UserError, match=message):
        compute_kill_matrix(subject, tests, files, **options)
