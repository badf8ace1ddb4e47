"""Colours of code: nothing is lost, nothing is executed, and line numbers stay right."""

from __future__ import annotations

import html
import re

import pytest

from swarmtest.ui.report.highlighting import (
    highlighted_code,
    highlighted_lines,
    highlighted_traceback,
)
from swarmtest.ui.terminal.text import printable

TEXTS = (
    "def f(x):\n    '''two\n    lines'''\n    return x + 1  # <b>\n",
    "\n\n  odd start\n\n",
    "unfinished = '</script><script>alert(1)</script>",
    "a\rb\r\nc\x0cd\n",
    "",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("path", ["x.py", "x.c", "x.unknown", "Makefile"])
def test_every_line_keeps_its_number_and_its_words(text: str, path: str) -> None:
    lines = highlighted_lines(text, path)
    assert len(lines) == text.count("\n") + 1
    plain = [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]
    assert plain == [printable(line) for line in text.split("\n")]
    assert "<script" not in "".join(lines)


def test_a_comment_over_several_lines_is_closed_on_each() -> None:
    lines = highlighted_lines("/* a\n b */ x;", "x.c")
    assert all(line.count("<i>") == line.count("</i>") == 1 for line in lines)


def test_only_programs_are_coloured() -> None:
    assert "<i class=k>" in highlighted_code("from a import b\nb()")
    assert str(highlighted_code("<not> python if")) == "&lt;not&gt; python if"
    assert str(highlighted_code("hello")) == "hello"
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 1'
    assert "<i class=e>KeyError</i>" in highlighted_traceback(traceback)
    assert str(highlighted_traceback("exit status 3")) == "exit status 3"
