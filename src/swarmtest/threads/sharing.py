"""Which variables the threads of a run share.

A variable is a part of an object: (object, attribute), (object, its contents), or a name of a
module. It is shared when two threads touch it and one of them writes. The thread that constructs an
object does not count until it synchronises: before that, no other thread can know of the object.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from swarmtest.threads.operations import SYNCHRONISERS
from swarmtest.threads.raw import get_ident
from swarmtest.threads.sites import SITES, Site

CONTENTS = "[]"
_NEVER_CHANGE = (
    *(str, bytes, int, float, complex, tuple, frozenset, range, type(None), type, slice),
    *(FunctionType, BuiltinFunctionType, ModuleType),
)


class Variable:
    """One variable, and who has touched it."""

    __slots__ = ("builder", "epoch", "label", "sites", "threads", "written")

    def __init__(self, label: str, builder: int | None, epoch: int) -> None:
        self.label = label
        """As a person would name it, with its file: ``shop.py:Flight.left``."""
        self.builder = builder
        """The thread that made it; None if that is not known."""
        self.epoch = epoch
        """How often that thread had synchronised by then."""
        self.threads: set[int] = set()
        self.sites: set[int] = set()
        self.written = False

    @property
    def is_shared(self) -> bool:
        """Whether two threads touched it, and one wrote."""
        return self.written and len(self.threads) > 1


class Sharing:
    """Notes who touches what; objects live on until the run is over, so that none is mistaken."""

    def __init__(self) -> None:
        self.variables: dict[tuple[Any, str], Variable] = {}
        self._objects: dict[int, Any] = {}
        self._epochs: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def began(self, ident: int) -> None:
        """A thread begins; a number that another thread had is not it."""
        self._numbers[ident] = len(self._numbers) + 1_000_000 * len(self._epochs)
        self._epochs[ident] = 0

    def synchronises(self) -> None:
        """This thread synchronises: what it has made so far others may know."""
        ident = get_ident()
        self._epochs[ident] = self._epochs.get(ident, 0) + 1

    def touches(self, site: int, obj: Any) -> None:
        """This thread is about to read or write."""
        place = SITES[site]
        kind, name = place.kind, place.name
        if place.what in ("global", "closure"):
            key: tuple[Any, str] = (place.path, name)
        else:
            if kind == "call":
                found = _called(obj, name)
                if not found:
                    return
                kind, name = found
            elif place.what == "subscript":
                name = CONTENTS
            key = (id(obj), name)
        ident = get_ident()
        variable = self.variables.get(key)
        if variable is None:
            variable = self._new(key, kind, place, obj, ident)
        if variable.builder == ident and variable.epoch == self._epochs.get(ident, 0):
            return
        variable.threads.add(ident)
        variable.sites.add(site)
        if kind == "write":
            variable.written = True

    def _new(
        self, key: tuple[Any, str], kind: str, place: Site, obj: Any, ident: int
    ) -> Variable:
        is_part = place.what in ("attribute", "subscript")
        if is_part:
            self._objects[id(obj)] = obj
        builder = ident if kind == "write" and is_part else None
        label = _label(place, obj, key[1])
        made = Variable(label, builder, self._epochs.get(ident, 0))
        return self.variables.setdefault(key, made)

    def shared(self) -> list[Variable]:
        """The variables that threads share."""
        return [variable for variable in self.variables.values() if variable.is_shared]

    def watching(self, access: Callable[..., Any]) -> Callable[..., Any]:
        """A probe that notes, then does what another does."""
        touches = self.touches

        def noting(site: int, obj: Any = None) -> Any:
            touches(site, obj)
            return access(site, obj)

        return noting


def _called(obj: Any, name: str) -> tuple[str, str] | None:
    """What a call of a method touches: a method in Python has probes of its own."""
    method = getattr(type(obj), name, None)
    if method is None:
        return "read", name  # a function that the object holds
    if isinstance(method, FunctionType) or isinstance(obj, (*_NEVER_CHANGE, *SYNCHRONISERS)):
        return None
    return "write", CONTENTS


def _label(place: Site, obj: Any, name: str) -> str:
    if place.what == "attribute" and name != CONTENTS:
        return f"{place.path}:{type(obj).__qualname__}.{name}"
    text = place.variable
    if place.kind == "call":
        text = text.rpartition(".")[0] + CONTENTS
    return f"{place.path}:{text}"
