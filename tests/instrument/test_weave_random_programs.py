"""Random programs: probes change nothing that can be observed, and tell exactly what was reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import inputs, programs
from weave_lab import Plain, Woven, exits_by_exception, reached_by, traced_lines

EXAMPLES = int(os.environ.get("SWARMTEST_WEAVE_EXAMPLES", "60"))
"""Raise it for a long run."""
QUICK = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 1000,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
KINDS = st.sampled_from(
    [
        ("line",),
        ("line", "branch"),
        ("line", "path"),
        ("line", "block", "branch", "predicate", "path", "prime", "du"),
    ]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3), KINDS)
def test_a_program_with_probes_does_what_it_did_without(
    place: Path, text: str, givens: list[list[int]], kinds: tuple[str, ...]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, str(plain.file), kinds)
    plain.file.unlink()
    for one in givens:
        assert woven.call(one)[0] == plain.outcome(one)


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3), KINDS)
def test_lines_are_those_that_the_interpreter_traces(
    place: Path, text: str, givens: list[list[int]], kinds: tuple[str, ...]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, str(plain.file), kinds)
    plain.file.unlink()
    for one in givens:
        calls = traced_lines(plain.code, lambda one=one: plain.namespace["run"](one))
        expected = {line for _, lines in calls for line in lines} & woven.known.lines
        assert reached_by(woven.call(one)[1]).lines == expected


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=2), KINDS)
def test_branches_are_those_of_coverage_py(
    place: Path, text: str, givens: list[list[int]], kinds: tuple[str, ...]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, str(plain.file), kinds if "branch" in kinds else ("branch",))
    for one in givens:
        reached = plain.call(one)[1]
        assert woven.known.branches == plain.known.branches
        # To coverage.py an exception that leaves a function looks like the way out of a decision.
        unsure = exits_by_exception(plain.code, lambda one=one: plain.namespace["run"](one))
        found = reached_by(woven.call(one)[1]).branches
        assert found - unsure == reached.branches - unsure
        assert found <= reached.branches
    plain.file.unlink()


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3))
def test_the_blocks_of_paths_are_those_that_were_passed(
    place: Path, text: str, givens: list[list[int]]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, str(plain.file), ("path",))
    plain.file.unlink()
    for one in givens:
        calls = traced_lines(plain.code, lambda one=one: plain.namespace["run"](one))
        expected = {
            (name, tuple(_blocks_at(lines, woven.spans_of(name))))
            for name, lines in calls
            if name in woven.function_names
        }
        woven.call(one)
        found = {(name, tuple(_squeezed(spans[1:]))) for name, spans in woven.block_lines()}
        assert {(n, frozenset(p)) for n, p in found} == {(n, frozenset(p)) for n, p in expected}


def _blocks_at(lines: list[int], spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The blocks in which lines lie, each once in a row."""
    yield from _squeezed([span for n in lines for span in spans if span[0] <= n <= span[1]])


def _squeezed(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    before = None
    for span in spans:
        if span != before:
            yield span
        before = span
