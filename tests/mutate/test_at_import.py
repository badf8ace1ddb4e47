"""Mutants of what a program executes while it is imported: it is imported anew for each."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from swarmtest import Campaign, open_store
from swarmtest.mutate.command import mutation_text
from swarmtest.mutate.kill_matrix import BROKEN, ENDLESS, FAILED, PASSED, KillMatrix
from swarmtest.mutate.mutation import compute_kill_matrix, mutate_campaign
from swarmtest.mutate.pytest_suites import mutate_pytest
from swarmtest.subjects.loading import SubjectReference

RATES = """
    def doubled(x):
        return x + x


    BASE = 4
    RATES = {name: doubled(BASE) + i for i, name in enumerate("ab")}


    class Price:
        digits = 2 + 1

        def __init__(self, amount=BASE - 1):
            self.amount = amount

        def shown(self):
            return round(self.amount, self.digits)


    def rate(name):
        return RATES[name]
    """
TEST_RATES = """
    from rates import Price, rate

    def test_rates():
        assert (rate("a"), rate("b")) == (8, 9)

    def test_price():
        assert Price().shown() == 3

    def test_digits():
        assert Price(1.23456).shown() == 1.235
    """
MACHINE = """
    from rates import rate
    from swarmtest import Machine, action


    class Rates(Machine):
        steps = 5

        @action
        def first(self):
            assert rate("a") == 8

        @action
        def second(self):
            assert rate("b") == 9
    """

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, forget: Callable[[], None]) -> Write:
    """Writes files of a program that nobody has imported."""

    def files(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

    return files


def suite(file: str, **options: object) -> KillMatrix:
    """Mutants of a file under all tests, each of them."""
    options = {"first_kill": False, **options}
    return mutate_pytest([f"test_{file}"], [file], **options)  # type: ignore[arg-type]


def killers(matrix: KillMatrix) -> dict[str, set[str]]:
    """What each mutant reads, with the tests that kill it."""
    return {
        mutant.after.strip(): {name.rpartition(":")[2] for name in matrix.killers(mutant)}
        for mutant in matrix.mutants
    }


def test_a_pytest_suite_kills_mutants_of_module_class_and_default(write: Write) -> None:
    write(rates=RATES, test_rates=TEST_RATES)
    matrix = suite("rates.py", operators="arithmetic,integers,defaults")
    assert not matrix.not_switchable
    found = killers(matrix)
    assert found["BASE = 5"] == {"test_rates", "test_price"}
    assert found["digits = 2 - 1"] == {"test_digits"}
    assert found["def __init__(self, amount=BASE + 1):"] == {"test_price"}
    # A function that runs at import can be switched later, but that would be too late.
    assert found["return x - x"] == {"test_rates"}
    assert matrix.reached.all()


def test_a_campaign_kills_mutants_of_what_runs_at_import(
    write: Write, forget: Callable[[], None]
) -> None:
    write(rates=RATES, machine=MACHINE)
    with open_store("store.db") as store:
        number = Campaign("machine.py", "coin", 12, store=store, workers=1).run().campaign
        forget()  # as in a new process
        matrix = mutate_campaign(store, number, ["rates.py"], operators="integers")
    found = {mutant.after.strip(): mutant for mutant in matrix.mutants}
    assert len(matrix.killers(found["BASE = 5"])) == 12
    assert "digits = 2 + 1" in {mutant.before.strip() for mutant in matrix.survivors}
    assert not matrix.not_switchable


def test_what_is_loaded_already_cannot_be_imported_anew_and_is_counted(write: Write) -> None:
    write(rates=RATES, machine=MACHINE)
    reference = SubjectReference("machine.py")
    subject = reference.load()
    tests = [subject.test_of(subject.space.default(), seed) for seed in (1, 2)]
    matrix = compute_kill_matrix(reference, tests, ["rates.py"], operators="integers,arithmetic")
    assert {mutant.function for mutant in matrix.mutants} == {"doubled"}
    assert "BASE = 5" in {mutant.after.strip() for mutant in matrix.not_switchable}
    assert f"not switchable  {len(matrix.not_switchable):>2}" in mutation_text(matrix)


def test_mutants_that_break_the_import_are_killed_and_counted_in_one_line(write: Write) -> None:
    write(
        broken="""
            SIZES = (1, 2)
            first, second = SIZES[:2]
            """,
        test_broken="""
            from broken import first, second

            def test_first():
                assert first == 1

            def test_second():
                assert second == 2
            """,
    )
    matrix = suite("broken.py", operators="slices,integers")
    by_text = dict(zip(killers(matrix), matrix.outcomes.tolist(), strict=True))
    assert by_text["first, second = SIZES[:1]"] == [BROKEN, BROKEN]
    assert by_text["SIZES = (1, 3)"] != [BROKEN, BROKEN]
    count = len(matrix.broken)
    assert f"{count} of them cannot be imported" in mutation_text(matrix)
    assert mutation_text(matrix).count("cannot be imported") == 1


def test_only_tests_that_cannot_be_imported_are_broken(write: Write) -> None:
    write(
        part="LIMITS = {1: 'a', 2: 'b'}\n",
        test_part="""
            def test_late():
                from part import LIMITS
                assert LIMITS[1] == 'a'
            """,
        test_use="""
            import part
            NAMES = [part.LIMITS[2]]

            def test_names():
                assert NAMES == ['b']
            """,
    )
    matrix = mutate_pytest(
        ["test_part.py", "test_use.py"], ["part.py"], operators="integers", first_kill=False
    )
    by_text = dict(zip(killers(matrix), matrix.outcomes.tolist(), strict=True))
    assert by_text["LIMITS = {1: 'a', 3: 'b'}"][1] == BROKEN
    assert by_text["LIMITS = {1: 'a', 3: 'b'}"][0] != BROKEN


def test_a_loop_that_a_mutant_makes_endless_at_import_is_cut_off(write: Write) -> None:
    write(
        ticks="""
            count = 0
            while count < 5:
                count += 1
            """,
        test_ticks="""
            from ticks import count

            def test_count():
                assert count == 5
            """,
    )
    matrix = suite("ticks.py", operators="augmented,relational")
    by_text = dict(zip(killers(matrix), matrix.outcomes.tolist(), strict=True))
    assert by_text["count -= 1"] == [ENDLESS]
    assert by_text["while count >= 5:"] == [FAILED]
    assert by_text["while count != 5:"] == [PASSED]


def test_a_mutant_that_ends_the_process_at_import_is_killed(write: Write) -> None:
    write(
        leaving="""
            import os
            COUNT = 2
            if COUNT > 2:
                os._exit(1)
            """,
        test_leaving="""
            from leaving import COUNT

            def test_one():
                assert COUNT

            def test_two():
                assert COUNT
            """,
    )
    matrix = suite("leaving.py", operators="relational")
    found = killers(matrix)
    assert found["if COUNT >= 2:"] == {"test_one", "test_two"}
    assert found["if COUNT < 2:"] == set()


def test_tests_that_import_the_program_again_see_its_mutants(write: Write) -> None:
    write(
        again="""
            def answer():
                return 6 * 7
            """,
        test_again="""
            import importlib
            import again

            def test_reloaded():
                importlib.reload(again)
                assert again.answer() == 42

            def test_plain():
                assert again.answer() > 0
            """,
    )
    matrix = suite("again.py", operators="arithmetic")
    assert killers(matrix)["return 6 + 7"] == {"test_reloaded"}
    assert killers(matrix)["return 6 - 7"] == {"test_reloaded", "test_plain"}


def test_each_mutant_up_to_its_first_kill(write: Write) -> None:
    write(rates=RATES, test_rates=TEST_RATES)
    every = suite("rates.py", operators="arithmetic")
    first = suite("rates.py", operators="arithmetic", first_kill=True)
    assert np.array_equal(first.is_killed, every.is_killed)
    assert (first.killed.sum(1) <= 1).all()


def test_the_program_of_this_process_stays_as_it_was(write: Write) -> None:
    write(rates=RATES, test_rates=TEST_RATES)
    before = set(sys.modules)
    hooks = list(sys.meta_path)
    suite("rates.py", operators="arithmetic")
    assert "rates" not in set(sys.modules) - before
    assert sys.meta_path == hooks
