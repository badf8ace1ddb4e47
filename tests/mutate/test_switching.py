"""Mutants in a running program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.switching import NotSwitchable, StepBudgetExceeded

Make = Callable[[str], Any]


def switched(program, text, after, call):
    """What a call answers before, during and after a mutant."""
    made = program(text)
    mutant = made.mutant(after)
    answers = [call(made.module)]
    made.live.switch_on(mutant)
    answers.append(call(made.module))
    made.live.restore()
    return [*answers, call(made.module)]


def test_a_function_is_switched_and_restored(program: Make) -> None:
    text = "def f(x):\n    return x - 2\n"
    assert switched(program, text, "return x * 2", lambda m: m.f(5)) == [3, 10, 3]


@pytest.mark.parametrize(
    "decorator",
    ["staticmethod", "classmethod", "property", "functools.cached_property", "functools.cache"],
)
def test_a_method_is_found_behind_what_decorates_it(program: Make, decorator: str) -> None:
    text = f"""
        import functools

        class A:
            @{decorator}
            def f(*a):
                return 7 - 2
        """

    def call(module):
        if decorator == "functools.cache":
            module.A.f.cache_clear()
        found = module.A().f
        return found() if callable(found) else found

    assert switched(program, text, "return 7 * 2", call) == [5, 14, 5]


def test_a_closure_that_exists_already_is_switched(program: Make) -> None:
    text = """
        def twice(f):
            extra = 1
            def wrapper(x):
                return f(f(x)) + extra
            return wrapper

        @twice
        def g(x):
            return x + 10
        """
    assert switched(program, text, "return f(f(x)) - extra", lambda m: m.g(0)) == [21, 19, 21]


def test_a_closure_that_loses_a_variable_is_switched(program: Make) -> None:
    text = """
        def make():
            extra = [1]
            def inner(x):
                x += extra[0]
                return x
            return inner

        kept = make()
        """
    made = program(text)
    (mutant,) = [
        one for one in mutants_of(made.source, "delete") if one.before.strip() == "x += extra[0]"
    ]
    made.live.switch_on(mutant)
    assert (made.module.kept(5), made.module.make()(5)) == (5, 5)
    made.live.restore()
    assert (made.module.kept(5), made.module.make()(5)) == (6, 6)


def test_super_and_private_names_mean_what_they_meant(program: Make) -> None:
    text = """
        class A:
            def f(self):
                return 1

        class B(A):
            def __init__(self):
                self.__secret = 5

            def f(self):
                return super().f() + self.__secret
        """
    after = "return super().f() - self.__secret"
    assert switched(program, text, after, lambda m: m.B().f()) == [6, -4, 6]


def test_generators_and_coroutines_are_switched(program: Make) -> None:
    text = """
        def numbers():
            yield 3 - 1

        async def answer():
            return 3 - 2
        """
    assert switched(program, text, "yield 3 * 1", lambda m: list(m.numbers())) == [[2], [3], [2]]
    ask = lambda m: asyncio.run(m.answer())  # noqa: E731
    assert switched(program, text, "return 3 * 2", ask) == [1, 6, 1]


def test_a_lambda_of_a_module_is_switched(program: Make) -> None:
    text = "f = lambda x: x - 2\n"
    assert switched(program, text, "f = lambda x: x * 2", lambda m: m.f(5)) == [3, 10, 3]


def test_lambdas_that_cannot_be_told_apart_are_refused(program: Make) -> None:
    made = program("f = (lambda x: x - 2, lambda x: x - 3)\n")
    mutant = made.mutant("f = (lambda x: x * 2, lambda x: x - 3)")
    assert not made.live.switchable(mutant)
    with pytest.raises(NotSwitchable, match="told apart"):
        made.live.switch_on(mutant)


@pytest.mark.parametrize(
    ("after", "during"),
    [("def f(x=4, *, y=True):", (4, True)), ("def f(x=3, *, y=False):", (3, False))],
)
def test_default_arguments_are_switched(program: Make, after: str, during: object) -> None:
    text = "def f(x=3, *, y=True):\n    return x, y\n"
    before = (3, True)
    assert switched(program, text, after, lambda m: m.f()) == [before, during, before]


def test_what_was_executed_by_the_import_is_refused(program: Make) -> None:
    made = program("LIMIT = 3\n\ndef f():\n    return LIMIT\n")
    mutant = made.mutant("LIMIT = 4")
    assert not made.live.switchable(mutant)
    with pytest.raises(NotSwitchable, match="imported"):
        made.live.switch_on(mutant)


def test_restoring_gives_back_the_very_same_code(program: Make) -> None:
    made = program("def f(x, y=1):\n    for _ in range(x):\n        y += 1\n    return y\n")
    before = made.module.f.__code__, made.module.f.__defaults__
    made.live.tick()
    for mutant in mutants_of(made.source):
        made.live.switch_on(mutant)
    made.live.restore()
    assert made.module.f.__code__ is before[0]
    assert made.module.f.__defaults__ is before[1]


def test_the_program_keeps_its_names(program: Make) -> None:
    made = program("def f(x):\n    while x:\n        x -= 1\n    return locals()\n")
    names = set(vars(made.module))
    made.live.count()
    assert made.module.f(2) == {"x": 0}
    assert set(vars(made.module)) == names


def test_a_mutant_works_in_code_that_coverage_was_woven_into(program: Make, tmp_path) -> None:
    with Coverage("line,branch", cover=[str(tmp_path)]) as coverage:
        made = program("def f(x):\n    if x > 2:\n        return x - 2\n    return 0\n")
        woven = made.module.f.__code__
        made.live.switch_on(made.mutant("return x * 2"))
        assert made.module.f(5) == 10
        made.live.restore()
        assert made.module.f.__code__ is woven
        coverage.reset()
        assert made.module.f(5) == 3
        assert {target.line for target in coverage.take().targets() if target.kind == "line"} == {
            2,
            3,
        }


def test_statements_are_counted(program: Make) -> None:
    made = program("def f(x):\n    for i in range(x):\n        i += 1\n    return 0\n")
    counts = made.live.count()
    made.module.f(5)
    assert counts.of_statements == [1, 5, 1]
    made.live.restore()
    made.module.f(5)
    assert counts.of_statements == [1, 5, 1]


def test_code_that_counts_can_be_hashed_as_code_is(program: Make) -> None:
    made = program("def f(x):\n    return 1 // x\n")
    made.live.count()
    assert made.module.f.__code__ in {made.module.f.__code__: 1}


def test_an_endless_loop_is_ended(program: Make) -> None:
    made = program("def f(x):\n    while x > 0:\n        x -= 1\n    return x\n")
    made.live.switch_on(made.mutant("x += 1"))
    made.live.steps.allow(original=5)
    with pytest.raises(StepBudgetExceeded):
        made.module.f(4)
    assert made.live.steps.exceeded


def test_a_loop_that_another_function_makes_endless_is_ended(program: Make) -> None:
    made = program(
        """
        def down(x):
            return x - 1

        def f(x):
            while x > 0:
                x = down(x)
            return x
        """
    )
    made.live.tick()
    made.live.switch_on(made.mutant("return x + 1"))
    made.live.steps.allow(original=5)
    with pytest.raises(StepBudgetExceeded):
        made.module.f(4)


def test_code_that_swallows_everything_is_ended_as_well(program: Make) -> None:
    made = program(
        """
        def f(x):
            while x > 0:
                try:
                    for _ in range(3):
                        x -= 1
                except BaseException:
                    x = 9
            return x
        """
    )
    made.live.switch_on(made.mutant("x += 1"))
    made.live.steps.allow(original=5)
    with pytest.raises(StepBudgetExceeded):
        made.module.f(4)
