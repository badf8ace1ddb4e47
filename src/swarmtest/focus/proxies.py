"""A line without data is aimed at through what leads to it: the nearest place with data.

In this order: a line that follows in the same block, if it is hit less often than what comes
before; the lines of its own function that are always executed before it, the nearest first; the
calls of its function (one of them is executed before it, so their union is meant), or the lines
before those calls; for a nested function the line that defines it; then the calls of the callers,
and so on. An action of the harness that calls it is a feature, and stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.coverage.scope import shown_path
from swarmtest.languages.python.callers import CallSite
from swarmtest.languages.source import Language, language_of

# -------------------------------------------------------------------------------------------------
# For a target with too few hits: the rarest line that was hit by every test that hit it.

Hit = npt.NDArray[np.bool_]


def implied_by(
    target: Hit, columns: Hit, lines: Sequence[int], enough: int, dominators: Sequence[int] = ()
) -> int | None:
    """The line to aim at instead of a target that few tests hit; None if no line will do.

    `target` tells for each test whether it hit the target, `columns` for each test and each of
    `lines` (of the target's function) whether it hit that line. Every test that hit the target has
    to have hit the line, and at least `enough` tests. Lines that always come before the target
    (`dominators`, nearest first) are preferred: that holds for tests still to come, where
    implication in the data may be chance. Then the rarest, of equally rare ones the last.

    >>> hits = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> implied_by(hits[:, 2], hits, lines=[3, 5, 7], enough=2)
    5
    """
    if columns.shape != (len(target), len(lines)):
        raise ValueError(f"{columns.shape} hits for {len(target)} tests and {len(lines)} lines")
    counts = columns.sum(axis=0)
    fit = (counts >= enough) & columns[target].all(axis=0)
    chosen = {line: int(count) for line, count, ok in zip(lines, counts, fit, strict=True) if ok}
    first = next((line for line in dominators if line in chosen), None)
    return first or min(chosen, key=lambda line: (chosen[line], -line), default=None)


# -------------------------------------------------------------------------------------------------

__all__ = ["NoStandIn", "StandIn", "implied_by", "nearest_with_data"]

DEPTH = 4
"""How many callers of callers are asked."""

HitsOf = Callable[[str, int], int]


@dataclass(frozen=True)
class StandIn:
    """What to aim at instead of a line.

    >>> StandIn((("cart.py", 9),), (), "line 9, which comes before it").places
    (('cart.py', 9),)
    """

    places: tuple[Place, ...]
    """File and line; of several their union is meant: a test that hits any of them."""
    features: tuple[str, ...]
    """Actions of the harness that lead there, where no line on the way has data."""
    how: str
    """For people."""


@dataclass(frozen=True)
class NoStandIn:
    """Why there is nothing to aim at instead."""

    reason: str


def nearest_with_data(
    place: str,
    line: int,
    texts: Mapping[str, str],
    hits_of: HitsOf,
    enough: int,
    harness: str = "",
) -> StandIn | NoStandIn:
    """What leads to a line and was hit by at least `enough` tests.

    `texts` has the current text of each file by the name that `place`, `harness` and the first
    argument of `hits_of` use; `hits_of` tells how many tests hit a line.

    >>> text = "def f(x):\\n    y = x + 1\\n    if y > 9:\\n        return 0\\n    return y\\n"
    >>> hits = {2: 40, 3: 40, 5: 40}
    >>> nearest_with_data("a.py", 4, {"a.py": text}, lambda _, line: hits.get(line, 0), 12).how
    'line 3, which comes before it'
    """
    if place not in texts:
        return NoStandIn(f"the text of {place} is not known")
    return _Search(place, texts, hits_of, enough, harness).from_line(line)


class _Search:
    def __init__(
        self, place: str, texts: Mapping[str, str], hits_of: HitsOf, enough: int, harness: str
    ) -> None:
        self._place = place
        self._texts = texts
        self._hits_of = hits_of
        self._enough = enough
        self._harness = harness
        self._language: Language = language_of(place)
        self._words = Words(place)

    def from_line(self, line: int) -> StandIn | NoStandIn:
        """The nearest stand-in of a line."""
        language, text = self._language, self._texts[self._place]
        why_not = language.why_unreachable(text, line)
        if why_not:
            return NoStandIn(why_not)
        found = self._before(self._place, line)
        after = self._after(line)
        if after and (not found or self._hits_of(*after) < self._hits_of(*found)):
            how = f"line {after[1]}, which follows in the same block"
            return StandIn((after,), (), how)
        if found:
            return StandIn((found,), (), f"line {found[1]}, which comes before it")
        function = language.function_at(text, line)
        if not function:
            return NoStandIn(
                f"line {line} runs when {self._place} is imported, which belongs to no test"
            )
        return self._by_calls(line, function)

    def _by_calls(self, line: int, function: str) -> StandIn | NoStandIn:
        """Callers, then their callers, breadth first."""
        asked = {(self._place, function)}
        callees = [(self._place, function)]
        called = False
        for depth in range(DEPTH):
            calls = [Call(callee, site) for callee in callees for site in self._sites(*callee)]
            called |= bool(calls)
            found = self._among(calls, direct=depth == 0)
            if not found and depth == 0:
                found = self._definition(line, function)
            if found:
                return found
            callers = {(call.site.place, call.site.caller) for call in calls if call.site.caller}
            callees = sorted(callers - asked)
            asked |= callers
        if not called:
            return NoStandIn(
                f"{short(function)}() was not executed by {self._enough} tests, and no call of it "
                "was found (or so many that they tell nothing)"
            )
        return NoStandIn(f"nothing that leads to it was executed by {self._enough} tests or more")

    def _sites(self, place: str, function: str) -> list[CallSite]:
        """The calls of a function, without those in itself: they are no way into it."""
        sites = self._language.call_sites(function, self._texts, place, self._harness)
        inner = f"{function}.<locals>."
        return [
            site
            for site in sites
            if site.place != place or not f"{site.caller}.<locals>.".startswith(inner)
        ]

    def _among(self, calls: Sequence[Call], direct: bool) -> StandIn | None:
        """The calls themselves if any has data, else what comes before each.

        `direct`: they are calls of the function itself, not of a caller.
        """
        known = [call for call in calls if self._has_data(call.site.place, call.site.line)]
        features = tuple(
            dict.fromkeys(
                call.site.feature for call in calls if call.site.feature and call not in known
            )
        )
        if known:
            # Those with a few hits add to the union; those without any would only be named.
            chosen = [call for call in calls if self._hits_of(call.site.place, call.site.line)]
            places = tuple(dict.fromkeys((call.site.place, call.site.line) for call in chosen))
            return StandIn(places, features, self._words.calls(chosen, features, direct))
        if features:
            return StandIn((), features, self._words.actions(features, direct))
        before: dict[Place, Call] = {}
        for call in calls:
            place = self._before(call.site.place, call.site.line)
            if place:
                before.setdefault(place, call)
        if not before:
            return None
        return StandIn(tuple(before), (), self._words.before_calls(before, direct))

    def _definition(self, line: int, function: str) -> StandIn | None:
        """The line that defines a nested function, or what comes before that."""
        for outside in self._language.definitions(self._texts[self._place], line):
            if self._has_data(self._place, outside):
                how = f"line {outside}, which leads to the definition of {short(function)}()"
                return StandIn(((self._place, outside),), (), how)
        return None

    def _before(self, place: str, line: int) -> Place | None:
        """The nearest line of the same function with data that comes before a line."""
        for lines in self._language.dominating(self._texts[place], line):
            best = max(lines, key=lambda one: self._hits_of(place, one))
            if self._has_data(place, best):
                return place, best
        return None

    def _after(self, line: int) -> Place | None:
        """The nearest line with data that is executed whenever a line is, after it."""
        lines = self._language.following(self._texts[self._place], line)
        return next(((self._place, one) for one in lines if self._has_data(self._place, one)), None)

    def _has_data(self, place: str, line: int) -> bool:
        return self._hits_of(place, line) >= self._enough


# -------------------------------------------------------------------------------------------------
# What stands in for a line, in words for people.

Place = tuple[str, int]


class Call(NamedTuple):
    """Who is called, as file and function, and where."""

    callee: tuple[str, str]
    site: CallSite


class Words:
    """Speaks about calls as seen from the file of the target.

    >>> call = Call(("a.py", "Cart.total"), CallSite("a.py", 4, "Shop.pay"))
    >>> Words("a.py").calls([call], (), direct=True)
    'line 4, the call of total() in Shop.pay'
    """

    def __init__(self, place: str) -> None:
        self._place = place

    def calls(self, calls: Sequence[Call], features: Sequence[str], direct: bool) -> str:
        """Calls that were executed, and actions that call beside them."""
        places = dict.fromkeys((call.site.place, call.site.line) for call in calls)
        if len(places) == 1:
            where = self._where(*next(iter(places)))
            how = f"{where}, the call of {_callees(calls)}{_caller(calls[0].site)}"
        else:
            how = f"the calls of {_callees(calls)} in {self._listed(places)}"
        how += "" if direct else f", which {_verb('lead', len(places))} to it"
        return f"{how}; {self.actions(features, direct)}" if features else how

    def actions(self, features: Sequence[str], direct: bool) -> str:
        """Actions of the harness."""
        many = len(features)
        verb = _verb("call", many) if direct else f"{_verb('lead', many)} to"
        names = listed(f"`{name}`" for name in features)
        return f"the action{'s' * (many > 1)} {names} {verb} it"

    def before_calls(self, before: Mapping[Place, Call], direct: bool) -> str:
        """Lines that come before calls."""
        calls = list(before.values())
        if len(before) == 1:
            where = self._where(*next(iter(before)))
            how = f"{where}, which comes before the call of {_callees(calls)}"
            how += _caller(calls[0].site)
        else:
            how = f"{self._listed(before)}, which come before the calls of {_callees(calls)}"
        return how if direct else f"{how}, which {_verb('lead', len(before))} to it"

    def _where(self, place: str, line: int) -> str:
        return f"line {line}" if place == self._place else f"{shown_path(place)}:{line}"

    def _listed(self, places: Iterable[Place]) -> str:
        names = [f"{shown_path(place)}:{line}" for place, line in places]
        return listed(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def short(function: str) -> str:
    """A function's name without what it is defined in.

    >>> short("outer.<locals>.Cart.total"), short("Cart::total")
    ('total', 'total')
    """
    return function.rpartition(".")[2].rpartition("::")[2]


def listed(words: Iterable[str]) -> str:
    """Words as a sentence lists them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _callees(calls: Iterable[Call]) -> str:
    return listed(dict.fromkeys(f"{short(call.callee[1])}()" for call in calls))


def _caller(site: CallSite) -> str:
    return f" in {site.caller.replace('.<locals>', '')}" if site.caller else ""


def _verb(verb: str, many: int) -> str:
    return verb if many > 1 else f"{verb}s"
