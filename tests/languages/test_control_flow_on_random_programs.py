"""Dominators against what random programs really do: traced line by line, and seen by probes."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from line_tables import compile_program
from random_programs import inputs, programs
from weave_lab import Woven, reached_by, traced_lines

from swarmtest.languages.flow_graph import Dominance
from swarmtest.languages.python.control_flow import dominators_by_function, flows_of

EXAMPLES = int(os.environ.get("SWARMTEST_FLOW_EXAMPLES", "60"))
"""Raise it for a long run."""
QUICK = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 1000,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def _dominators(text: str) -> dict[str, dict[int, set[int]]]:
    """For each function and line of it what dominates the line."""
    found = {}
    for graph in flows_of(text).graphs:
        dominance = Dominance(graph.lines, graph.successors)
        found[f"{graph.function}:{graph.defined_at}"] = {
            line: set(dominance.chain(line)) for line in dominance.lines
        }
    return found


def _calls(text: str, givens: list[list[int]]) -> Iterator[tuple[str, list[int]]]:
    """Each call's function and the lines that it executed, in order."""
    code = compile_program(text, "<random program>")
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(code, namespace)
    for one in givens:
        yield from traced_lines(text, code, partial(namespace["run"], one))


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=4))
def test_what_dominates_a_line_was_executed_before_it_in_the_same_call(
    text: str, givens: list[list[int]]
) -> None:
    before = _dominators(text)
    for function, lines in _calls(text, givens):
        seen: set[int] = set()
        for line in lines:
            assert seen >= before[function][line]
            seen.add(line)


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=4))
def test_every_test_that_hits_a_line_hits_what_dominates_it(
    place: Path, text: str, givens: list[list[int]]
) -> None:
    woven = Woven(text, place, ("line",))
    for one in givens:
        hit = reached_by(woven.call(one)[1]).lines
        for line in hit:
            assert hit.issuperset(dominators_by_function(text, line)[0])


def test_dominators_leave_little_out_that_always_comes_before() -> None:
    """What comes before a line in every one of many calls dominates it, but for few: no graph that
    has ways which no program takes would say so."""
    always: dict[tuple[str, int], set[int]] = {}
    claimed: dict[tuple[str, int], set[int]] = defaultdict(set)

    @settings(QUICK, max_examples=15)
    @given(programs(), st.integers(0, 2**32))
    def look(text: str, seed: int) -> None:
        rng = random.Random(seed)
        givens = [[rng.randrange(12) for _ in range(40)] for _ in range(20)]
        before = _dominators(text)
        for function, lines in _calls(text, givens):
            seen: set[int] = set()
            for line in lines if function.startswith("work:") else ():
                key = (text, line)
                always[key] = always.get(key, seen) & seen - {line}
                claimed[key] = before[function][line]
                seen.add(line)

    look()
    found = sum(len(lines) for lines in claimed.values())
    possible = sum(len(lines) for lines in always.values())
    assert found > 0.8 * possible
