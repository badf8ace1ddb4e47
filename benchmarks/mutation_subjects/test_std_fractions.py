"""A suite of the standard library's fractions."""

from __future__ import annotations

import pytest
from std_fractions import Fraction


def test_arithmetic():
    assert Fraction(1, 2) + Fraction(1, 3) == Fraction(5, 6)
    assert Fraction(1, 2) - 2 == Fraction(-3, 2)
    assert 3 * Fraction(2, 9) == Fraction(2, 3)
    assert Fraction(7, 2) // 1 == 3
    assert Fraction(7, 2) % 2 == Fraction(3, 2)
    assert Fraction(2, 3) ** -2 == Fraction(9, 4)


def test_text():
    assert Fraction(" -3/6 ") == Fraction(-1, 2)
    assert Fraction("1.5e1") == 15
    assert str(Fraction(4, 2)) == "2"
    assert repr(Fraction(1, 3)) == "Fraction(1, 3)"
    with pytest.raises(ValueError, match="1/x"):
        Fraction("1/x")
    with pytest.raises(ZeroDivisionError):
        Fraction(1, 0)


def test_order():
    assert Fraction(1, 3) < 0.5 < Fraction(2, 3)
    assert hash(Fraction(2, 1)) == hash(2)
    assert round(Fraction(7, 2)) == 4
    assert Fraction(31, 100).limit_denominator(10) == Fraction(3, 10)
