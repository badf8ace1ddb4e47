"""Faults of threads that are stuck: a deadlock, an exhausted pool, a lost wake-up, a livelock."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import FrameType

from swarmtest.core.result import Fault
from swarmtest.race.control.io_waits import IoWait
from swarmtest.race.control.tasks import SynchronisationLog, ThreadTask
from swarmtest.race.primitives.frames import is_library, is_own, user_frame
from swarmtest.race.primitives.locks import Lock

END = object()
"""What the main thread waits for after its function has returned: the threads that outlive it."""
CLOCK = object()
"""What a sleeping thread waits for."""


def fault_of_stuck(tasks: Sequence[ThreadTask], log: SynchronisationLog) -> Fault | None:
    """Return the fault of a run in which no thread is able to continue.

    Return None if the program would end this way: Python does not wait for daemon threads and idle
    pool workers at exit, so these may wait forever.
    """
    stuck = [task for task in tasks if not task.done]
    if stuck and stuck[0].waiting is END and all(_is_idle(task) for task in stuck[1:]):
        return None
    for task in stuck:
        fault: Fault | None = task.waiting.fault() if hasattr(task.waiting, "fault") else None
        if fault is not None:
            return fault
    cycle = _cycle(stuck)
    if cycle:
        return _fault_of("deadlock", cycle, stuck, log)
    culprits = [t for t in stuck if t.waiting is not END and not isinstance(t.waiting, ThreadTask)]
    culprits = [t for t in culprits if not _is_idle(t)] or culprits or stuck
    waits_for_io = any(isinstance(task.waiting, IoWait) for task in culprits)
    return _fault_of("hang" if waits_for_io else log.name_of(culprits), culprits, stuck, log)


def fault_of_cycle(tasks: Sequence[ThreadTask]) -> Fault | None:
    """Return the fault of threads that wait for each other, whatever the other threads do."""
    stuck = [task for task in tasks if not task.done]
    cycle = _cycle(stuck)
    return _fault_of("deadlock", cycle, stuck, SynchronisationLog()) if cycle else None


def _fault_of(
    kind: str,
    culprits: Sequence[ThreadTask],
    stuck: Sequence[ThreadTask],
    log: SynchronisationLog,
) -> Fault:
    frames = sys._current_frames()
    locations = sorted({_location(task, frames) for task in culprits})
    waiting = [task for task in stuck if task.waiting is not END]
    details = "\n".join(_description(task, frames, log.holders(task)) for task in waiting)
    frames.clear()  # break the reference cycle with this function's own frame
    return Fault(kind, f"{kind}: {' | '.join(locations)}", details)


def livelock_fault(most_probes: int, tasks: Sequence[ThreadTask]) -> Fault:
    """Return the fault of a run that does not end.

    Where a loop was at the end varies; the function that a thread began with does not. So these
    functions identify it, of the threads that wait for nothing.
    """
    alive = [task for task in tasks if not task.done]
    frames = sys._current_frames()
    busy = {_first_function(frames.get(task.ident)) for task in alive if task.waiting is None}
    frames.clear()  # break the reference cycle with this function's own frame
    where = ", ".join(sorted(busy - {""}))
    return Fault(
        "livelock",
        f"livelock [{where}]" if where else "livelock",
        f"the run did not end within {most_probes:,} probes; still running: "
        f"{', '.join(task.name for task in alive)}; `most_probes` says how many are enough",
    )


def _first_function(frame: FrameType | None) -> str:
    """Return the function of the program that swarmtest or a thread called; empty if none."""
    name, frame = "", user_frame(frame)
    while frame is not None and not is_own(frame.f_code):
        if not is_library(frame.f_code):
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name


def _is_idle(task: ThreadTask) -> bool:
    """Return whether a program ends although this thread waits: a daemon or a pool worker."""
    if task.daemon:
        return True
    pools = sys.modules.get("concurrent.futures.thread")
    return pools is not None and task.thread in pools._threads_queues


def _has_ended(task: ThreadTask) -> bool:
    return task.done or task.waiting is END


def _cycle(stuck: Sequence[ThreadTask]) -> list[ThreadTask]:
    """Return threads that wait for each other in a cycle, or for a thread that has ended."""
    for first in stuck:
        chain: list[ThreadTask] = []
        task: ThreadTask | None = first
        while task is not None and task not in chain:
            chain.append(task)
            task = _waits_for(task)
            if task is not None and _has_ended(task):
                return chain  # it ended while it held the lock
        if task is not None:
            return chain[chain.index(task) :]
    return []


def _waits_for(task: ThreadTask) -> ThreadTask | None:
    waiting = task.waiting
    if isinstance(waiting, ThreadTask):
        return waiting
    if isinstance(waiting, Lock):
        # A waiting condition acquires a lock of its own twice, which is not a deadlock.
        takes = task.doing in ("lock.acquire", "condition.acquire")
        return waiting.owner if takes or waiting.owner is not task else None
    return None


def _location(task: ThreadTask, frames: dict[int, FrameType]) -> str:
    """Return where a thread waits, without a line number: an edit above it is not a new fault."""
    frame = user_frame(frames.get(task.ident))
    if frame is None:
        return task.doing
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_qualname}: {source}" if source else frame.f_code.co_qualname


def _description(
    task: ThreadTask, frames: dict[int, FrameType], holders: Sequence[tuple[str, int]]
) -> str:
    frame = user_frame(frames.get(task.ident))
    at = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    waiting = task.waiting
    if isinstance(waiting, ThreadTask):
        what = f"waits for the end of {waiting.name}"
    elif isinstance(waiting, Lock) and _waits_for(task) is not None:
        holder = waiting.owner
        assert holder is not None
        held = "it holds itself" if holder is task else f"{holder.name} holds"
        what = f"waits for a lock that {held}{' and has ended' if _has_ended(holder) else ''}"
    else:
        what = f"waits in {task.doing or 'a lock'} for something that nobody will do"
        if isinstance(waiting, IoWait):
            what = f"waits in {task.doing}, and nothing came before the time limit"
        elif holders:
            held = ", ".join(f"{name} holds {units}" for name, units in holders)
            what = f"waits in {task.doing}, and nothing is left: {held}"
    return f"{task.name} {what}{at} ({_location(task, frames)})"
