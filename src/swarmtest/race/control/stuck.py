"""Threads that are stuck: a deadlock, or a wake-up that will not come."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import FrameType

from swarmtest.core.result import Fault
from swarmtest.race.control.tasks import Task
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.locks import Lock

END = object()
"""What main waits for when its function has returned: the threads that outlive it."""
CLOCK = object()
"""What a thread waits for that sleeps."""


def fault_of_stuck(tasks: Sequence[Task]) -> Fault | None:
    """The fault of a run in which no thread is able to go on; None if that is how it should end.

    Threads that Python would not wait for when the program ends may wait for ever.
    """
    stuck = [task for task in tasks if not task.done]
    if stuck and stuck[0].waiting is END and all(_is_idle(task) for task in stuck[1:]):
        return None
    cycle = _cycle(stuck)
    if cycle:
        kind, culprits = "deadlock", cycle
    else:
        kind = "lost wake-up"
        culprits = [t for t in stuck if t.waiting is not END and not isinstance(t.waiting, Task)]
        culprits = [t for t in culprits if not _is_idle(t)] or culprits or stuck
    frames = sys._current_frames()
    places = sorted({_place(task, frames) for task in culprits})
    details = "\n".join(_told(task, frames) for task in stuck if task.waiting is not END)
    frames.clear()  # the frame of this function is among them
    return Fault(kind, f"{kind}: {' | '.join(places)}", details)


def livelock(most_probes: int, tasks: Sequence[Task]) -> Fault:
    """The fault of a run that goes on and on."""
    alive = ", ".join(task.name for task in tasks if not task.done)
    return Fault(
        "livelock",
        f"livelock: the run did not end within {most_probes:,} probes",
        f"still running: {alive}; `most_probes` says how many are enough",
    )


def _is_idle(task: Task) -> bool:
    """Whether a program ends although this thread waits: a daemon, a worker of a pool."""
    if task.daemon:
        return True
    pools = sys.modules.get("concurrent.futures.thread")
    return pools is not None and task.thread in pools._threads_queues


def _is_over(task: Task) -> bool:
    return task.done or task.waiting is END


def _cycle(stuck: Sequence[Task]) -> list[Task]:
    """Threads of which each waits for the next, and the last for the first."""
    for first in stuck:
        chain: list[Task] = []
        task: Task | None = first
        while task is not None and task not in chain:
            chain.append(task)
            task = _waits_for(task)
            if task is not None and _is_over(task):
                return chain  # it ended with the lock in its hands
        if task is not None:
            return chain[chain.index(task) :]
    return []


def _waits_for(task: Task) -> Task | None:
    waiting = task.waiting
    if isinstance(waiting, Task):
        return waiting
    if isinstance(waiting, Lock):
        # A condition that waits holds a lock of its own twice: that is no deadlock.
        takes = task.doing in ("lock.acquire", "condition.acquire")
        return waiting.owner if takes or waiting.owner is not task else None
    return None


def _place(task: Task, frames: dict[int, FrameType]) -> str:
    """Where a thread waits, without its line number: an edit above does not make a new fault."""
    frame = user_frame(frames.get(task.ident))
    if frame is None:
        return task.doing
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_qualname}: {source}" if source else frame.f_code.co_qualname


def _told(task: Task, frames: dict[int, FrameType]) -> str:
    frame = user_frame(frames.get(task.ident))
    at = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    waiting = task.waiting
    if isinstance(waiting, Task):
        what = f"waits for the end of {waiting.name}"
    elif isinstance(waiting, Lock) and _waits_for(task) is not None:
        holder = waiting.owner
        assert holder is not None
        held = "it holds itself" if holder is task else f"{holder.name} holds"
        what = f"waits for a lock that {held}{' and has ended' if _is_over(holder) else ''}"
    else:
        what = f"waits in {task.doing or 'a lock'} for something that nobody will do"
    return f"{task.name} {what}{at} ({_place(task, frames)})"
