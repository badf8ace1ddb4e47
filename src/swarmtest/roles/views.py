"""Triggers and suppressors as text: intervals drawn as bars, sentences, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swarmtest.analysis.role_cells import (
    FIXED,
    INSUFFICIENT,
    IRRELEVANT,
    ROLES,
    SUPPRESSOR,
    TRIGGER,
    RoleCells,
)
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import counted, format_percent, percent_interval, plural, words_for
from swarmtest.core.targets import Target
from swarmtest.roles.amounts import Amount
from swarmtest.roles.effects import FeatureEffect, HittingRate
from swarmtest.roles.pairs import ConditionalRole, Pair
from swarmtest.roles.roles import (
    MARKS,
    FeatureRole,
    FeatureShare,
    RoleTable,
)
from swarmtest.roles.settings import SettingRole
from swarmtest.roles.study import Study
from swarmtest.store.interface import Store
from swarmtest.ui.terminal.tables import lines_of, screen_table
from swarmtest.ui.terminal.text import can_show, one_line

# Columns of a bar: one for every 2.5%, fewer on narrow terminals.
_BAR, _SHORTEST_BAR = 41, 11
_AROUND = 21
"""Columns of a line with a bar that are not bar, name or figures."""
_MARKS = ("·", "─", "├", "┤", "●", "│")
_PLAIN_MARKS = (".", "-", "[", "]", "o", "|")
_ORDER = {TRIGGER: 0, SUPPRESSOR: 1, IRRELEVANT: 2, INSUFFICIENT: 3, FIXED: 4}


def in_order(roles: Sequence[FeatureRole]) -> list[FeatureRole]:
    """Sort roles: triggers first, the clearest at the top; then suppressors, and the rest."""
    return sorted(roles, key=lambda r: (_ORDER[r.role], -abs(r.estimate - r.base), r.feature))


def interval_bar(role: FeatureRole, marks: Sequence[str] = _MARKS, columns: int = _BAR) -> str:
    """Draw a share with its interval from 0 to 100%, and the base rate.

    >>> role = FeatureRole("pop", SUPPRESSOR, 0.1, 0.05, 0.25, 0.5, 60, 1e-9, 1e-8, 4)
    >>> interval_bar(role, _PLAIN_MARKS)
    '..[-o-----].........|....................'
    """
    empty, line, left, right, point, base = marks
    cells = [empty] * columns
    low, high, share, middle = (
        round(value * (columns - 1)) for value in (role.low, role.high, role.share, role.base)
    )
    cells[low : high + 1] = [line] * (high - low + 1)
    cells[low], cells[high] = left, right
    cells[middle] = base
    cells[share] = point
    return "".join(cells)


def role_lines(
    roles: Sequence[FeatureRole], rate: float, everything: bool = False, screen: int = 0
) -> list[str]:
    """Return a bar for each feature that has a role, and one line for those that have none.

    `rate` is the accepted share of false discoveries; a role that does not survive the correction
    for many comparisons is shown with a question mark. With `everything`, all features get bars.
    `screen` is the width of the terminal in columns; 0 means no limit.
    """
    shown = [r for r in in_order(roles) if everything or r.role in (TRIGGER, SUPPRESSOR)]
    shown = [r for r in shown if r.role != FIXED and r.hits]
    width = max((len(r.feature) for r in shown), default=0)
    marks = _MARKS if can_show("".join(_MARKS)) else _PLAIN_MARKS
    columns = _BAR
    beside = 0
    if screen:
        beside = width + max((len(_figures(role)) for role in shown), default=0)
        columns = min(max(screen - beside - _AROUND, _SHORTEST_BAR), _BAR)
    is_narrow = bool(screen) and columns + beside + _AROUND > screen
    lines = []
    for role in shown:
        bar = (
            f"{role.feature:{width}}  {_word(role, rate):11}  {interval_bar(role, marks, columns)}"
        )
        figures = _figures(role)
        lines += [bar, f"{'':{width}}  {figures}"] if is_narrow else [f"{bar}  {figures}"]
    if any(_word(r, rate).endswith("?") for r in shown):
        lines.append(f"{'':{width}}  ? may be chance: {len(roles)} features were looked at")
    rest = _without_role([r for r in roles if r not in shown])
    return lines + [part for line in rest for part in lines_of(line, screen - 4)]


def _word(role: FeatureRole, rate: float) -> str:
    doubtful = role.role in (TRIGGER, SUPPRESSOR) and not role.is_discovery(rate)
    return {INSUFFICIENT: "too few"}.get(role.role, role.role) + "?" * doubtful


def _figures(role: FeatureRole) -> str:
    return (
        f"{format_percent(role.share, 0)} of {_count(role.hits)} "
        f"({percent_interval(role.low, role.high, 0)}), "
        f"chance {format_percent(role.base, 0)}"
    )


def _count(hits: float) -> str:
    whole = abs(hits - round(hits)) < 1e-6
    return f"{hits:,.0f}" if whole else f"{hits:,.1f} (effective)"


def _without_role(roles: Sequence[FeatureRole]) -> list[str]:
    lines = []
    irrelevant = [r.feature for r in roles if r.role == IRRELEVANT]
    if irrelevant:
        lines.append(f"no role shown: {', '.join(irrelevant)}")
    few = [r for r in roles if r.role == INSUFFICIENT]
    if few:
        entries = [f"{r.feature} ({_count(r.hits)} of {r.needed} hits)" for r in few]
        lines.append(f"insufficient data: {', '.join(entries)}")
    fixed = [r.feature for r in roles if r.role == FIXED]
    if fixed:
        lines.append(f"never left to chance in these tests: {', '.join(fixed)}")
    return lines


def roles_in_short(roles: Sequence[FeatureRole], rate: float) -> str:
    """Return ``triggers: push; suppressors: pop``, or how many hits are missing.

    >>> roles_in_short([FeatureRole("pop", SUPPRESSOR, 0, 0, 0.1, 0.5, 60, 0, 0, 4)], 0.05)
    'suppressors: pop'
    """
    parts = []
    for role in (TRIGGER, SUPPRESSOR):
        names = [r.feature for r in in_order(roles) if r.role == role and r.is_discovery(rate)]
        if names:
            parts.append(f"{role}s: {', '.join(names)}")
    if parts:
        return "; ".join(parts)
    if all(r.role == FIXED for r in roles):
        return "triggers unknown: no feature was left to chance"
    more = max((r.missing_hits for r in roles), default=0)
    if more:
        return f"triggers unknown: insufficient data, {plural(more, 'more hit')} needed"
    return "no triggers or suppressors found"


def amount_lines(amounts: Sequence[Amount], rate: float) -> list[str]:
    """Return lines about the features of which more, or less, matters where they are enabled."""
    lines = []
    width = max((len(a.feature) for a in amounts), default=0)
    for item in sorted(amounts, key=lambda a: (_ORDER[a.role], -abs(a.effect))):
        if item.role in (TRIGGER, SUPPRESSOR):
            more = "more" if item.role == TRIGGER else "less"
            mark = "" if item.is_discovery(rate) else "?"
            lines.append(
                f"{item.feature:{width}}  {more + mark:5}  "
                f"{format_percent(item.share_in_hits, 0)} of the steps, "
                f"{format_percent(item.share_in_others, 0)} otherwise; a tenth more: "
                f"{100 * item.effect:+.0f} points ({100 * item.low:+.0f} to "
                f"{100 * item.high:+.0f})"
            )
    few = [f"{a.feature} ({plural(a.hits, 'hit')})" for a in amounts if a.role == INSUFFICIENT]
    if few:
        lines.append(f"too few tests with the same features on: {', '.join(few)}")
    return lines or ["how often a feature appears makes no difference that could be shown"]


def pair_lines(pairs: Sequence[Pair]) -> list[str]:
    """Return interactions in words, with the figures behind them."""
    return [
        f"{pair.sentence()} (with {pair.other}: {_part(pair.with_other)}; "
        f"without: {_part(pair.without_other)})"
        for pair in pairs
    ] or ["no two features were shown to act together"]


def _part(part: ConditionalRole) -> str:
    interval = percent_interval(part.low, part.high, 0)
    return f"{format_percent(part.share, 0)} of {part.hits} hits ({interval})"


def effect_lines(effects: Sequence[FeatureEffect], roles: Sequence[FeatureRole]) -> list[str]:
    """Return how often tests hit with and without each feature that has a role."""
    named = [r.feature for r in in_order(roles) if r.role in (TRIGGER, SUPPRESSOR)]
    by_name = {effect.feature: effect for effect in effects}
    width = max(map(len, named), default=0)
    return [
        f"{name:{width}}  {_rate(by_name[name].with_it)} with it, "
        f"{_rate(by_name[name].without_it)} without"
        for name in named
    ]


def _rate(rate: HittingRate | None) -> str:
    if rate is None:
        return "no test"
    if rate.value == 0:
        return f"none (at most {format_percent(rate.high)})"
    value, low, high = map(format_percent, (rate.value, rate.low, rate.high))
    return f"{value} of tests ({low} to {high})"


def study_or_none(store: Store, campaign: int) -> Study | None:
    """Return a study of one campaign, for reports about something else; None if impossible.

    A campaign without features, or with invalid tests only, cannot be studied.
    """
    try:
        return Study(store, [campaign])
    except UserError:
        return None


def why_in_short(study: Study | None) -> dict[str, list[str]]:
    """Return one line for each fault, by its id."""
    if study is None:
        return {}
    rate = 1 - study.confidence
    return {fault.name: [roles_in_short(study.roles(fault), rate)] for fault in study.faults}


def study_lines(
    study: Study, target: Target, everything: bool = False, screen: int = 0
) -> list[str]:
    """Return all that is known about one target."""
    rate = 1 - study.confidence
    roles = study.roles(target)
    lines = [f"{target}  {one_line(target.detail)}".rstrip(), f"  {_hit_by(study, target, roles)}"]
    sections = [
        (
            "on or off: how many of the hits have the feature",
            role_lines(roles, rate, everything, screen),
        ),
        ("how often tests hit", effect_lines(study.effects(target), roles)),
        ("how much of it, where it is on", amount_lines(study.amounts(target), rate)),
        ("in pairs", pair_lines(study.pairs(target))),
        ("values of settings", setting_lines(study.settings(target))),
    ]
    for title, body in sections:
        if body:
            lines += [f"  {title}", *(f"    {line}" for line in body)]
    return [part for line in lines for part in _fitted(line, screen)]


def setting_lines(roles: Sequence[SettingRole]) -> list[str]:
    """Return a line for each setting whose values matter, and one for those without a role.

    >>> role = SettingRole("size", TRIGGER, "above 40", 12, 1.0, 0.76, 1.0, 0.6, 2e-3, 9e-3, 240)
    >>> setting_lines([role])
    ['size above 40  100% of 12 hits (76% to 100%), of all tests 60%']
    """
    lines = [
        f"{role.setting} {role.values}  {format_percent(role.share, 0)} of "
        f"{plural(role.hits, 'hit')} ({percent_interval(role.low, role.high, 0)}), "
        f"of all tests {format_percent(role.base, 0)}"
        for role in roles
        if role.role == TRIGGER
    ]
    for words, code in (("no role shown", IRRELEVANT), ("too few hits", INSUFFICIENT)):
        names = [role.setting for role in roles if role.role == code]
        if names:
            lines.append(f"{words}: {', '.join(names)}")
    return lines


def _fitted(line: str, screen: int) -> list[str]:
    """Wrap a line of prose, keeping its indentation."""
    indent = len(line) - len(line.lstrip())
    return [" " * indent + part for part in lines_of(line.strip(), screen - indent)]


def _hit_by(study: Study, target: Target, roles: Sequence[FeatureRole]) -> str:
    hits = len(study.hits(target))
    informative = max((role.hits for role in roles), default=0)
    text = f"hit by {plural(hits, 'test')} of {study.evidence.n:,}"
    if informative and informative < hits - 0.5:
        text += f"; in {_count(informative)} of them chance switched features on or off"
    return text


# Roles of many targets for HTML pages: targets that the same tests hit share one entry.

MOST_ROLES = 12
"""The number of discoveries, the clearest, that are shown for a target; all would be too much."""
_NAMED = 4

Identity = tuple[str, str, str]
"""Kind, name and source, which together identify a target."""


@dataclass
class RoleGroups:
    """The distinct entries so far, as plain data for a page's script, and as text.

    An entry is ``[hits, discoveries, before correction, irrelevant, insufficient, fixed]``, a
    discovery ``[feature, 1 or -1, share, low, high, base, q]`` with shares in thousandths.
    """

    entries: list[list[Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The clearest discoveries of each entry, as in ``▲push ▼pop``."""
    hits: dict[Identity, int] = field(default_factory=dict)
    group: dict[Identity, int] = field(default_factory=dict)

    def add(self, table: RoleTable) -> None:
        """Add all targets of a table."""
        if not len(table.targets):
            return
        rows, row_of = table.rows, table.row_of
        hits = np.zeros(len(rows.targets), np.int64)
        hits[row_of] = table.hits
        discovered = rows.discoveries(1 - table.confidence)
        seen: dict[bytes, int] = {}
        entry = np.zeros(len(hits), np.int64)
        for part in rows.parts():
            cells = table.cells.of(part)
            numbers = np.column_stack([hits[part], *cells[:3]])
            for index, row in enumerate(range(part.start, part.stop)):
                entry[row] = seen.setdefault(numbers[index].tobytes(), len(self.entries))
                if entry[row] == len(self.entries):
                    row_cells = cells.of(slice(index, index + 1))
                    self._add_entry(table, row_cells, discovered[row], row, int(hits[row]))
        for target, number in zip(table.targets, entry[row_of].tolist(), strict=True):
            identity = target.kind, target.name, target.source
            self.group[identity] = number
            self.hits[identity] = self.entries[number][0]

    def _add_entry(
        self, table: RoleTable, cells: RoleCells, discovered: Any, row: int, hits: int
    ) -> None:
        adjusted = table.rows.adjusted_of(row)
        low, high = cells.interval(table.confidence)
        with np.errstate(invalid="ignore"):
            share = cells.containing / cells.informative
        shown = np.stack([share[0], low[0], high[0], cells.base[0]])
        order = sorted(
            np.flatnonzero(discovered).tolist(),
            key=lambda i: (adjusted[i], -abs(shown[0, i] - shown[3, i])),
        )
        signs = [1 if code == ROLES.index(TRIGGER) else -1 for code in discovered[order]]
        discoveries = [
            [i, sign, *(round(1000 * v) for v in shown[:, i].tolist()), float(f"{adjusted[i]:.1e}")]
            for i, sign in zip(order[:MOST_ROLES], signs, strict=False)
        ]
        codes = table.rows.codes[row]
        counts = [int((codes == ROLES.index(r)).sum()) for r in (IRRELEVANT, INSUFFICIENT, FIXED)]
        unsure = int(((codes == 1) | (codes == 2)).sum()) - len(order)
        self.entries.append([hits, discoveries, unsure, *counts])
        named = [
            f"{MARKS[TRIGGER if sign > 0 else SUPPRESSOR]}{table.features[i]}"
            for i, sign in zip(order[:_NAMED], signs, strict=False)
        ]
        more = [f"+{len(order) - _NAMED}"] if len(order) > _NAMED else []
        self.texts.append(" ".join([*named, *more]))


# Tables of many targets.


def table_rows(roles: RoleTable, limit: int = 0) -> list[tuple[str, ...]]:
    """Return a row per target: its hits, and its discovered triggers and suppressors.

    The rarest come first, so targets with the same hits and roles tend to be neighbours.
    """
    order = sorted(range(len(roles.targets)), key=lambda t: (roles.hits[t], roles.targets[t]))
    rows = []
    for number in order[: limit or None]:
        names = [", ".join(roles.discovered(number, role)) for role in (TRIGGER, SUPPRESSOR)]
        rows.append((str(roles.targets[number]), f"{roles.hits[number]:,}", *names))
    return rows


def share_table(shares: Sequence[FeatureShare], kind: str, width: int = 0) -> str:
    """Return the papers' tables 2 and 6: each feature's shares of targets, by role."""
    by_trigger = sorted(shares, key=lambda s: (-s.trigger, s.feature))
    by_suppressor = sorted(shares, key=lambda s: (-s.suppressor, s.feature))
    rows = [
        (
            a.feature,
            format_percent(a.trigger, 0),
            b.feature,
            format_percent(b.suppressor, 0),
        )
        for a, b in zip(by_trigger, by_suppressor, strict=True)
    ]
    targets = max((s.targets for s in shares), default=0)
    _, many = words_for(kind)
    head = ("trigger of", many, "suppressor of", many)
    shown = screen_table(head, rows, " r r", width)
    return f"{shown}\nof {counted(targets, kind)} with enough hits to tell"
