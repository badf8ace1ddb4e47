"""Find the variables that the threads of a run share.

A variable is a part of an object: (object, attribute), (object, its contents), or a name of a
module. It is shared if two threads touch it and one of them writes. Accesses of the thread that
constructs an object do not count until that thread synchronises, because no other thread can know
the object before. Accesses of the first thread do not count before there is another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.primitives.locks import SYNCHRONISERS
from swarmtest.race.primitives.policy import get_ident
from swarmtest.race.weaving.accesses import FUNCTION, GENERATOR, MODULE
from swarmtest.race.weaving.sites import LINE, SITES, Site

CONTENTS = "[]"
_IMMUTABLE_TYPES = (
    *(str, bytes, int, float, complex, tuple, frozenset, range, type(None), type, slice),
    *(FunctionType, BuiltinFunctionType, ModuleType),
)


class Variable:
    """One variable, and the threads that have touched it."""

    __slots__ = ("builder", "epoch", "label", "sites", "threads", "written")

    def __init__(self, label: str, builder: int | None, epoch: int) -> None:
        self.label = label
        """Its name for people, with its file: ``shop.py:Flight.left``."""
        self.builder = builder
        """The thread that created it; None if that is not known."""
        self.epoch = epoch
        """How many times that thread had synchronised by then."""
        self.threads: set[int] = set()
        self.sites: set[int] = set()
        self.written = False

    @property
    def is_shared(self) -> bool:
        """Whether two threads touched it and one of them wrote."""
        return self.written and len(self.threads) > 1


class Sharing:
    """A record of which thread touches which variable in a run.

    It keeps the objects alive until the run is over, so that no id is used for two of them.
    """

    def __init__(self) -> None:
        self.variables: dict[tuple[Any, str], Variable] = {}
        self.passed: set[int] = set()
        """All sites that threads of the run reached."""
        self._objects: dict[int, Any] = {}
        self._threads: dict[int, list[int]] = {}
        """For each thread, a number of its own and how many times it has synchronised. Python
        reuses the identity of a thread that has ended."""
        self._began = 0

    def began(self, ident: int) -> None:
        """Note that a thread begins."""
        self._began += 1
        self._threads[ident] = [self._began, 0]

    def synchronises(self) -> None:
        """Note that this thread synchronises: others may know what it has built so far."""
        thread = self._threads.get(get_ident())
        if thread is not None:
            thread[1] += 1

    def touches(self, site: int, obj: Any) -> None:
        """Note that this thread is about to read or write."""
        accessed = SITES[site]
        kind, name = accessed.kind, accessed.name
        if kind == LINE or accessed.what == FUNCTION:
            return
        if accessed.what in ("global", "closure"):
            key: tuple[Any, str] = (accessed.path, name)
        elif accessed.what == MODULE:
            key, kind = (MODULE, name), "write"
        elif accessed.what == GENERATOR:
            key, kind = (_frame_at(accessed), name), "write"
        else:
            if kind == "call":
                effect = _effect_of_call(obj, name)
                if not effect:
                    return
                kind, name = effect
            elif accessed.what == "subscript":
                name = CONTENTS
            key = (id(obj), name)
        thread = self._threads.get(get_ident())
        if thread is None:
            return  # the thread does not belong to the run
        self.passed.add(site)
        variable = self.variables.get(key)
        if variable is None:
            variable = self._add_variable(key, accessed, obj, thread)
        if variable.builder == thread[0] and variable.epoch == thread[1]:
            return
        variable.threads.add(thread[0])
        variable.sites.add(site)
        if kind == "write":
            variable.written = True

    def _add_variable(
        self, key: tuple[Any, str], accessed: Site, obj: Any, thread: list[int]
    ) -> Variable:
        if accessed.what in ("attribute", "subscript"):
            self._objects[id(obj)] = obj
        # Lists and modules are created without a probe, so the first thread seen may not have
        # created them.
        makes = accessed.kind == "write" and accessed.what == "attribute"
        builder = thread[0] if makes or self._began == 1 else None
        variable = Variable(_label(accessed, obj, key[1]), builder, thread[1])
        return self.variables.setdefault(key, variable)

    def shared(self) -> list[Variable]:
        """Return the variables that threads share."""
        return [variable for variable in self.variables.values() if variable.is_shared]

    def watching(self, access: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return a probe that records the access and then calls the inner probe, if any."""
        touches = self.touches

        def noting(site: int, obj: Any = None) -> Any:
            touches(site, obj)
            return obj if access is None else access(site, obj)

        return noting


def _frame_at(accessed: Site) -> int:
    """Return the identity of the frame that is at a site: that of one generator, not of all."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_lineno != accessed.line:
        frame = frame.f_back
    return id(frame)


def _effect_of_call(obj: Any, name: str) -> tuple[str, str] | None:
    """Return what a method call touches; None for Python methods, which have own probes."""
    method = getattr(type(obj), name, None)
    if method is None:
        return "read", name  # the attribute is a function stored in the object
    if isinstance(method, FunctionType) or isinstance(obj, (*_IMMUTABLE_TYPES, *SYNCHRONISERS)):
        return None
    return "write", CONTENTS


def _label(accessed: Site, obj: Any, name: str) -> str:
    if accessed.what == "attribute" and name != CONTENTS:
        return f"{accessed.path}:{type(obj).__qualname__}.{name}"
    text = accessed.variable
    if accessed.kind == "call":
        text = text.rpartition(".")[0] + CONTENTS
    return f"{accessed.path}:{text}"


class AccessRecording(FreePolicy):
    """The policy of a profiling run; one to three runs show where threads can meet at all.

    >>> from swarmtest.race.free.runner import free_run
    >>> recording = AccessRecording()
    >>> _ = free_run(lambda: None, recording)
    >>> recording.shared()
    []
    """

    watches_loops = True

    def __init__(self) -> None:
        super().__init__()
        self._sharing = Sharing()
        self.touches = self._sharing.touches

    def begins(self, task: ThreadTask) -> None:
        """Note that a thread begins."""
        self._sharing.began(task.ident)

    def before(self, kind: str) -> None:
        """Note that a thread synchronises: others may know what it has built from now on."""
        self._sharing.synchronises()

    def access(self, site: int, obj: Any = None) -> Any:
        """Note that a thread touches a variable."""
        self.touches(site, obj)
        return obj

    @property
    def passed(self) -> set[int]:
        """All sites that threads of the run reached."""
        return self._sharing.passed

    def shared(self) -> list[Variable]:
        """Return the variables that threads share."""
        return self._sharing.shared()


def shared_sites(recordings: Iterable[AccessRecording]) -> frozenset[int]:
    """Return the sites at which shared variables are touched, in any of the recordings.

    A site that no recording reached counts if it touches a variable of the same name. Pass the
    result to `Noise(shared=...)` or to `controlled_run(sites=...)`.
    """
    recordings = list(recordings)
    shared = {
        site
        for recording in recordings
        for variable in recording.shared()
        for site in variable.sites
    }
    passed = set().union(*(recording.passed for recording in recordings))
    names = {_variable_key(site) for site in shared}
    unknown = (site for site in range(len(SITES)) if site not in passed)
    return frozenset(shared).union(site for site in unknown if _variable_key(site) in names)


def _variable_key(site: int) -> tuple[str, str, str]:
    accessed = SITES[site]
    name = accessed.name if accessed.kind != "call" else accessed.variable
    return accessed.path, accessed.what, name or accessed.variable
