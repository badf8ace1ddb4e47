"""Text for people: untrusted text made printable, long text made short, and numbers as text."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarmtest.analysis.intervals import Estimate

# Text that others wrote, and text that is too long.

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, characters that change the direction of writing, and lone surrogates."""


def printable(text: str) -> str:
    """Return a text with escapes for characters that cannot be seen or must not be in a file.

    >>> printable("a\\x00b")
    'a\\\\x00b'
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text as one printable line.

    >>> one_line("lost\\nfound")
    'lost found'
    """
    return printable(" ".join(text.split()))


def kind_and_signature(kind: str, signature: str) -> str:
    """Return a fault in words; a kind that the signature begins with is not repeated.

    >>> kind_and_signature("exit", "exit status 2"), kind_and_signature("exception", "KeyError")
    ('exit status 2', 'exception: KeyError')
    """
    line = one_line(signature)
    return line if line.startswith(kind) else f"{kind}: {line}"


def elided(text: str, most: int) -> str:
    """Return a text, cut in the middle if it is too long: both ends of a name are informative.

    >>> elided("a_very_long_name", 9)
    'a_ve…name'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as text, with neighbours joined to ranges.

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


# Numbers, and rows of them.


def grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with the first column empty where it repeats the row before."""
    first_cells = [None, *(row[0] for row in rows)]
    return [
        ("" if row[0] == previous else row[0], *row[1:])
        for row, previous in zip(rows, first_cells, strict=False)
    ]


def amount(value: float, unit: str) -> str:
    """Format a number of tests or of CPU seconds.

    >>> amount(1200, "tests"), amount(0.25, "cpu_seconds")
    ('1,200', '250 ms')
    """
    if unit == "tests":
        return number(value)
    return duration(value)


def duration(seconds: float) -> str:
    """Format a duration in seconds, or in milliseconds below one second."""
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.3g} ms"


def number(value: float) -> str:
    """Format a number with about three digits; whole numbers have no fraction."""
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_interval(estimate: Estimate, sign: str = "") -> str:
    """Format a number with its interval; with "always" if all runs agree.

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
    """Format a p-value with the digits that matter.

    >>> p_value(0.04321), p_value(0.00001), p_value(None)
    ('0.043', '<0.0001', '-')
    """
    if p is None:
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def short_percent(share: float) -> str:
    """Format a share as a percentage with two digits that matter.

    >>> short_percent(0.4039), short_percent(0.0591), short_percent(0.00112), short_percent(1.0)
    ('40%', '5.9%', '0.11%', '100%')
    """
    digits = 0 if share >= 0.0995 or share == 0 else 1 if share >= 0.00995 else 2
    return f"{share:.{digits}%}"


def json_text(data: Any) -> str:
    """Return plain data as standard JSON: infinities and NaN become null.

    >>> json_text({"low": float("nan"), "high": (1.5, float("inf"))})
    '{"low": null, "high": [1.5, null]}'
    """
    return json.dumps(_finite(data), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def can_show(characters: str) -> bool:
    """Return whether standard output can show these characters; it can if it has no encoding."""
    try:
        characters.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
