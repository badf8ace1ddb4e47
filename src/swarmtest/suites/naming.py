"""What tests of a suite are called, and what is said of them."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from swarmtest.suites.formatting import WIDTH
from swarmtest.suites.suite import SuiteTest
from swarmtest.targets import Target

_LONGEST = 60
_LISTED = 8
"""Names of targets that are listed of a kind; of the rest only the number is told."""
_PLURALS = {"branch": "branches", "du": "definition-use pairs", "path": "paths"}


def name_of(test: SuiteTest) -> str:
    """A function's name: the trial, which no other has, and what it preserves.

    >>> line = Target("line", "cart.py:3", "cart.py", 3, "Cart.add")
    >>> name_of(SuiteTest(17, None, 9, 2, adds=(line, line)))
    'test_17_keeps_2_lines_of_cart_add'
    """
    if test.fault is not None:
        told = _words(f"shows {test.fault.signature}")
        return f"test_{test.trial}_{told}"
    counts = Counter(target.kind for target in test.adds).most_common(2)
    what = " and ".join(counted(count, kind) for kind, count in counts)
    where = Counter(target.function or target.file for target in test.adds).most_common(1)
    place = f" of {where[0][0]}" if where and where[0][0] else ""
    single = f" {test.adds[0].name}" if len(test.adds) == 1 and not place else ""
    return f"test_{test.trial}_{_words(f'keeps {what}{place}{single}')}"


def counted(count: int, kind: str) -> str:
    """A number of targets of a kind.

    >>> counted(1, "branch"), counted(2, "branch"), counted(3, "mutant")
    ('1 branch', '2 branches', '3 mutants')
    """
    word = kind if count == 1 else _PLURALS.get(kind, f"{kind}s")
    return f"{count:,} {word}"


def comment_of(test: SuiteTest, campaign: int, part: str) -> list[str]:
    """What a test preserves and where it comes from, as comment lines."""
    lines = []
    if test.fault is not None:
        lines += _wrapped(f"Shows fault {test.fault.id}: {test.fault.signature}")
    by_kind: dict[str, list[Target]] = defaultdict(list)
    for target in test.adds:
        by_kind[target.kind].append(target)
    if by_kind:
        told = [counted(len(some), kind) for kind, some in sorted(by_kind.items())]
        lines += _wrapped(f"Keeps {', '.join(told)}:")
    for kind, some in sorted(by_kind.items()):
        lines += _wrapped(f"{kind} {places(kind, some)}", "  ")
    left = f"{test.size:,} of {test.before:,} {part}s are left"
    whole = f"{test.size:,} {part}{'s' * (test.size != 1)}"
    lines += _wrapped(f"Trial {test.trial} of campaign {campaign}: {left if test.srr else whole}.")
    return lines


def places(kind: str, targets: Sequence[Target]) -> str:
    """Where targets are, in short: lines as ranges, of others the first few names.

    >>> lines = [Target("line", f"a.py:{n}", "a.py", n) for n in (3, 4, 5, 9)]
    >>> places("line", lines)
    'a.py:3-5, 9'
    """
    if kind in ("line", "block"):
        by_file: dict[str, set[int]] = defaultdict(set)
        for target in targets:
            by_file[target.file].add(target.line)
        return "; ".join(f"{file}:{_ranges(lines)}" for file, lines in sorted(by_file.items()))
    names = [target.name for target in targets]
    more = len(names) - _LISTED
    shown = ", ".join(names[:_LISTED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _ranges(numbers: Iterable[int]) -> str:
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _words(text: str) -> str:
    """Text as a part of an identifier."""
    plain = re.sub(r"[^0-9a-zA-Z]+", "_", text.replace(",", "")).strip("_").lower()
    if len(plain) <= _LONGEST:
        return plain
    return plain[:_LONGEST].rpartition("_")[0] or plain[:_LONGEST]


def _wrapped(text: str, indent: str = "") -> list[str]:
    plain = " ".join(re.sub(r"[^\x20-\x7e]", "?", " ".join(text.split())).split())
    return textwrap.wrap(
        plain,
        WIDTH,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
