"""Coverage of large files: ranges are folded, and a function can be shown alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from swarmtest.core.targets import Catalogue, Source
from swarmtest.coverage.totals import Tally
from swarmtest.ui.terminal.coverage import coverage_table

Run = Callable[..., subprocess.CompletedProcess[str]]


def tally_of(reached: set[int], known: range) -> Tally:
    catalogue = Catalogue()
    source = Source("big.c", "")
    catalogue.add_source(source)
    tally = Tally(catalogue, kinds=("line",))
    for line in known:
        number = catalogue.number(source.target("line", str(line), line, "f", ""))
        if line in reached:
            tally.counts[number] += 1
    return tally


def test_a_row_fits_into_a_screen_and_a_file() -> None:
    tally = tally_of(set(range(0, 100_000, 7)), range(1, 100_000, 3))
    for width in (80, 120, 0):
        rows = coverage_table(tally, width).splitlines()
        assert max(map(len, rows)) <= (width or 400)
        assert "more" in rows[-1]


def test_lines_that_nothing_reached_lies_between_are_one_range() -> None:
    tally = tally_of({901}, range(1, 1801, 2))
    assert coverage_table(tally, 80).splitlines()[-1].endswith("1-899, 903-1799")


def test_a_short_list_is_not_folded() -> None:
    tally = tally_of({5}, range(1, 10, 2))
    assert coverage_table(tally, 80).splitlines()[-1].endswith("1, 3, 7, 9")


MACHINE = """\
from swarmtest import Machine, action
import shop


class Till(Machine):
    steps = 3

    @action
    def pay(self):
        shop.Cart().pay(1)
"""
SHOP = """\
class Cart:
    def pay(self, price):
        if price > 9:
            return None
        return price


def unused():
    return 3
"""


def test_a_function_is_shown_by_its_name(tmp_path: Path, swarmtest: Run) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "till.py").write_text(MACHINE)
    swarmtest("run", "till.py", "--coverage", "line", "--tests", 5, cwd=tmp_path)
    for name in ("Cart.pay", "shop.py:Cart.pay"):
        shown = swarmtest("coverage", "--show", name, cwd=tmp_path).stdout.splitlines()
        assert [line.split(maxsplit=2)[2] for line in shown[1:]] == [
            "if price > 9:",
            "return None",
            "return price",
        ]
        assert [line.split()[0] for line in shown[1:]] == ["5", "-", "5"]
    refused = swarmtest("coverage", "--show", "Cart.payy", cwd=tmp_path)
    assert refused.returncode == 2
