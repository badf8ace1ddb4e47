"""Calls in a test that a report shows, where a loop stands for equal calls in a row."""

from __future__ import annotations

import re

LOOP = re.compile(r"for _ in range\((\d+)\):$")


def count_calls(text: str, call: str) -> int:
    """Return how often a test makes a call, with its loops unrolled.

    >>> count_calls("for _ in range(5):\\n    shop.buy(1)\\nshop.buy(2)", "shop.buy(")
    6
    """
    lines = [line.strip() for line in text.splitlines()]
    total = 0
    for before, line in zip(["", *lines], lines, strict=False):
        loop = LOOP.search(before)
        total += line.count(call) * (int(loop[1]) if loop else 1)
    return total
