"""A suite of the standard library's textwrap."""

from __future__ import annotations

from std_textwrap import TextWrapper, dedent, fill, indent, shorten, wrap

TEXT = "The quick brown fox jumped over the lazy-footed dog -- twice.  Then it slept."


def test_wrap():
    assert wrap(TEXT, 20)[2:4] == ["lazy-footed dog --", "twice.  Then it"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("a\tb", 20) == ["a       b"]
    assert TextWrapper(12, initial_indent="* ", subsequent_indent="  ").wrap("a b c d e f g") == [
        "* a b c d e",
        "  f g",
    ]


def test_fill():
    assert fill("aa bb cc", 5) == "aa bb\ncc"
    assert shorten("Hello  world!", width=11) == "Hello [...]"
    assert TextWrapper(10, max_lines=1).fill("aaa bbb ccc ddd") == "aaa [...]"


def test_margins():
    assert dedent("  a\n    b\n\n  c") == "a\n  b\n\nc"
    assert indent("a\n\nb", "> ") == "> a\n\n> b"
