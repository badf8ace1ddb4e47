"""Paths: the way of each call, from entry to exit, with its blocks."""

from __future__ import annotations

import contextlib
from textwrap import dedent

import pytest
from weave_lab import Paths

from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage


def paths(project, text, *given, kinds=("path",)):
    """The targets of `run(*given)`, as `name` -> `detail`."""
    project.write(pathed=text)
    with Coverage(CoverageOptions(kinds=kinds, cover=("pathed",))) as coverage:
        module = project.load("pathed")
    coverage.reset()
    with contextlib.suppress(Exception):
        module.run(*given)
    return {t.name.partition(":")[2]: t.detail for t in coverage.take().targets()}


LOOP = """
def run(n):
    total = 0
    for i in range(n):
        if i == 1:
            continue
        total += i
    return total
"""


def blocks(text, given):
    """The first lines of the blocks of each way that was taken."""
    read = Paths(dedent(text).lstrip("\n"), "program.py")
    return sorted([line for line, _ in spans] for _, spans in read.call(given))


def test_a_path_has_the_blocks_of_each_round(project):
    assert blocks(LOOP, 2) == [[2, 3, 4, 6, 3, 4, 5, 3, 7]]


def test_more_rounds_are_another_path(project):
    project.write(rounds=LOOP)
    coverage = project.watch("rounds", kinds=("path",))
    module = project.load("rounds")
    names = []
    for n in (2, 3, 4, 3):
        coverage.reset()
        module.run(n)
        names.append(str(coverage.take().targets()[0]))
    assert len(set(names)) == 3
    assert names[1] == names[3]


def test_a_call_that_an_exception_ends_is_a_path_of_its_own(project):
    text = "def run(x):\n    y = 1 // x\n    return y\n"
    assert [d.endswith("exception") for d in paths(project, text, 0).values()] == [True]
    assert [d.endswith("exit") for d in paths(project, text, 1).values()] == [True]


@pytest.mark.parametrize(
    ("text", "given", "passed"),
    [
        ("def run(x):\n    y = 1\n    while 0:\n        y = 2\n    return y\n", 0, [2, 3, 5]),
        (
            "def run(x):\n    try:\n        1 // x\n    finally:\n        y = 2\n    y = 3\n",
            0,
            [3, 5],
        ),
        (
            "def run(x):\n    y = 1 // x\n    for i in []:\n        pass\n",
            0,
            [2],
        ),
        (
            "def run(x):\n    try:\n        1 // x\n    except KeyError:\n        y = 1\n"
            "    else:\n        y = 2\n",
            0,
            [3],
        ),
        (
            "def run(x):\n    try:\n        raise ExceptionGroup('', [KeyError(), OSError()])\n"
            "    except* KeyError:\n        y = 1\n    except* OSError:\n        y = 2\n"
            "    return y\n",
            0,
            [3, 5, 7, 8],
        ),
        (
            "from contextlib import suppress\ndef run(x):\n    for i in range(2):\n"
            "        with suppress(ZeroDivisionError):\n            1 // x\n"
            "            for j in []:\n                pass\n    return 1\n",
            0,
            [3, 4, 5, 3, 4, 5, 3, 8],
        ),
    ],
    ids=[
        "while 0",
        "finally, then out",
        "before a loop",
        "not caught, so no else",
        "two clauses of a group",
        "swallowed in a loop",
    ],
)
def test_a_path_has_the_blocks_that_were_passed_and_no_others(text, given, passed):
    assert blocks(text, given) == [passed]


def test_the_same_path_has_the_same_name_in_another_run(project):
    assert paths(project, LOOP, 3).keys() == paths(project, LOOP, 3).keys()


def test_recursive_calls_each_have_their_path(project):
    text = "def run(n):\n    if n:\n        return run(n - 1)\n    return 0\n"
    assert len(paths(project, text, 3)) == 2
    assert blocks(text, 3) == [[2, 3], [2, 4]]


def test_prime_paths_and_du_paths_of_a_call(project):
    found = paths(project, LOOP, 3, kinds=("prime", "du"))
    assert "run 3-4-6-3" in found
    assert "run total 2-3-7" in paths(project, LOOP, 0, kinds=("du",))
    assert "run total 6-3-7" not in paths(project, LOOP, 0, kinds=("du",))
    assert "run total 6-3-7" in paths(project, LOOP, 1, kinds=("du",))


def test_generators_have_a_path_once_they_are_closed(project):
    text = """
    def gen():
        yield 1
        yield 2

    def run(x):
        g = gen()
        next(g)
        g.close()
    """
    ends = {name.split("#")[0]: detail for name, detail in paths(project, text, 0).items()}
    assert ends["gen"].endswith("exception")
    assert ends["run"].endswith("exit")


def test_a_function_with_too_many_prime_paths_to_walk_is_no_crash(project):
    cases = "".join(f"        case {i}:\n            n += 0\n" for i in range(12))
    text = "def run(n):\n" + f"    match n:\n{cases}" * 7
    paths(project, text, 1, kinds=("prime",))
