"""A suite of the standard library's string."""

from __future__ import annotations

import pytest
from std_string import Formatter, Template, ascii_letters, capwords, hexdigits, punctuation


class Percent(Template):
    delimiter = "%"
    idpattern = "[a-z]+_[a-z]+"


def test_constants():
    assert len(ascii_letters) == 52
    assert hexdigits.endswith("F")
    assert "#" in punctuation


def test_capwords():
    assert capwords(" a  bc ") == "A Bc"
    assert capwords("a-b", "-") == "A-B"


def test_template():
    assert Template("$a ${b} $$").substitute(a=1, b=2) == "1 2 $"
    assert Template("$a $c").safe_substitute({"a": 1}) == "1 $c"
    with pytest.raises(KeyError):
        Template("$c").substitute()
    with pytest.raises(ValueError, match="line 2, col 1"):
        Template("a\n$").substitute()
    assert Percent("%a_b %a").safe_substitute(a_b=3) == "3 %a"
    assert Template("$a $b").get_identifiers() == ["a", "b"]


def test_formatter():
    assert Formatter().format("{0} {x!r:>5}", 1, x="a") == "1   'a'"
    with pytest.raises(ValueError, match="manual field"):
        Formatter().format("{} {0}", 1)
