"""Predicates: what the conditions of a function were at each statement."""

from __future__ import annotations

TEXT = """
def run(x, y):
    if x > 1 and not y:
        x = 0
    assert x < 9, "large"
    z = 1 if y else 2
    return z
"""


def vectors(project, text, *given):
    project.write(conditions=text)
    coverage = project.watch("conditions", kinds=("predicate",))
    module = project.load("conditions")
    coverage.begin()
    coverage.reset()
    module.run(*given)
    return [t.name.partition(":")[2] for t in coverage.take().targets()], coverage


def test_a_statement_and_the_values_that_conditions_had_there(project):
    names, _ = vectors(project, TEXT, 2, 0)
    assert sorted(names) == ["2 ----", "3 TF--", "4 TF--", "5 TFT-", "6 TFTF"]


def test_a_condition_that_was_not_evaluated_is_unknown(project):
    names, _ = vectors(project, TEXT, 0, 1)
    assert sorted(names) == ["2 ----", "4 F---", "5 F-T-", "6 F-TT"]


def test_the_conditions_are_told_in_words(project):
    _, coverage = vectors(project, TEXT, 2, 0)
    assert "(x > 1), not (y)" in {t.detail for t in coverage.take().targets()}


def test_values_in_a_loop_are_those_of_the_last_time(project):
    text = """
    def run(n):
        while n:
            if n == 1:
                n = 5
                break
            n -= 1
    """
    names, _ = vectors(project, text, 2)
    assert sorted(names) == ["2 --", "3 T-", "3 TF", "4 TT", "5 TT", "6 TF"]


def test_functions_without_conditions_have_plain_statements(project):
    names, _ = vectors(project, "def run():\n    x = 1\n    return x\n")
    assert sorted(names) == ["2", "3"]


def test_comprehensions_lambdas_and_nested_functions_keep_their_own_conditions(project):
    text = """
    def run(x):
        a = [i for i in range(3) if i > x]
        b = lambda y: 1 if y else 2
        def inner(z):
            if z:
                return 1
            return 2
        return inner(x), b(x), a
    """
    names, _ = vectors(project, text, 1)
    assert sorted(names) == ["2", "3", "4", "5 -", "6 T", "8"]


def test_an_annotation_with_a_condition_in_it(project):
    text = """
    from __future__ import annotations
    def run(x):
        y: int if x else str = 3
        return y
    """
    names, _ = vectors(project, text, 1)
    assert len(names) == 2
