"""The outcome of focused testing as GitHub workflow commands."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from focus_example import HOSTILE, any_text, counts, fault, line, pull_request, saying
from hypothesis import example, given, settings

from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.views.annotations import github_annotations
from swarmtest.focus.views.rows import repository_path
from swarmtest.ui.terminal.text import one_line

TOP = Path("/repo")


def read(outcome: FocusOutcome, here: Path | None = None) -> list[tuple[str, dict[str, str], str]]:
    """What a runner understands: level, properties and message of each command."""
    found = []
    for text in github_annotations(outcome, TOP, here).splitlines():
        level, told, message = re.fullmatch("::([a-z]+) (.*?)::(.*)", text).groups()
        properties = dict(one.split("=", 1) for one in told.split(","))
        values = {name: _unescaped(value) for name, value in properties.items()}
        found.append((level, values, _unescaped(message)))
    return found


def _unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_a_new_fault_is_an_error_at_its_line():
    level, place, message = read(pull_request())[0]
    assert level == "error"
    assert place == {"file": "shop/cart.py", "line": "31", "title": "new fault 3fa94c01"}
    assert message.splitlines()[0] == "KeyError: '…' [Cart.total]"
    assert message.splitlines()[-1] == "replay: swarmtest replay 7#17"


def test_lines_never_hit_are_a_warning_for_each_range():
    warnings = [(place, told) for level, place, told in read(pull_request()) if level == "warning"]
    assert [(p["line"], p.get("endLine")) for p, _ in warnings] == [("31", None), ("40", "41")]
    assert warnings[0][1] == "never hit in 2,200 tests"


def test_the_verdict_is_a_notice():
    level, _, message = read(pull_request())[-1]
    assert level == "notice"
    assert message.endswith("11 of 14 changed lines hit (1,600 tests)")


def test_an_old_fault_is_no_annotation():
    assert "77aa0210" not in github_annotations(pull_request(), TOP)


def test_a_fault_without_a_place_is_an_error_of_the_whole_run():
    _, place, _ = read(replace(pull_request(), faults=(fault(location=None),)))[0]
    assert place == {"title": "new fault 3fa94c01"}


def test_at_most_ten_of_a_level_and_the_last_counts_the_rest():
    faults = tuple(fault(f"id{n:02}") for n in range(13))
    lines = tuple(line(n, **counts(0, 0, 0)) for n in range(2, 50, 2))
    found = read(replace(pull_request(), faults=faults, targets=lines))
    for level, rest in (("error", "and 3 more faults"), ("warning", "and 14 more places")):
        messages = [message for one, _, message in found if one == level]
        assert len(messages) == 10
        assert rest in messages[-1]
        assert not any("more" in message for message in messages[:-1])


def test_paths_are_told_from_the_workspace():
    _, place, _ = read(pull_request(), here=TOP / "backend")[0]
    assert place["file"] == "backend/shop/cart.py"


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_through_a_runner_as_it_was(text):
    found = read(saying(text))
    assert [level for level, _, _ in found][:3] == ["error"] * 3
    assert found[-1][0] == "notice"
    _, place, message = found[0]
    if one_line(text):
        assert message.split("\n")[0] == one_line(text)
    assert place["file"] == one_line(repository_path(text, TOP))
