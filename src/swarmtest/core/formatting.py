"""Text that others wrote made safe to show, and numbers as text, the same everywhere."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from typing import Protocol

_TARGET_WORDS = {
    "prime": "prime path",
    "du": "definition-use path",
    "predicate": "predicate value",
}
"""What a target of a kind is called, where the kind itself is not a word for it."""
_TOO_LARGE = 1e15
"""Larger counts are shown as a power of ten."""
_SMALLEST_PERCENT = 0.0001
_MOST_DECIMALS = 2
"""The decimals of a percentage that would be rounded to 100%."""
_ROUNDING_ERROR = 1e-9


# Text that others wrote.

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Control characters, characters that change the direction of writing, and lone surrogates."""
_PLAIN_ID = re.compile(r"[0-9A-Za-z]{1,40}")
_WORD = re.compile(r"[\w.:][\w.:#-]*", re.ASCII)
_FORMULA = re.compile(r"[\t\r]|\s*[=@]|\s*[+-](?![\w.,=/+-]*\Z)")
"""How a text begins that a spreadsheet may take for a formula.

Numbers and options such as ``-O2`` and ``--level=3`` do not count: they can call nothing.
"""


def printable(text: str) -> str:
    """Return a text with escapes for characters that cannot be seen or must not be in a file.

    Newlines and tabs stay.

    >>> printable("a\\x00b")
    'a\\\\x00b'
    """
    return _UNSEEN.sub(_escaped, text)


def printable_line(text: str) -> str:
    """Return a text as one printable line, with escapes for newlines and tabs too.

    >>> printable_line("a\\nb")
    'a\\\\nb'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def is_plain_id(text: str) -> bool:
    """Return whether an id can be the name of a file, or a word that a shell completes.

    >>> is_plain_id("4ee18053"), is_plain_id("../4ee1"), is_plain_id("$(reboot)")
    (True, False, False)
    """
    return _PLAIN_ID.fullmatch(text) is not None


def typed_word(text: str) -> str:
    """Return a text as one word of a command that a person copies into a shell.

    A store from elsewhere may hold anything as the id of a fault.

    >>> typed_word("1#17"), typed_word("4ee1; reboot")
    ('1#17', "'4ee1; reboot'")
    """
    return text if _WORD.fullmatch(text) else shlex.quote(printable_line(text))


def _escaped(match: re.Match[str]) -> str:
    """Return the escape of a character; JSON has no escapes like ``\\x7f``."""
    code = ord(match[0])
    if 0x7F <= code <= 0x9F:
        return f"\\u{code:04x}"
    return match[0].encode("unicode_escape").decode()


def csv_row(values: Iterable[object]) -> list[object]:
    """Return the cells of a row of a CSV file, in which no text is a formula of a spreadsheet.

    A text that begins like a formula gets an apostrophe before it, and characters that cannot be
    seen are shown as escapes. Numbers stay as they are.

    >>> csv_row(["=1+2", "-1+f(2)", "push", "-O2", -2])
    ["'=1+2", "'-1+f(2)", 'push', '-O2', -2]
    """
    return [_csv_text(value) if isinstance(value, str) else value for value in values]


def _csv_text(text: str) -> str:
    return f"'{printable(text)}" if _FORMULA.match(text) else printable(text)


# Counts.


def plural(count: float, word: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "test"), plural(1200, "test"), plural(2, "switch"), plural(2**100, "test")
    ('1 test', '1,200 tests', '2 switches', 'about 10^30 tests')
    """
    return f"{whole_number(count)} {word if count == 1 else plural_of(word)}"


def plural_of(word: str) -> str:
    """Return the plural of a noun.

    >>> plural_of("test"), plural_of("branch")
    ('tests', 'branches')
    """
    return f"{word}es" if word.endswith("ch") else f"{word}s"


def words_for(kind: str) -> tuple[str, str]:
    """Return the singular and the plural of a kind of target.

    >>> words_for("branch"), words_for("prime")
    (('branch', 'branches'), ('prime path', 'prime paths'))
    """
    word = _TARGET_WORDS.get(kind, kind)
    return word, plural_of(word)


def counted(count: float, kind: str, before: str = "") -> str:
    """Return a number of targets of a kind, as text.

    >>> counted(41, "branch"), counted(1, "line", "watched "), counted(0.31, "fault")
    ('41 branches', '1 watched line', '0.3 faults')
    """
    text = f"{count:,.0f}" if count >= 1 or not count else f"{count:.1g}"
    singular, many = words_for(kind)
    return f"{text} {before}{singular if text == '1' else many}"


def whole_number(value: float) -> str:
    """Format a number without a fraction, however large it is.

    >>> whole_number(3210.4), whole_number(2**100)
    ('3,210', 'about 10^30')
    """
    return f"{value:,.0f}" if value < _TOO_LARGE else f"about 10^{math.log10(value):.0f}"


def number(value: float) -> str:
    """Format a number with about three digits; whole numbers have no fraction.

    >>> number(12), number(12.345), number(1.2345), number(-1234.5)
    ('12', '12.3', '1.23', '-1,234')
    """
    if value < 0:
        return f"-{number(-value)}"
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# Shares.


def format_percent(share: float, decimals: int | None = None) -> str:
    """Format a share as a percentage; only exactly 0 and 1 are shown as 0% and 100%.

    There are two digits that matter, or at most `decimals` decimals; below 1% always two digits
    that matter, because rare faults differ there.

    >>> format_percent(0.4039), format_percent(0.0591), format_percent(0.00112), format_percent(1)
    ('40%', '5.9%', '0.11%', '100%')
    >>> format_percent(0.4039, decimals=1), format_percent(0.5, decimals=1), format_percent(0.99999)
    ('40.4%', '50%', '>99.99%')
    """
    percent = 100 * share
    is_fixed = decimals is not None
    if not percent or abs(percent - 100) < _ROUNDING_ERROR:
        return f"{percent:.0f}%"
    if 0 < percent < _SMALLEST_PERCENT:
        return f"<{_SMALLEST_PERCENT:.4f}%"
    if abs(percent) < 1:
        decimals = 1 - math.floor(math.log10(abs(percent)))
    elif decimals is None:
        decimals = 0 if abs(percent) >= 9.95 else 1
    while f"{percent:.{decimals}f}".startswith("100") and percent < 100:
        if decimals >= _MOST_DECIMALS:
            return f">{100 - 10**-_MOST_DECIMALS:.{_MOST_DECIMALS}f}%"
        decimals += 1
    text = f"{percent:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if is_fixed and '.' in text else text}%"


def part_percent(part: float, whole: float, decimals: int | None = 1) -> str:
    """Format a part of a whole as a percentage; a dash if there is no whole.

    >>> part_percent(1, 3), part_percent(0, 0)
    ('33.3%', '-')
    """
    return format_percent(part / whole, decimals) if whole else "-"


def percent_interval(low: float, high: float, decimals: int | None = None) -> str:
    """Format an interval of shares.

    >>> percent_interval(0.05, 0.25)
    '5.0% to 25%'
    """
    return f"{format_percent(low, decimals)} to {format_percent(high, decimals)}"


# Time and size.


def duration(seconds: float) -> str:
    """Format a duration in seconds, or in milliseconds below one second.

    >>> duration(1234.5), duration(2.34), duration(0.25)
    ('1,234 s', '2.3 s', '250 ms')
    """
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.3g} ms"


def rough_duration(seconds: float) -> str:
    """Format a duration roughly, in its largest suitable unit.

    >>> rough_duration(0.2), rough_duration(59), rough_duration(150), rough_duration(200_000)
    ('0 s', '59 s', '2 min', '2 days')
    """
    for length, word in ((86400, " days"), (3600, " h"), (60, " min")):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f}{word}"
    return f"{seconds:.0f} s"


def amount(value: float, unit: str) -> str:
    """Format a number of tests or of CPU seconds.

    >>> amount(1200, "tests"), amount(0.25, "cpu_seconds")
    ('1,200', '250 ms')
    """
    return number(value) if unit == "tests" else duration(value)


# Estimates and tests of hypotheses.


class _Interval(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def with_interval(estimate: _Interval, sign: str = "") -> str:
    """Format a number with its interval; with "always" if all runs agree.

    >>> from swarmtest.analysis.intervals import Estimate
    >>> with_interval(Estimate(2.5, 2, 3)), with_interval(Estimate(2, 2, 2), sign="+")
    ('2.50 [2, 3]', '+2 always')
    """
    value = f"{'+' if sign and estimate.value > 0 else ''}{number(estimate.value)}"
    if estimate.low is None or estimate.high is None:
        return value
    if estimate.low == estimate.high:
        return f"{value} always"
    return f"{value} [{number(estimate.low)}, {number(estimate.high)}]"


def whole_interval(low: float, high: float) -> str:
    """Format an interval of counts, rounded outwards.

    >>> whole_interval(9.1, 24.3), whole_interval(0.0, 3.8)
    ('9 to 25', 'up to 4')
    """
    least, most = math.floor(low), math.ceil(high)
    return f"{least:,} to {most:,}" if least else f"up to {most:,}"


def p_value(p: float | None) -> str:
    """Format a p-value with the digits that matter.

    >>> p_value(0.04321), p_value(0.00001), p_value(None)
    ('0.043', '<0.0001', '-')
    """
    if p is None:
        return "-"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.3f}"
