"""The outcome of focused testing as Markdown, rendered as CommonMark with tables; and as JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from focus_example import HOSTILE, any_text, counts, fault, line, pull_request, saying
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.views.markdown import block, code, focus_json, markdown_summary
from swarmtest.ui.terminal.text import one_line, printable

OURS = {"h2", "h3", "p", "code", "pre", "strong", "br", "ul", "li", "details", "summary"}
OURS |= {"table", "thead", "tbody", "tr", "th", "td"}
LONGEST_COMMENT = 65_536


class Rendered(HTMLParser):
    """Which tags there are, and what stands in code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.codes: list[str] = []
        self._open = False
        self.feed(MarkdownIt("commonmark").enable("table").render(markdown))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        if tag == "code":
            self._open = True
            self.codes.append("")

    def handle_endtag(self, tag):
        if tag == "code":
            self._open = False

    def handle_data(self, data):
        if self._open:
            self.codes[-1] += data


def test_the_headline_is_the_verdict():
    first = markdown_summary(pull_request()).splitlines()[0]
    assert first == (
        "## ❌ swarmtest focus: 1 new fault, 1 fault that may be new, 1 old fault; "
        "11 of 14 changed lines hit"
    )


def test_passing_and_warning_look_otherwise():
    hit = (line(1, **counts(3, 2, 1)),)
    good = replace(pull_request(), targets=hit, faults=())
    assert "✅ swarmtest focus: no fault; 1 of 1 changed line hit" in markdown_summary(good)
    assert markdown_summary(replace(good, targets=(*hit, line(2)))).startswith("## ⚠️")


def test_faults_never_hit_lines_and_targets_follow_in_this_order():
    text = markdown_summary(pull_request())
    parts = (
        "### Faults",
        "swarmtest replay 7#17",
        "### Never hit",
        "### Targets",
        "About this run",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_table_has_a_row_for_each_block_of_lines():
    rendered = Rendered(markdown_summary(pull_request()))
    assert rendered.tags["tr"] == 1 + 8
    assert "shop/cart.py:26-30" in rendered.codes


def test_a_long_table_is_folded():
    lines = tuple(line(n, **counts(n, 1, 1)) for n in range(2, 60, 2))
    text = markdown_summary(replace(pull_request(), targets=lines))
    assert "<details><summary>Targets: 29 changed lines</summary>" in text


@pytest.mark.parametrize("letter", ["x", "<", "\0", "`"])
def test_a_huge_outcome_fits_into_a_comment(letter):
    long = letter * 2_000
    lines = [
        line(n, f"{long}{n % 30}.py", function=long, **counts(n, 1, 0)) for n in range(0, 900, 2)
    ]
    missed = [line(n, f"{long}{n % 30}.py", **counts(0, 0, 0)) for n in range(1, 900, 2)]
    record = fault(signature=long, why_unknown=long, replay=long).record._replace(details=long * 9)
    faults = tuple(replace(fault(replay=long, why_unknown=long), record=record) for _ in range(99))
    outcome = replace(
        pull_request(), targets=(*lines, *missed), faults=faults, notes=(long,) * 99, base=long
    )
    text = markdown_summary(replace(outcome, unusable=(long,) * 99))
    assert len(text) < LONGEST_COMMENT
    assert re.search(r"… and \d+ more faults", text)


def test_an_outcome_of_nothing_says_so():
    assert "no test was run" in markdown_summary(FocusOutcome("shop.py", 1, "half-swarm"))


@given(any_text)
@example(HOSTILE)
@example("<!-- `x` --> **b** _i_ [a](b) ![c](d) www.a.de http://b.de ~~s~~ | c | @me #1")
@settings(max_examples=80, deadline=None)
def test_any_text_stands_in_code_as_it_was_and_is_nothing_else(text):
    rendered = Rendered(f"| a | b |\n|---|---|\n| {code(text)} | c |\n")
    assert rendered.tags.keys() <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert rendered.tags["td"] == 2
    assert rendered.codes[0].strip() == one_line(text).strip()


@given(any_text)
@example("```\nfree\n````")
@settings(max_examples=80, deadline=None)
def test_any_lines_stay_in_their_block(text):
    rendered = Rendered(f"{block(text)}\n\nafter\n")
    assert rendered.tags.keys() == {"pre", "code", "p"}
    assert rendered.codes[0].rstrip("\n") == printable(text).rstrip()


@given(any_text)
@example(HOSTILE)
@settings(max_examples=40, deadline=None)
def test_a_summary_has_only_tags_of_ours_whatever_tests_wrote(text):
    rendered = Rendered(markdown_summary(saying(text)))
    assert rendered.tags.keys() <= OURS
    assert rendered.tags["strong"] == 4
    assert rendered.tags["h3"] == 3


# Plain data


def test_json_tells_ratios_summary_and_verdict():
    data = json.loads(focus_json(pull_request()))
    assert data["verdict"] == "failed"
    assert data["never_hit"] == [f"line:shop/cart.py:{n}" for n in (31, 40, 41)]
    first = data["targets"][0]
    assert first["ratio"]["low"] < first["ratio"]["value"] < first["ratio"]["high"]
    assert data["summary"]["fraction"]["count"] == 6
    assert [one["status"] for one in data["faults"]] == ["new", "unknown", "old"]


def test_json_has_null_where_there_is_no_number():
    data = json.loads(focus_json(pull_request()))
    only_directed = next(one for one in data["targets"] if one["line"] == 44)
    assert only_directed["ratio"]["value"] is None
    assert only_directed["ratio"]["low"] > 1


@given(any_text)
@settings(max_examples=40, deadline=None)
def test_json_keeps_any_text(text):
    data = json.loads(focus_json(saying(text)))
    assert data["faults"][0]["signature"] == text
    assert data["targets"][0]["function"] == text
