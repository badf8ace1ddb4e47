"""Faults of tasks that wait forever: a deadlock of asyncio's locks, or a wake-up that is lost."""

from __future__ import annotations

import asyncio
import linecache
from typing import Any

from swarmtest.core.result import Fault
from swarmtest.race.loops.tasks import actor_of, frames_of, user_frame_of

OWNER = "_owner_in_run"
"""Where a lock of asyncio remembers the task that holds it."""


def fault_of_stuck_tasks(loop: Any) -> Fault | None:
    """Return the fault of a loop in which no task can continue; None if none is left."""
    tasks = [task for task in asyncio.all_tasks(loop) if actor_of(task) is not None]
    tasks.sort(key=lambda task: name_of(task))
    if not tasks:
        return None
    cycle = _cycle(tasks)
    kind = "deadlock" if cycle else "lost wake-up"
    culprits = cycle or [task for task in tasks if not _waited_tasks(task)] or tasks
    locations = sorted({location_of(task) for task in culprits})
    details = "\n".join(_description(task) for task in tasks)
    return Fault(kind, f"{kind}: {' | '.join(locations)}", details)


def name_of(task: Any) -> str:
    """Return what a task is called in the run."""
    actor = actor_of(task)
    return actor.name if actor is not None else str(task.get_name())


def location_of(task: Any) -> str:
    """Return where a task waits, without a line number."""
    frame = user_frame_of(task)
    if frame is None:
        return str(getattr(task.get_coro(), "__qualname__", "a task"))
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_qualname}: {source}" if source else frame.f_code.co_qualname


def _cycle(tasks: list[Any]) -> list[Any]:
    """Return tasks that wait for each other in a cycle, or for one that ended with the lock."""
    for first in tasks:
        chain: list[Any] = []
        task: Any = first
        while task is not None and task not in chain:
            chain.append(task)
            following = _waits_for(task)
            if following is not None and following.done():
                return chain
            task = following
        if task is not None:
            return chain[chain.index(task) :]
    return []


def _waits_for(task: Any) -> Any:
    lock = _waited_lock(task)
    if lock is not None:
        return getattr(lock, OWNER, None)
    waited = _waited_tasks(task)
    return waited[0] if len(waited) == 1 else None


def _waited_lock(task: Any) -> asyncio.Lock | None:
    """Return the lock that a task waits for."""
    for frame in reversed(frames_of(task)):
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name == "acquire" and isinstance(owner, asyncio.Lock):
            return owner
    return None


def _waited_tasks(task: Any) -> list[Any]:
    """Return the tasks that a task waits for."""
    waiter = getattr(task, "_fut_waiter", None)
    parts = getattr(waiter, "_children", None) or [waiter]
    return [part for part in parts if isinstance(part, asyncio.Task) and not part.done()]


def _description(task: Any) -> str:
    frame = user_frame_of(task)
    at = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
    lock, waited = _waited_lock(task), _waited_tasks(task)
    if lock is not None:
        holder = getattr(lock, OWNER, None)
        ended = " and has ended" if holder is not None and holder.done() else ""
        held = "it holds itself" if holder is task else ""
        held = held or (f"{name_of(holder)} holds{ended}" if holder is not None else "nobody frees")
        what = f"waits for a lock that {held}"
    elif waited:
        what = f"waits for {', '.join(sorted(name_of(one) for one in waited))}"
    else:
        what = "waits for something that nobody will do"
    return f"{name_of(task)} {what}{at} ({location_of(task)})"
