"""Numbers as text, as short as they are still exact enough; JSON without what is no number."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarmtest.analysis.intervals import Estimate

# -------------------------------------------------------------------------------------------------
# Text that others wrote, made fit to be looked at; long things made short.

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, what turns the direction of writing round, and halves of characters."""


def printable(text: str) -> str:
    """The text with what cannot be seen, or must not be in a file, spelt out.

    >>> printable("a\\x00b")
    'a\\\\x00b'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """The text without what cannot be seen, on one line.

    >>> one_line("lost\\nfound")
    'lost found'
    """
    return printable(" ".join(text.split()))


def kind_and_signature(kind: str, signature: str) -> str:
    """A fault in words; a kind that the signature begins with is not said twice.

    >>> kind_and_signature("exit", "exit status 2"), kind_and_signature("exception", "KeyError")
    ('exit status 2', 'exception: KeyError')
    """
    told = one_line(signature)
    return told if told.startswith(kind) else f"{kind}: {told}"


def elided(text: str, most: int) -> str:
    """The text, cut in the middle if it is too long: both ends of a name tell.

    >>> elided("a_very_long_name", 9)
    'a_ve…name'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def spans(numbers: Iterable[int]) -> str:
    """Numbers, neighbours together.

    >>> spans([1, 2, 3, 7])
    '1-3, 7'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number - parts[-1][-1] <= 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if p[-1] > p[0] else f"{p[0]}" for p in parts)


# -------------------------------------------------------------------------------------------------


def grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first column only where it changes."""
    before = [None, *(row[0] for row in rows)]
    return [
        ("" if row[0] == last else row[0], *row[1:])
        for row, last in zip(rows, before, strict=False)
    ]


def amount(value: float, unit: str) -> str:
    """So many tests, or so many CPU seconds.

    >>> amount(1200, "tests"), amount(0.25, "cpu_seconds")
    ('1,200', '250 ms')
    """
    if unit == "tests":
        return number(value)
    return duration(value)


def duration(seconds: float) -> str:
    """Seconds, or milliseconds below one."""
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.3g} ms"


def number(value: float) -> str:
    """Three digits are enough, but whole numbers are whole."""
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_interval(estimate: Estimate, sign: str = "") -> str:
    """A number and its interval; "always" where all runs agree.

    >>> from swarmtest.analysis.intervals import Estimate
    >>> with_interval(Estimate(2.5, 2, 3)), with_interval(Estimate(2, 2, 2), sign="+")
    ('2.50 [2, 3]', '+2 always')
    """
    value = f"{'+' if sign and estimate.value > 0 else ''}{_signed(estimate.value)}"
    if estimate.low is None or estimate.high is None:
        return value
    if estimate.low == estimate.high:
        return f"{value} always"
    return f"{value} [{_signed(estimate.low)}, {_signed(estimate.high)}]"


def _signed(value: float) -> str:
    return f"-{number(-value)}" if value < 0 else number(value)


def p_value(p: float | None) -> str:
    """A p-value with the digits that matter.

    >>> p_value(0.04321), p_value(0.00001), p_value(None)
    ('0.043', '<0.0001', '-')
    """
    if p is None:
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def short_percent(share: float) -> str:
    """Two digits that matter.

    >>> short_percent(0.4039), short_percent(0.0591), short_percent(0.00112), short_percent(1.0)
    ('40%', '5.9%', '0.11%', '100%')
    """
    digits = 0 if share >= 0.0995 or share == 0 else 1 if share >= 0.00995 else 2
    return f"{share:.{digits}%}"


def json_text(data: Any) -> str:
    """Plain data as JSON that every program can read: what is no number is null.

    >>> json_text({"low": float("nan"), "high": (1.5, float("inf"))})
    '{"low": null, "high": [1.5, null]}'
    """
    return json.dumps(_finite(data), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def can_show(characters: str) -> bool:
    """Whether what we print to can show these characters; what has no encoding keeps any."""
    try:
        characters.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
