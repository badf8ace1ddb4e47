"""The trace of a run: what each thread did, with values and locks, to explain a fault."""

from __future__ import annotations

import reprlib
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from swarmtest.race.loops.tasks import user_frame_of
from swarmtest.race.primitives.frames import is_own, user_frame
from swarmtest.race.primitives.locks import Lock, RLock
from swarmtest.race.primitives.policy import get_ident
from swarmtest.race.weaving.sites import LINE, SITES, Site

if TYPE_CHECKING:
    from swarmtest.race.control.control import ControlPolicy
    from swarmtest.race.control.tasks import ThreadTask

_UNKNOWN = object()
AWAITS = "awaits"
"""The kind of a step at which a task of an event loop stops until what it awaits is there."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One action of a thread, in the order of the run."""

    thread: str
    at: int
    """The number of the thread's own probe."""
    kind: str
    """``read``, ``write``, ``call``; or an operation: ``lock.acquire``, ``queue.get``,
    ``sleep``."""
    variable: str
    """The variable or the object that was used, if it has a name."""
    path: str
    line: int
    function: str
    site: int
    """The number of the site; -1 for synchronisation."""
    before: str
    """The variable's value before the step; empty if it is not known."""
    after: str
    """The value when the thread reached its next probe; empty if it is not known."""
    held: tuple[str, ...]
    """The locks that the thread held, as far as the program has names for them."""


class Tracer:
    """A recorder of the steps of one run. It is slow, because it prints values."""

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._open: dict[ThreadTask, tuple[dict[str, Any], Callable[[], Any]]] = {}
        self._names: dict[int, tuple[str, Any]] = {}
        """The program's name for an object, by its identity, and the object that it is part of."""
        self._alive: list[Any] = []
        """The objects that have names, so that no other gets the identity of one."""
        self._busy = False
        self._control: ControlPolicy | None = None

    def steps(self) -> tuple[TraceStep, ...]:
        """Return the recorded steps."""
        for task in list(self._open):
            self.arrives(task)
        texts = self._texts()
        return tuple(
            TraceStep(
                **{
                    **{name: value for name, value in step.items() if name != "object"},
                    "variable": texts.get(step["object"], step["variable"]),
                    "held": tuple(texts[lock] for lock in step["held"]),
                }
            )
            for step in self._steps
        )

    def _texts(self) -> dict[int, str]:
        """Return the names of locks and the like; different objects get different names.

        Parts of several objects of a class are told apart by numbers: ``Account#1.lock``. Other
        objects with one name are numbered themselves.
        """
        by_name: dict[str, list[int]] = defaultdict(list)
        for number, (name, _) in self._names.items():
            by_name[name].append(number)
        texts: dict[int, str] = {}
        owners: dict[str, list[int]] = defaultdict(list)
        for name, numbers in by_name.items():
            for position, number in enumerate(numbers, 1):
                owner = self._names[number][1]
                if len(numbers) == 1:
                    texts[number] = name
                elif owner is None:
                    texts[number] = f"{name}#{position}"
                else:
                    kind = type(owner).__name__
                    if id(owner) not in owners[kind]:
                        owners[kind].append(id(owner))
                    part = name.partition(".")[2]
                    texts[number] = f"{kind}#{owners[kind].index(id(owner)) + 1}.{part}"
        return texts

    def watching(self, access: Callable[..., Any], control: ControlPolicy) -> Callable[..., Any]:
        """Return a probe that records the access and calls `access`."""
        self._control = control

        def traced(site: int, obj: Any = None) -> Any:
            if self._busy:
                return obj  # printing a value may run probes in its __repr__
            task = control.running
            if get_ident() != task.ident:
                return obj
            self.arrives(task)
            access(site, obj)
            if not control.ended:
                innermost = _innermost(sys._getframe(1))
                frame = innermost if SITES[site].kind == LINE else user_frame(innermost)
                frame = frame or sys._getframe(1)
                self._add_access(task, site, obj, frame, control.count_of(task))
            return obj

        return traced

    def _add_access(
        self, task: ThreadTask, number: int, obj: Any, frame: FrameType, at: int
    ) -> None:
        site = SITES[number]

        def read_value() -> Any:
            return _value(site, obj, frame)

        step = self._add_step(task, site.kind, site.variable, frame, at)
        step["site"] = number
        step["line"] = site.line
        step["before"] = self._printed(read_value)
        self._open[task] = step, read_value

    def operation(self, task: ThreadTask, kind: str, obj: Any, at: int) -> None:
        """Record that a thread uses a lock, a queue, or another thread."""
        frame = user_frame(sys._getframe(1))
        thread = self._thread_name(obj)
        step = self._add_step(task, kind, thread or self._name(obj, frame), frame, at)
        step["object"] = id(obj) if id(obj) in self._names and not thread else 0

    def awaits(self, task: ThreadTask, name: str, loop_task: Any) -> None:
        """Record that a task of an event loop waits, and where."""
        self.arrives(task)
        frame = user_frame_of(loop_task)
        if frame is not None:
            step = self._add_step(task, AWAITS, "", frame, 0)
            step["thread"] = name

    def _add_step(
        self, task: ThreadTask, kind: str, variable: str, frame: FrameType | None, at: int
    ) -> dict[str, Any]:
        for other in [other for other in self._open if other is not task]:
            self.arrives(other)  # it has ended, so its last access is complete
        step = {
            "thread": self._control.actor_name(task) if self._control else task.name,
            "at": at,
            "kind": kind,
            "variable": variable,
            "path": frame.f_code.co_filename if frame else "",
            "line": frame.f_lineno if frame else 0,
            "function": frame.f_code.co_qualname if frame else "",
            "site": -1,
            "before": "",
            "after": "",
            "held": tuple(id(lock) for lock in task.held if self._program_name(lock, frame)),
            "object": 0,
        }
        self._steps.append(step)
        return step

    def arrives(self, task: ThreadTask) -> None:
        """Record the new value of what a thread touched before it came to its next probe."""
        step, read_value = self._open.pop(task, ({}, None))
        if read_value is not None:
            step["after"] = self._printed(read_value)

    def _printed(self, read_value: Callable[[], Any]) -> str:
        self._busy = True
        try:
            current = read_value()
            return "" if current is _UNKNOWN else reprlib.repr(current)
        except BaseException:
            return ""  # the value cannot be printed
        finally:
            self._busy = False

    def _thread_name(self, obj: Any) -> str:
        """Return what a thread is called in the run; empty for anything else."""
        tasks = self._control.tasks if self._control is not None else ()
        return next((task.name for task in tasks if task.thread is obj and obj is not None), "")

    def _name(self, obj: Any, frame: FrameType | None) -> str:
        return self._program_name(obj, frame) or ("" if obj is None else type(obj).__name__.lower())

    def _program_name(self, obj: Any, frame: FrameType | None) -> str:
        """Return the program's own name for an object; locks in the standard library have none."""
        if id(obj) not in self._names and (name := _name_in(frame, obj)[0]):
            self._names[id(obj)] = name, _name_in(frame, obj)[1]
            self._alive.append(obj)
        return self._names.get(id(obj), ("", None))[0]


_MAX_SEARCHED = 100


def _innermost(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not swarmtest's."""
    while is_own(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _value(site: Site, obj: Any, frame: FrameType) -> Any:
    """Return the value of a variable, read without running the program's own code."""
    if site.what == "attribute":
        names = plain_attributes(obj)
        return names.get(site.name, _UNKNOWN) if site.kind != "call" else obj
    if site.what == "subscript":
        return obj
    names = frame.f_globals if site.what == "global" else frame.f_locals
    return names.get(site.name, _UNKNOWN)


def plain_attributes(obj: Any) -> Mapping[str, Any]:
    """Return the attributes that an object itself has, without running code of its class.

    A class may have a property in the place of `__dict__`, which loads what is not loaded yet.

    >>> class Lazy:
    ...     __dict__ = property(lambda self: print("loads"))
    >>> plain_attributes(Lazy())
    {}
    """
    for owner in type(obj).__mro__:
        found = vars(owner).get("__dict__")
        if isinstance(found, GetSetDescriptorType | MemberDescriptorType):
            names = found.__get__(obj)
            return names if isinstance(names, dict | MappingProxyType) else {}
    return {}


def _name_in(frame: FrameType | None, obj: Any) -> tuple[str, Any]:
    """Return the name under which a function knows an object, or its lock, and whose part it is.

    Names of the module come first, because two locks may be the same parameter in two threads.
    """
    while frame is not None:
        own = list(frame.f_locals.items())
        for name, value in (*list(frame.f_globals.items()), *own):
            if _is_same(value, obj) and not name.startswith("__"):
                return name, None
        for name, value in own:
            for attribute, part in list(plain_attributes(value).items()):
                if _is_same(part, obj):
                    return f"{name}.{attribute}", value
                if (at := _key_in(part, obj)) is not None:
                    return f"{name}.{attribute}[{at!r}]", value
            if (at := _key_in(value, obj)) is not None:
                return f"{name}[{at!r}]", None
        frame = user_frame(frame.f_back)
    return "", None


def _key_in(value: Any, obj: Any) -> Any:
    """Return the index or key of an object in a small list or dictionary, or None."""
    if type(value) not in (list, tuple, dict) or len(value) > _MAX_SEARCHED:
        return None
    items = value.items() if type(value) is dict else enumerate(value)
    return next((at for at, part in list(items) if _is_same(part, obj)), None)


def _is_same(value: Any, obj: Any) -> bool:
    if value is obj:
        return True
    if not isinstance(obj, Lock):
        return False
    if isinstance(value, RLock):
        return value.block is obj
    return isinstance(value, threading.Condition) and value.__dict__.get("_lock") is obj
