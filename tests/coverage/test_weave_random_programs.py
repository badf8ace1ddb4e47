"""Random programs: probes change nothing that can be observed, and tell what was reached."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import inputs, programs
from weave_lab import (
    Paths,
    Plain,
    Woven,
    lines_of_finally,
    raising_lines,
    reached_by,
    traced_lines,
)

EXAMPLES = int(os.environ.get("SWARMTEST_WEAVE_EXAMPLES", "30"))
"""Raise it for a long run."""
QUICK = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 1000,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to shrink such programs takes minutes: add Phase.shrink for that
    report_multiple_bugs=False,
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
    woven = Woven(text, place, kinds)
    for one in givens:
        assert woven.call(one)[0] == plain.outcome(one)


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3), KINDS)
def test_lines_are_those_that_the_interpreter_traces(
    place: Path, text: str, givens: list[list[int]], kinds: tuple[str, ...]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, place, kinds)
    for one in givens:
        calls = traced_lines(text, plain.code, partial(plain.namespace["run"], one))
        expected = {line for _, lines in calls for line in lines} & woven.known.lines
        found = reached_by(woven.call(one)[1]).lines
        assert found == expected


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=2), KINDS)
def test_branches_are_those_of_coverage_py(
    place: Path, text: str, givens: list[list[int]], kinds: tuple[str, ...]
) -> None:
    plain = Plain(text, place)
    woven = Woven(text, place, kinds if "branch" in kinds else ("branch",))
    for one in givens:
        reached = plain.call(one)[1]
        # Code of a `finally` is compiled once per way into it, which coverage.py adds up in ways
        # of its own when some of them are never taken (after `return`).
        apart = lines_of_finally(text)
        assert _without(woven.known.branches, apart) == _without(plain.known.branches, apart)
        # To coverage.py an exception in a condition may look like one of the ways it can go.
        run = plain.namespace["run"]
        unsure = raising_lines(plain.code, partial(run, one))
        found = reached_by(woven.call(one)[1]).branches & plain.known.branches
        expected = reached.branches & woven.known.branches
        assert _without(found, unsure) == _without(expected, unsure)
        assert found <= expected


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3))
def test_the_blocks_of_paths_are_those_that_were_passed_if_nothing_is_raised(
    place: Path, text: str, givens: list[list[int]]
) -> None:
    plain = Plain(text, place)
    paths = Paths(text, str(plain.file))
    for one in givens:
        if not raising_lines(plain.code, partial(plain.namespace["run"], one)):
            _check_paths(text, plain, paths, one)


@QUICK
@given(programs(), st.lists(inputs, min_size=1, max_size=3))
def test_the_blocks_of_paths_are_those_that_were_passed(
    place: Path, text: str, givens: list[list[int]]
) -> None:
    plain = Plain(text, place)
    paths = Paths(text, str(plain.file))
    for one in givens:
        _check_paths(text, plain, paths, one)


def _check_paths(text: str, plain: Plain, paths: Paths, given: list[int]) -> None:
    calls = traced_lines(text, plain.code, lambda: plain.namespace["run"](given))
    expected = {
        (name, frozenset(_blocks_at(lines, paths.spans_of(name))))
        for name, lines in calls
        if name in paths.functions
    }
    assert {(name, frozenset(spans)) for name, spans in paths.call(given)} == expected


def _without(branches: frozenset[tuple[int, int]], lines: set[int]) -> set[tuple[int, int]]:
    return {branch for branch in branches if branch[0] not in lines}


def _blocks_at(lines: list[int], spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The blocks in which lines lie."""
    return [span for line in lines for span in spans if span[0] <= line <= span[1]]
