"""Find code to aim at instead of a line that has too few hits: the nearest code that leads to it.

Candidates, in this order: a line that follows in the same block, if it is hit less often than what
comes before; the lines of the same function that always run before the line, the nearest first;
the calls of the function (one of them runs before it, so their union is meant), or the lines
before those calls; for a nested function, the line that defines it; then the calls of the callers,
and so on. An action of the harness that calls the function is a feature and is used as such.
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

__all__ = ["NoProxy", "Proxy", "implied_by", "nearest_with_data"]

Hit = npt.NDArray[np.bool_]
Place = tuple[str, int]
HitsOf = Callable[[str, int], int]

DEPTH = 4
"""How many levels of callers are searched."""


@dataclass(frozen=True)
class Proxy:
    """What to aim at instead of a line.

    >>> Proxy((("cart.py", 9),), (), "line 9, which comes before it").places
    (('cart.py', 9),)
    """

    places: tuple[Place, ...]
    """Files and lines; several mean their union: a test that hits any of them."""
    features: tuple[str, ...]
    """Actions of the harness that lead there, if no line on the way has data."""
    how: str
    """The description shown to users."""


@dataclass(frozen=True)
class NoProxy:
    """The reason why there is nothing to aim at instead."""

    reason: str


def nearest_with_data(
    place: str,
    line: int,
    texts: Mapping[str, str],
    hits_of: HitsOf,
    enough: int,
    harness: str = "",
) -> Proxy | NoProxy:
    """Return what leads to a line and was hit by at least `enough` tests.

    `texts` has the current text of each file, by the same names as `place`, `harness` and the first
    argument of `hits_of`; `hits_of` returns how many tests hit a line.

    >>> text = "def f(x):\\n    y = x + 1\\n    if y > 9:\\n        return 0\\n    return y\\n"
    >>> hits = {2: 40, 3: 40, 5: 40}
    >>> nearest_with_data("a.py", 4, {"a.py": text}, lambda _, line: hits.get(line, 0), 12).how
    'line 3, which comes before it'
    """
    if place not in texts:
        return NoProxy(f"the text of {place} is not known")
    return _ProxySearch(place, texts, hits_of, enough, harness).from_line(line)


class _ProxySearch:
    """The search for a proxy of a line in one file."""

    def __init__(
        self, place: str, texts: Mapping[str, str], hits_of: HitsOf, enough: int, harness: str
    ) -> None:
        self._place = place
        self._texts = texts
        self._hits_of = hits_of
        self._enough = enough
        self._harness = harness
        self._language: Language = language_of(place)
        self._words = CallDescriptions(place)

    def from_line(self, line: int) -> Proxy | NoProxy:
        """Return the nearest proxy of a line."""
        language, text = self._language, self._texts[self._place]
        why_not = language.why_unreachable(text, line)
        if why_not:
            return NoProxy(why_not)
        before = self._before(self._place, line)
        after = self._after(line)
        if after and (not before or self._hits_of(*after) < self._hits_of(*before)):
            how = f"line {after[1]}, which follows in the same block"
            return Proxy((after,), (), how)
        if before:
            return Proxy((before,), (), f"line {before[1]}, which comes before it")
        function = language.function_at(text, line)
        if not function:
            return NoProxy(
                f"line {line} runs when {self._place} is imported, which belongs to no test"
            )
        return self._by_calls(line, function)

    def _by_calls(self, line: int, function: str) -> Proxy | NoProxy:
        """Search the callers, then their callers, breadth first."""
        visited = {(self._place, function)}
        callees = [(self._place, function)]
        any_call = False
        for depth in range(DEPTH):
            calls = [
                LocatedCall(callee, site) for callee in callees for site in self._sites(*callee)
            ]
            any_call |= bool(calls)
            proxy = self._among(calls, direct=depth == 0)
            if not proxy and depth == 0:
                proxy = self._definition(line, function)
            if proxy:
                return proxy
            callers = {(call.site.place, call.site.caller) for call in calls if call.site.caller}
            callees = sorted(callers - visited)
            visited |= callers
        if not any_call:
            return NoProxy(
                f"{short_name(function)}() was not executed by {self._enough} tests, and no call "
                "of it was found (or too many to be useful)"
            )
        return NoProxy(f"nothing that leads to it was executed by {self._enough} tests or more")

    def _sites(self, place: str, function: str) -> list[CallSite]:
        """Return the calls of a function, except recursive ones, which do not lead into it."""
        sites = self._language.call_sites(function, self._texts, place, self._harness)
        inner = f"{function}.<locals>."
        return [
            site
            for site in sites
            if site.place != place or not f"{site.caller}.<locals>.".startswith(inner)
        ]

    def _among(self, calls: Sequence[LocatedCall], direct: bool) -> Proxy | None:
        """Return the calls themselves if any has data, else what comes before each.

        `direct` says that these are calls of the function itself, not of a caller.
        """
        with_data = [call for call in calls if self._has_data(call.site.place, call.site.line)]
        features = tuple(
            dict.fromkeys(
                call.site.feature for call in calls if call.site.feature and call not in with_data
            )
        )
        if with_data:
            # Calls with few hits add to the union; calls without any would only lengthen the text.
            chosen = [call for call in calls if self._hits_of(call.site.place, call.site.line)]
            places = tuple(dict.fromkeys((call.site.place, call.site.line) for call in chosen))
            return Proxy(places, features, self._words.calls(chosen, features, direct))
        if features:
            return Proxy((), features, self._words.actions(features, direct))
        before: dict[Place, LocatedCall] = {}
        for call in calls:
            place = self._before(call.site.place, call.site.line)
            if place:
                before.setdefault(place, call)
        if not before:
            return None
        return Proxy(tuple(before), (), self._words.before_calls(before, direct))

    def _definition(self, line: int, function: str) -> Proxy | None:
        """Return the line that defines a nested function, or what comes before that line."""
        for outside in self._language.definitions(self._texts[self._place], line):
            if self._has_data(self._place, outside):
                how = f"line {outside}, which leads to the definition of {short_name(function)}()"
                return Proxy(((self._place, outside),), (), how)
        return None

    def _before(self, place: str, line: int) -> Place | None:
        """Return the nearest line with data that comes before a line in the same function."""
        for lines in self._language.dominating(self._texts[place], line):
            best = max(lines, key=lambda number: self._hits_of(place, number))
            if self._has_data(place, best):
                return place, best
        return None

    def _after(self, line: int) -> Place | None:
        """Return the nearest line with data that always runs after a line."""
        lines = self._language.following(self._texts[self._place], line)
        return next(
            ((self._place, number) for number in lines if self._has_data(self._place, number)), None
        )

    def _has_data(self, place: str, line: int) -> bool:
        return self._hits_of(place, line) >= self._enough


def implied_by(
    target: Hit, columns: Hit, lines: Sequence[int], enough: int, dominators: Sequence[int] = ()
) -> int | None:
    """Return the line to aim at instead of a target that few tests hit; None if no line will do.

    `target` says for each test whether it hit the target; `columns` says for each test and each of
    `lines` (of the target's function) whether it hit that line. A line qualifies if every test that
    hit the target also hit it, and at least `enough` tests did. Lines that always come before the
    target (`dominators`, nearest first) are preferred, because that holds for future tests too,
    while implication in the data may be chance. Otherwise the rarest line is chosen, and of equally
    rare ones the last.

    >>> hits = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> implied_by(hits[:, 2], hits, lines=[3, 5, 7], enough=2)
    5
    """
    if columns.shape != (len(target), len(lines)):
        raise ValueError(f"{columns.shape} hits for {len(target)} tests and {len(lines)} lines")
    counts = columns.sum(axis=0)
    fit = (counts >= enough) & columns[target].all(axis=0)
    candidates = {
        line: int(count) for line, count, ok in zip(lines, counts, fit, strict=True) if ok
    }
    first = next((line for line in dominators if line in candidates), None)
    return first or min(candidates, key=lambda line: (candidates[line], -line), default=None)


# Describing proxies in words.


class LocatedCall(NamedTuple):
    """A call: the file and function that is called, and where."""

    callee: tuple[str, str]
    site: CallSite


class CallDescriptions:
    """Describes calls as seen from the file of the target.

    >>> call = LocatedCall(("a.py", "Cart.total"), CallSite("a.py", 4, "Shop.pay"))
    >>> CallDescriptions("a.py").calls([call], (), direct=True)
    'line 4, the call of total() in Shop.pay'
    """

    def __init__(self, place: str) -> None:
        self._place = place

    def calls(self, calls: Sequence[LocatedCall], features: Sequence[str], direct: bool) -> str:
        """Describe calls that were executed, and harness actions that also call."""
        places = dict.fromkeys((call.site.place, call.site.line) for call in calls)
        if len(places) == 1:
            where = self._where(*next(iter(places)))
            how = f"{where}, the call of {_callees(calls)}{_caller(calls[0].site)}"
        else:
            how = f"the calls of {_callees(calls)} in {self._listed(places)}"
        how += "" if direct else f", which {_verb('lead', len(places))} to it"
        return f"{how}; {self.actions(features, direct)}" if features else how

    def actions(self, features: Sequence[str], direct: bool) -> str:
        """Describe actions of the harness."""
        many = len(features)
        verb = _verb("call", many) if direct else f"{_verb('lead', many)} to"
        names = join_words(f"`{name}`" for name in features)
        return f"the action{'s' * (many > 1)} {names} {verb} it"

    def before_calls(self, before: Mapping[Place, LocatedCall], direct: bool) -> str:
        """Describe lines that come before calls."""
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
        return join_words(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def short_name(function: str) -> str:
    """Return a function's name without the classes and functions around it.

    >>> short_name("outer.<locals>.Cart.total"), short_name("Cart::total")
    ('total', 'total')
    """
    return function.rpartition(".")[2].rpartition("::")[2]


def join_words(words: Iterable[str]) -> str:
    """Join words with commas and a final "and".

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _callees(calls: Iterable[LocatedCall]) -> str:
    return join_words(dict.fromkeys(f"{short_name(call.callee[1])}()" for call in calls))


def _caller(site: CallSite) -> str:
    return f" in {site.caller.replace('.<locals>', '')}" if site.caller else ""


def _verb(verb: str, many: int) -> str:
    return verb if many > 1 else f"{verb}s"
