"""A line without data is aimed at through what leads to it: the nearest place with data.

In this order: a line that follows in the same block, if it is hit less often than what comes
before; the lines of its own function that are always executed before it, the nearest first; the
calls of its function (one of them is executed before it, so their union is meant), or the lines
before those calls; for a nested function the line that defines it; then the calls of the callers,
and so on. An action of the harness that calls it is a feature, and stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.focus.callers import CallSite
from swarmtest.focus.implication import implied_by
from swarmtest.focus.languages import Language, language_of
from swarmtest.focus.stand_in_words import Call, Place, Words, short

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
