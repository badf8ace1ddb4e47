"""``swarmtest growth`` for a terminal of 80 columns: a table, curves, and what to do."""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Sequence

import click
import numpy as np
import numpy.typing as npt

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import counted, plural
from swarmtest.growth.growth import Growth, KindGrowth, measure_growth
from swarmtest.growth.richness import Forecast, rarer_than
from swarmtest.growth.verdict import GrowthVerdict, interval_text
from swarmtest.growth.verdict import verdict as verdict_on
from swarmtest.strategies.strategy import LearningStrategy, parse_strategy, strategy_names
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    LATEST,
    campaigns_argument,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.ui.terminal.tables import command_text, screen_table, wrapped
from swarmtest.ui.terminal.text import can_show, json_text

_COLUMNS = 80
_WIDTH = 56
_BESIDE_CURVE = 8
"""The columns that the number at the end of a curve may take."""
"""Columns of a curve."""
_HEIGHT = 8
"""Rows of a curve if there is only one."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN_BLOCKS = " .:-=+*%#"
"""For terminals that cannot show blocks."""
_LEARNS = "the strategy learns: tests change as it does, so take forecasts as rough"


@click.command(cls=HelpfulCommand)
@campaigns_argument
@click.option(
    "--kind", default="", metavar="KIND", help="Only targets of this kind: fault, line, branch, ..."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def growth(campaigns: list[int], kind: str, as_json: bool, store: str | None) -> None:
    """Tell whether to run more tests, to stop, or to change the configuration.

    Show what was found test by test, estimate what the same number of tests would add (Good-Turing,
    Chao), and say in one sentence what to do. CAMPAIGN is a number; by default, the newest. Several
    campaigns of the same subject and strategy, with different seeds, count as one.

    \b
    swarmtest growth                 the newest campaign
    swarmtest growth --kind branch   only branches, with a larger picture
    swarmtest growth 3 4 5           three campaigns as one
    """
    opened = existing_store(store)
    numbers = [latest_campaign(opened, number) for number in campaigns or [LATEST]]
    result = measure_growth(opened, numbers, kind)
    verdict = verdict_on(result)
    if as_json:
        click.echo(json_text(result.to_json() | {"verdict": verdict.to_json()}))
        return
    notes = [_LEARNS] if _learns(opened.campaign(numbers[0]).strategy) else []
    if verdict.action == "change the configuration":
        command = command_text(f"coverage {numbers[-1]} --targets --unreached", opened.url)
        notes.append(f"what was not reached: {command}")
    click.echo(growth_text(result, verdict, notes, screen_width()))


def _learns(strategy: str) -> bool:
    """Return whether a built-in strategy learns; other strategies are not loaded to find out.

    The text comes from the store, and naming a file there must not import it.
    """
    head, _, arguments = strategy.partition(":")
    if head not in strategy_names() or ":" in arguments:
        return False
    with contextlib.suppress(UserError):  # the store may be damaged
        return isinstance(parse_strategy(strategy), LearningStrategy)
    return False


# Growth as text.


def growth_text(
    growth: Growth, verdict: GrowthVerdict, notes: Sequence[str] = (), width: int = 0
) -> str:
    """Return everything that `swarmtest growth` prints.

    `notes` may be commands, so they are not wrapped. `width` is that of the screen; 0 means no
    limit.
    """
    columns = min(width or _COLUMNS, _COLUMNS)
    which = "campaign" if len(growth.campaigns) == 1 else "campaigns"
    numbers = ", ".join(map(str, growth.campaigns))
    parts = [
        wrapped(
            f"{which} {numbers}: {growth.subject}, {growth.strategy}, "
            f"{plural(growth.tests, 'test')}",
            width,
            "  ",
        ),
        growth_table(growth, width),
        curves(growth, columns),
        "\n".join([*(textwrap.fill(note, columns) for note in _notes(growth)), *notes]),
        textwrap.fill(str(verdict), columns),
    ]
    return "\n\n".join(part for part in parts if part)


def growth_table(growth: Growth, width: int = 0) -> str:
    """Return a row per kind: found, found once or twice, and found in as many tests again."""
    head = ("kind", "found", "by 1 test", "by 2", f"in {growth.tests:,} more", "unseen, at least")
    return screen_table(head, [_row(kind) for kind in growth.kinds], " rrrrr", width)


def _row(kind: KindGrowth) -> tuple[str, ...]:
    found = f"{kind.seen.found:,}"
    if kind.watched is not None and kind.unreached is not None:
        found += f" of {kind.seen.found + kind.unreached:,}"
    return (
        kind.kind,
        found,
        f"{kind.seen.once:,}",
        f"{kind.seen.twice:,}",
        _number(kind.new) + (f" ({interval_text(kind.new)})" if kind.new.high else ""),
        f"{kind.least_unseen:,}",
    )


def _number(forecast: Forecast) -> str:
    value = forecast.value
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.1f}"


def curves(growth: Growth, columns: int = _COLUMNS) -> str:
    """Return what was found test by test, one curve per kind.

    The scale is logarithmic: each factor of ten in tests has the same width.
    """
    kinds = [kind for kind in growth.kinds if kind.seen.found]
    if not kinds or growth.tests < 2:
        return ""
    margin = max(len(kind.kind) for kind in kinds) + 2
    height = min(_HEIGHT, kinds[0].seen.found) if len(kinds) == 1 else 1
    width = min(_WIDTH, columns - margin - _BESIDE_CURVE)
    lines = []
    for kind in kinds:
        *upper, last = curve(kind.curve, width, height)
        lines += [" " * margin + row.rstrip() for row in upper]
        lines.append(f"{kind.kind:<{margin}}{last} {kind.seen.found:,}")
    return "\n".join([*lines, " " * margin + _axis(growth.tests, width)])


def curve(found: npt.NDArray[np.int64], width: int, height: int) -> list[str]:
    """Return a rising line as blocks, from the first test on the left to the last on the right.

    >>> curve(np.array([1, 2, 2, 4]), width=4, height=1)
    ['▂▄▄█']
    """
    at = np.exp(np.linspace(0.0, math.log(len(found)), width))
    eighths = np.ceil(found[np.round(at).astype(int) - 1] / max(found[-1], 1) * height * 8)
    levels = eighths.astype(int).tolist()
    blocks = _BLOCKS if can_show(_BLOCKS) else _PLAIN_BLOCKS
    return [
        "".join(blocks[min(max(level - 8 * row, 0), 8)] for level in levels)
        for row in reversed(range(height))
    ]


def _axis(tests: int, width: int) -> str:
    """Return the powers of ten under a curve: ``1   10   100   1,000 tests``."""
    line = ""
    for power in range(int(math.log10(tests)) + 1):
        at = round((width - 1) * math.log(10**power) / math.log(tests))
        if at >= len(line) + bool(line):
            line = line.ljust(at) + f"{10**power:,}"
    return f"{line} tests"


def _notes(growth: Growth) -> list[str]:
    """Return the remarks below the curves."""
    notes = _check_lines(growth.kinds)
    fault = growth.kinds[0]
    if fault.kind == "fault" and not fault.seen.found and growth.tests >= 3:
        notes.append(
            f"no fault in {growth.tests:,} tests: with 95% confidence, fewer than 1 test in "
            f"{rarer_than(growth.tests):,} shows one"
        )
    if growth.missing:
        notes.append(f"coverage of {plural(growth.missing, 'test')} is missing: left out here")
    if growth.lead:
        notes.append(str(growth.lead))
    return notes


def _check_lines(kinds: Sequence[KindGrowth]) -> list[str]:
    """Return whether forecasts are reliable: whether the first half predicts the second."""
    checked = [(kind, kind.check) for kind in kinds if kind.check and kind.seen.found]
    wrong = [
        f"do not rely on the forecast for {kind.kind}: the first half of the tests predicted "
        f"{interval_text(check.predicted)} in the second, and there were {check.found:,}"
        for kind, check in checked
        if not check.holds
    ]
    if wrong or not checked:
        return wrong
    kind, check = max(checked, key=lambda pair: pair[1].found)
    return [
        f"checked: the first half of the tests predicted {interval_text(check.predicted)} new "
        f"{counted(2, kind.kind)[2:]} in the second; there were {check.found:,}"
    ]
