"""The tasks of event loops in a run: their names, their steps, and where they are.

A task is named as a thread is: after what created it, and its number there. The first task of a
thread has the name of the thread, which does nothing else meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from swarmtest.race.primitives.frames import is_library
from swarmtest.race.primitives.policy import current

_ACTOR = "_actor_in_run"
RAW_TASK = asyncio.tasks.Task
RAW_FUTURE = asyncio.futures.Future


@dataclass(eq=False)
class TaskActor:
    """A task of an event loop in a run."""

    name: str
    steps: int = 0
    """How many steps it has made."""
    children: int = 0
    timers: int = 0
    """How many timers it has set."""


class NumberedTask(RAW_TASK):  # type: ignore[type-arg]
    """A task that is hashed by its number in the run, so that sets of tasks have a stable order."""

    def __init__(self, coro: Any, **options: Any) -> None:
        policy = current.policy
        self._number_in_run = 0 if policy is None else policy.new_number()
        if policy is not None:
            policy.creates_task(self)
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number_in_run or object.__hash__(self)


class NumberedFuture(RAW_FUTURE):  # type: ignore[type-arg]
    """A future that is hashed by its number in the run."""

    def __init__(self, **options: Any) -> None:
        policy = current.policy
        self._number_in_run = 0 if policy is None else policy.new_number()
        super().__init__(**options)

    def __hash__(self) -> int:
        return self._number_in_run or object.__hash__(self)


def set_actor(task: Any, actor: TaskActor) -> None:
    """Remember what a task is called in the run."""
    setattr(task, _ACTOR, actor)


def actor_of(task: Any) -> TaskActor | None:
    """Return what a task is called in the run; None for a task of another kind."""
    actor: TaskActor | None = getattr(task, _ACTOR, None)
    return actor


def task_of(handle: Any) -> Any:
    """Return the task that a handle of the loop runs a step of; None for a plain callback."""
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, RAW_TASK) else None


def frames_of(task: Any) -> list[FrameType]:
    """Return the frames of a suspended task, the outermost first.

    >>> async def outer(): await asyncio.sleep(0)
    >>> coroutine = outer()
    >>> class Waiting:
    ...     def get_coro(self): return coroutine
    >>> [frame.f_code.co_name for frame in frames_of(Waiting())]
    ['outer']
    >>> coroutine.close()
    """
    frames: list[FrameType] = []
    awaited = task.get_coro()
    while awaited is not None and len(frames) < 100:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        frame = frame or getattr(awaited, "ag_frame", None)
        if frame is None:
            break
        frames.append(frame)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return frames


def user_frame_of(task: Any) -> FrameType | None:
    """Return the innermost frame of the program itself in a suspended task."""
    frames = [frame for frame in frames_of(task) if not is_library(frame.f_code)]
    return frames[-1] if frames else None


def place_of(task: Any) -> tuple[str, CodeType | None]:
    """Return what a suspended task is about to do, and in which function."""
    frame = user_frame_of(task)
    return "step", frame.f_code if frame is not None else None
