"""Which variables the threads of a run share.

A variable is a part of an object: (object, attribute), (object, its contents), or a name of a
module. It is shared when two threads touch it and one of them writes. The thread that constructs an
object does not count until it synchronises: before that, no other thread can know of the object.
Nor does what the first thread does before there is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from swarmtest.race.control.tasks import Task
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.primitives.locks import SYNCHRONISERS
from swarmtest.race.primitives.originals import get_ident
from swarmtest.race.weaving.sites import LINE, SITES, Site

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
        self.passed: set[int] = set()
        """All sites that threads of the run came to."""
        self._objects: dict[int, Any] = {}
        self._threads: dict[int, list[int]] = {}
        """Of each thread: a number of its own, and how often it has synchronised. Python gives the
        identity of a thread that has ended to the next one."""
        self._began = 0

    def began(self, ident: int) -> None:
        """A thread begins."""
        self._began += 1
        self._threads[ident] = [self._began, 0]

    def synchronises(self) -> None:
        """This thread synchronises: what it has made so far others may know."""
        thread = self._threads.get(get_ident())
        if thread is not None:
            thread[1] += 1

    def touches(self, site: int, obj: Any) -> None:
        """This thread is about to read or write."""
        place = SITES[site]
        kind, name = place.kind, place.name
        if kind == LINE:
            return
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
        thread = self._threads.get(get_ident())
        if thread is None:
            return  # not one of the run
        self.passed.add(site)
        variable = self.variables.get(key)
        if variable is None:
            variable = self._new(key, place, obj, thread)
        if variable.builder == thread[0] and variable.epoch == thread[1]:
            return
        variable.threads.add(thread[0])
        variable.sites.add(site)
        if kind == "write":
            variable.written = True

    def _new(self, key: tuple[Any, str], place: Site, obj: Any, thread: list[int]) -> Variable:
        if place.what in ("attribute", "subscript"):
            self._objects[id(obj)] = obj
        # Lists and modules are made without a probe: who comes first need not have made them.
        makes = place.kind == "write" and place.what == "attribute"
        builder = thread[0] if makes or self._began == 1 else None
        made = Variable(_label(place, obj, key[1]), builder, thread[1])
        return self.variables.setdefault(key, made)

    def shared(self) -> list[Variable]:
        """The variables that threads share."""
        return [variable for variable in self.variables.values() if variable.is_shared]

    def watching(self, access: Callable[..., Any] | None) -> Callable[..., Any]:
        """A probe that notes, then does what another does, if there is one."""
        touches = self.touches

        def noting(site: int, obj: Any = None) -> Any:
            touches(site, obj)
            return obj if access is None else access(site, obj)

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


# -------------------------------------------------------------------------------------------------
# Recording: which variables the threads of a run share, and where they touch them.


class Recording(FreePolicy):
    """The policy of a profiling run: one to three of them tell where threads can meet at all.

    >>> from swarmtest.race.free.runner import free_run
    >>> recording = Recording()
    >>> _ = free_run(lambda: None, recording)
    >>> recording.shared()
    []
    """

    def __init__(self) -> None:
        super().__init__()
        self._sharing = Sharing()
        self.touches = self._sharing.touches

    def begins(self, task: Task) -> None:
        """A thread begins."""
        self._sharing.began(task.ident)

    def before(self, kind: str) -> None:
        """A thread synchronises: what it has made is known to others from now on."""
        self._sharing.synchronises()

    def access(self, site: int, obj: Any = None) -> Any:
        """A thread touches a variable."""
        self.touches(site, obj)
        return obj

    @property
    def passed(self) -> set[int]:
        """All sites that threads of the run came to."""
        return self._sharing.passed

    def shared(self) -> list[Variable]:
        """The variables that threads share."""
        return self._sharing.shared()


def shared_sites(recordings: Iterable[Recording]) -> frozenset[int]:
    """The sites at which variables are touched that threads share, by any of the recordings.

    A site that no recording came to counts if it touches a variable of the same name. Hand them to
    `Noise(shared=...)` or to `controlled_run(sites=...)`.
    """
    recordings = list(recordings)
    found = {site for each in recordings for one in each.shared() for site in one.sites}
    passed = set().union(*(each.passed for each in recordings))
    names = {_variable(site) for site in found}
    unknown = (site for site in range(len(SITES)) if site not in passed)
    return frozenset(found).union(site for site in unknown if _variable(site) in names)


def _variable(site: int) -> tuple[str, str, str]:
    place = SITES[site]
    name = place.name if place.kind != "call" else place.variable
    return place.path, place.what, name or place.variable
