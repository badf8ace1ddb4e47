"""A suite of the standard library's shlex."""

from __future__ import annotations

import pytest
from std_shlex import join, quote, shlex, split


def test_split():
    assert split('a \'b c\' "d\\"e" f\\ g # h', comments=True) == ["a", "b c", 'd"e', "f g"]
    assert split("") == []
    with pytest.raises(ValueError, match="No closing quotation"):
        split("'a")


def test_quote():
    assert quote("") == "''"
    assert quote("a b'c") == "'a b'\"'\"'c'"
    assert join(["a", "b c"]) == "a 'b c'"


def test_punctuation():
    assert list(shlex("a&&b|c", punctuation_chars=True)) == ["a", "&&", "b", "|", "c"]
    lexer = shlex("a b")
    lexer.push_token("z")
    assert lexer.get_token() == "z"
    assert lexer.error_leader("f", 3) == '"f", line 3: '
