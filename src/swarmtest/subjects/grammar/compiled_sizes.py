"""Least sizes of rules, as a Python function that is written for one grammar.

A configuration of a swarm is mostly used for a single text, so its sizes are computed for each
test. The loop of `SizeTables` looks at tables for every alternative; the function has them in its
code, and the sizes in local variables, which takes less than half of the time.

Rules are visited after those that they need. Rules that need each other are visited in turns until
no size changes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = tuple[int, int, tuple[tuple[int, int], ...]]
"""An alternative: its number, its own tokens, and each rule that it needs with how many times."""
RuleRows: TypeAlias = Sequence[tuple[int, Sequence[Row]]]
"""The number of each rule, with its alternatives."""
Compiled: TypeAlias = Callable[
    [Sequence[object]],
    tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]],
]
"""Takes which alternatives are on, and returns the fields of `Sizes`."""


def compile_sizes(rows: RuleRows, alternatives: int, never: int) -> Compiled:
    """Return the function that computes sizes; `never`: the size of what cannot be finished.

    >>> rows = [(0, [(0, 1, ()), (1, 2, ((0, 1),))])]  # start: "x" | "(" start ")"
    >>> compile_sizes(rows, 2, 1 << 40)([True, True])
    ((1,), (1,), (1, 3), (1, 2))
    """
    rules = range(len(rows))
    sizes = [f"t{rule}" for rule in rules], [f"d{rule}" for rule in rules]
    own_sizes = [f"s{number}" for number in range(alternatives)]
    own_depths = [f"l{number}" for number in range(alternatives)]
    lines = [
        "def sizes(on):",
        f"    {', '.join(f'o{number}' for number in range(alternatives))}, = on",
        f"    {' = '.join([*sizes[0], *sizes[1], *own_sizes, *own_depths])} = {never}",
    ]
    for component, is_loop in _components(rows):
        inside = {rule for rule, _ in component} if is_loop else set()
        for rule, entry in component:
            lines += _visit_tokens(rule, [row for row in entry if not row[2]])
            outer = [row for row in entry if row[2] and not any(o in inside for o, _ in row[2])]
            lines += _visit(rule, outer, "    ", "")
        if is_loop:
            lines += ["    changed = True", "    while changed:", "        changed = False"]
        for rule, entry in component:
            inner = [row for row in entry if any(o in inside for o, _ in row[2])]
            lines += _visit(rule, inner, "        ", "changed = True")
    # Tuples of numbers cost the garbage collector nothing.
    fields = (", ".join(names) for names in (*sizes, own_sizes, own_depths))
    lines.append(f"    return {', '.join(f'({names},)' for names in fields)}")
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<swarmtest sizes of a grammar>", "exec"), namespace)
    compiled: Compiled = namespace["sizes"]
    return compiled


def _visit_tokens(rule: int, entry: Iterable[Row]) -> list[str]:
    """Return the code for alternatives of tokens only, as the first of a rule that are visited.

    The largest come first, so that each is the smallest so far and need not be compared.
    """
    lines = []
    for number, own, _ in sorted(entry, key=lambda row: -row[1]):
        lines += [f"    if o{number}:", f"        s{number} = t{rule} = {own}"]
        lines += [f"        l{number} = d{rule} = 1"]
    return lines


def _visit(rule: int, entry: Iterable[Row], indent: str, changed: str) -> list[str]:
    """Return the code that takes alternatives of a rule into account."""
    lines = []
    for number, own, needed in entry:
        sizes = [f"t{other}" if times == 1 else f"{times} * t{other}" for other, times in needed]
        depths = [f"d{other}" for other, _ in needed]
        depth = f"max({', '.join(depths)})" if len(depths) > 2 else depths[0]
        if len(depths) == 2:  # in half of the time that a call of `max` takes
            depth = "({0} if {0} > {1} else {1})".format(*depths)
        more = f"; {changed}" if changed else ""
        lines += [
            f"if o{number}:",
            f"    s{number} = {' + '.join([str(own), *sizes])}",
            f"    l{number} = {depth} + 1",
            f"    if s{number} < t{rule}: t{rule} = s{number}{more}",
            f"    if l{number} < d{rule}: d{rule} = l{number}{more}",
        ]
    return [indent + line for line in lines]


def _components(rows: RuleRows) -> list[tuple[list[tuple[int, Sequence[Row]]], bool]]:
    """Return the rules that need each other, those that others need first; and if they do."""
    needs = {rule: 0 for rule, _ in rows}
    for rule, entry in rows:
        for _, _, needed in entry:
            for other, _ in needed:
                needs[rule] |= 1 << other
    reached = {rule: _reached(needs, rule) for rule, _ in rows}
    found: dict[int, list[tuple[int, Sequence[Row]]]] = {}
    for rule, entry in rows:
        same = 1 << rule
        for other, _ in rows:
            if reached[rule] >> other & 1 and reached[other] >> rule & 1:
                same |= 1 << other
        found.setdefault(same, []).append((rule, entry))
    # Whatever reaches a rule reaches also what that rule reaches, and itself, so it reaches more.
    order = sorted(found.values(), key=lambda c: (reached[c[0][0]] | 1 << c[0][0]).bit_count())
    return [
        (component, bool(reached[(rule := component[0][0])] >> rule & 1)) for component in order
    ]


def _reached(needs: dict[int, int], rule: int) -> int:
    """Return the rules that a rule needs, directly or not; itself only if it does."""
    reached, waiting = 0, needs[rule]
    while waiting:
        reached |= waiting
        more = 0
        while waiting:
            low = waiting & -waiting
            more |= needs[low.bit_length() - 1]
            waiting ^= low
        waiting = more & ~reached
    return reached
