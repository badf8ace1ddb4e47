"""What `swarmtest plan` answers, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from swarmtest.analysis.plans import BOUND, EXACT, Answer, Range
from swarmtest.report.terminal import plural

_TOO_LARGE = 10**15
"""From here on, digits say less than how many there are."""


def plan_text(head: str, answers: Sequence[Answer], wished: float) -> str:
    """The question, and the answer of each method."""
    return "\n\n".join([head, *("\n".join(_lines(answer, wished)) for answer in answers)])


def _lines(answer: Answer, wished: float) -> list[str]:
    found = []
    if answer.share is not None:
        label = "rarest of them" if answer.method == BOUND else "has it"
        found.append((label, _share(answer.share)))
    if answer.needed is not None:
        found.append((f"for {percent(wished)}", _needed(answer)))
    if answer.chance is not None:
        found.append((f"within {answer.tests:,}", _chance(answer)))
    width = max(len(label) for label, _ in found)
    method = {EXACT: "exact", BOUND: "by the union bound"}.get(answer.method, answer.method)
    return [f"{method}:", *(f"  {label:<{width}}  {text}" for label, text in found)]


def _share(share: Range) -> str:
    low, high = share.low or 0.0, share.high or 0.0
    if low == high == 1:
        return "every test"
    if share.is_exact:
        every = _whole(1 / low) if low < 0.01 else f"{1 / low:.3g}"
        return f"1 test in {every} ({percent(low)})"
    return f"{percent(low)} to {percent(high)} of the tests"


def _chance(answer: Answer) -> str:
    assert answer.chance is not None
    low, high = answer.chance.low or 0.0, answer.chance.high or 0.0
    if answer.method == BOUND:
        return f"at least {percent(low)} likely" if low else "no bound: too few tests"
    if low == high == 1:
        return "certain"
    if not answer.chance.is_exact:
        return f"{percent(low)} to {percent(high)} likely"
    on_average = (answer.tests or 0) * ((answer.share.low if answer.share else 0) or 0)
    return f"{percent(low)} likely; {on_average:,.3g} of them have it on average"


def _needed(answer: Answer) -> str:
    assert answer.needed is not None
    low, high = answer.needed.low, answer.needed.high
    if answer.method == BOUND and high is not None:
        return f"{count_of_tests(high)} {'is' if high == 1 else 'are'} enough"
    if low is None:
        return "more tests than could be simulated, if ever"
    if high is None:
        return f"{count_of_tests(low)} or more"
    return count_of_tests(high) if low == high else f"{_whole(low)} to {count_of_tests(high)}"


def count_of_tests(tests: float) -> str:
    """A number of tests, however large.

    >>> count_of_tests(1), count_of_tests(3210), count_of_tests(2**100)
    ('1 test', '3,210 tests', 'about 10^30 tests')
    """
    return plural(1, "test") if tests == 1 else f"{_whole(tests)} tests"


def _whole(number: float) -> str:
    return f"{number:,.0f}" if number < _TOO_LARGE else f"about 10^{math.log10(number):.0f}"


def percent(chance: float) -> str:
    """A probability, never rounded to certain or impossible.

    >>> percent(0.95), percent(0.99999), percent(0.00001), percent(1)
    ('95%', '>99.99%', '<0.01%', '100%')
    """
    if 0 < chance < 0.0001:
        return "<0.01%"
    if 0.9999 < chance < 1:
        return ">99.99%"
    digits = 2 if chance > 0.95 or chance < 0.01 else 1
    return f"{100 * chance:.{digits}f}".rstrip("0").rstrip(".") + "%" if chance else "0%"
