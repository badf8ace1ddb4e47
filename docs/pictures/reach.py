"""Draws reach.svg: which mixes of push and pop the tests of each strategy contain.

    python docs/pictures/reach.py

Each panel is the blog's picture for one strategy or one family of `layered`: tests of 100 steps
over push, pop and add; a cell is darker the more of 20,000 tests have that many pushes and pops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from swarmtest import Configuration, Machine, action
from swarmtest.core.seeds import seed_of_test, trial_key
from swarmtest.strategies import Stream, parse_strategy
from swarmtest.strategies.layered import FAMILIES, settled
from swarmtest.subjects import MachineSubject

TESTS, STEPS, BIN, CELL = 20_000, 100, 4, 6
SIDE = STEPS // BIN * CELL
COLUMNS = 5


class PushPopAdd(Machine):
    steps = STEPS

    @action
    def push(self):
        pass

    @action
    def pop(self):
        pass

    @action
    def add(self):
        pass


SUBJECT = MachineSubject(PushPopAdd)
Propose = Callable[[int, Stream], Configuration]


def of_strategy(text: str) -> Propose:
    strategy = parse_strategy(text)
    return lambda trial, rng: strategy.ask(SUBJECT.space, trial, rng).configuration


def of_family(draw: Callable[..., object]) -> Propose:
    names = SUBJECT.space.feature_names

    def propose(trial: int, rng: Stream) -> Configuration:
        weights = settled(names, draw(SUBJECT.space, rng))
        values = dict(zip(names, weights, strict=True))
        return SUBJECT.space.configuration(values | {"*renormalised": True})

    return propose


def reached(propose: Propose) -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    rng = Stream(1)
    for trial in range(TESTS):
        rng.rekey(trial_key(1, trial))
        push, pop, _ = SUBJECT.execute(propose(trial, rng), seed_of_test(1, trial)).used
        counts[min(push, STEPS - 1) // BIN, min(pop, STEPS - 1) // BIN] += 1
    return counts


def panel(title: str, counts: Counter[tuple[int, int]], x: int, y: int) -> str:
    darkest = math.log1p(TESTS / 20)
    parts = [
        f'<text x="{x}" y="{y - 6}" font-size="12">{title}</text>',
        f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="#fff" stroke="#999"/>',
    ]
    for (push, pop), number in sorted(counts.items()):
        shade = min(1.0, math.log1p(number) / darkest)
        red, green, blue = (round(255 - shade * (255 - end)) for end in (8, 48, 107))
        left, top = x + push * CELL, y + SIDE - (pop + 1) * CELL
        parts.append(
            f'<rect x="{left}" y="{top}" width="{CELL}" height="{CELL}" '
            f'fill="#{red:02x}{green:02x}{blue:02x}"/>'
        )
    return "\n".join(parts)


def main() -> None:
    strategies = ["all-on", "coin", "coin:p=random", "activation", "layered"]
    panels = [(name, of_strategy(name)) for name in strategies]
    panels += [(f"layered: {name} {share:.0%}", of_family(draw)) for name, share, draw in FAMILIES]
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * (SIDE + 20) + 40, rows * (SIDE + 34) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (title, propose) in enumerate(panels):
        row, column = divmod(number, COLUMNS)
        parts.append(
            panel(title, reached(propose), 30 + column * (SIDE + 20), 24 + row * (SIDE + 34))
        )
    parts.append(f'<text x="30" y="{height - 8}" font-size="12">pushes in a test, 0 to 100</text>')
    parts.append(
        f'<text transform="translate(16 {height - 36}) rotate(-90)" font-size="12">'
        "pops in a test, 0 to 100</text></svg>"
    )
    Path(__file__).with_suffix(".svg").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
