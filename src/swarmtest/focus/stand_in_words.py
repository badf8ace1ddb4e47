"""What stands in for a line, in words for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from swarmtest.focus.callers import CallSite
from swarmtest.instrument.scope import shown_path

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
