"""Texts for regular expressions."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.token_texts import TokenTexts, simplicity

PATTERNS = [
    r"[a-z]+",
    r"[^\"\\]*x",
    r"\"(?:[^\"\\]|\\.)*\"",
    r"(?i:select)",
    r"(ab|cd)\1",
    r"\d{2,4}-\w\s?",
    r"(?!if)[a-z]{2}",
    r"a.*?b",
    r"[\u4e00-\u9fff]{3}",
    r"(?x: a  b )",
    r"^\bword\b$",
    r"\W\D\S",
    r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?",
    r"(?>a|b)++c",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_match_to_their_end(pattern: str) -> None:
    made = TokenTexts("T", pattern)
    draw = random.Random(1).random
    for _ in range(60):
        text = made.text(draw)
        found = re.match(pattern, text)
        assert found is not None
        assert found.end() == len(text) > 0


@settings(max_examples=80, deadline=None)
@given(st.from_regex(r"(\[[a-d]{1,3}\]|[a-d])[*+?]?(\([a-d]\|[a-d]{1,3}\))?[a-d]", fullmatch=True))
def test_random_patterns_get_texts_that_match(pattern: str) -> None:
    try:
        made = TokenTexts("T", pattern)
    except UserError:
        return
    draw = random.Random(2).random
    assert all(re.fullmatch(pattern, made.text(draw)) for _ in range(20))


def test_texts_are_mostly_readable() -> None:
    made = TokenTexts("STRING", r'"[^"]*"')
    draw = random.Random(3).random
    inside = "".join(made.text(draw)[1:-1] for _ in range(400))
    plain = sum(c.isascii() and c.isalnum() for c in inside) / len(inside)
    assert 0.8 < plain < 1.0


def test_numbers_at_which_programs_break_come_up() -> None:
    made = TokenTexts("INT", "[0-9]+")
    draw = random.Random(4).random
    texts = {made.text(draw) for _ in range(500)}
    assert {"0", "2147483648", "9223372036854775808"} <= texts


def test_the_smallest_text_is_short_and_plain() -> None:
    assert TokenTexts("INT", "[0-9]+").smallest == "0"
    assert TokenTexts("STRING", r'"[a-z]*"').smallest == '""'


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[", "is not a regular expression: unterminated character set"),
        (r"\p{L}", "is not a regular expression: bad escape"),
        ("a(?=b)", "cannot be generated: none of 60 random texts matched it alone"),
        ("(a)(?(1)b|c)", "cannot be generated: it uses groupref_exists"),
    ],
)
def test_what_cannot_be_generated_is_refused_in_one_line(pattern: str, reason: str) -> None:
    with pytest.raises(UserError) as caught:
        TokenTexts("T", pattern, where="g.lark:3")
    assert str(caught.value).startswith(f"g.lark:3: T /{pattern}/ ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shorter_is_simpler_then_plainer() -> None:
    assert sorted(["ab", "é", "%", "b", "A", "a", "0"], key=simplicity) == [
        *("0", "a", "b", "A", "%", "é", "ab"),
    ]
