"""Running lists of items in forks: whatever an item does to its process, this one goes on.

A task is a list of items to run in one fork. The fork reports each item, in order. If it ends, or
is silent for too long, the item at hand is the cause, and a new fork goes on behind it.

A fork runs a function, or goes on where its parent stands: then `Forked` is raised in it.
"""

from __future__ import annotations

import os
import pickle
import select
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from swarmtest.processes import frames, limits
from swarmtest.processes.fork import Fork

Tell = Callable[..., None]
"""``tell(value)`` reports the result of the item at hand; ``tell(value, n)`` also says that the
n - 1 items behind it are done."""


@dataclass
class ForkTask:
    """Items that are run in order, by one fork after the other."""

    items: list[Any]
    seconds: list[float]
    """How long each may be silent."""
    settles: Callable[[Any, Any], bool] = lambda item, other: False
    """Whether a process that ended in one item makes a later item needless."""
    done: int = 0


@dataclass(frozen=True)
class TaskAnswer:
    """The result of one item."""

    item: Any
    value: Any
    """What the fork reported; None if it ended before that."""
    silent: bool = False
    """Whether it was ended because it took too long."""


@dataclass
class _RunningTask:
    """A fork that is at a task."""

    task: ForkTask
    fork: Fork
    frames: frames.Frames
    deadline: float
    silent: bool = False


class Forks:
    """Up to `workers` forks at a time; `run(items, tell)` is what each does.

    Without `run`, `Forked` is raised in each out of `answers`.
    """

    def __init__(
        self, run: Callable[[list[Any], Tell], None] | None, workers: int, memory: int = 0
    ) -> None:
        self._run = run
        self._workers = max(workers, 1)
        self._memory = memory

    def answers(self, tasks: Iterable[ForkTask]) -> Iterator[TaskAnswer]:
        """Yield the answers of all tasks as they come; take tasks when there is room."""
        left = iter(tasks)
        again: list[ForkTask] = []
        running: dict[int, _RunningTask] = {}
        more = True
        owner = os.getpid()
        try:
            while True:
                while len(running) < self._workers and (again or more):
                    task = again.pop() if again else next(left, None)
                    if task is None:
                        more = False
                    elif task.done < len(task.items):
                        run = self._begin(task)
                        running[run.frames.fd] = run
                if not running:
                    return
                for run in self._ready(running):
                    ended = yield from self._hear(run)
                    if ended:
                        del running[run.frames.fd]
                        yield from self._end(run, again)
        finally:
            for run in running.values() if os.getpid() == owner else ():
                os.close(run.frames.fd)
                run.fork.reap(kill=True)

    def _begin(self, task: ForkTask) -> _RunningTask:
        read, write = os.pipe()
        run = self._run
        if run is not None:
            fork = Fork(lambda: _live(run, task, write, self._memory))
        else:
            fork = Fork()
            if fork.is_child:
                limits.prepare(self._memory)
                raise Forked(task.items[task.done :], teller(write))
        os.close(write)
        deadline = time.monotonic() + task.seconds[task.done]
        return _RunningTask(task, fork, frames.Frames(read, pickle.loads), deadline)

    def _ready(self, running: dict[int, _RunningTask]) -> list[_RunningTask]:
        """Return the runs that have something to read or have ended; end those that are late."""
        now = time.monotonic()
        soonest = min(run.deadline for run in running.values())
        # What a test forked may hold the pipe open after the end, so look now and then.
        ready, _, _ = select.select(list(running), [], [], min(max(soonest - now, 0.0), 0.5))
        if not ready:
            now = time.monotonic()
            for run in running.values():
                if now >= run.deadline:
                    run.silent = True
                    run.fork.kill()
            ready = [pipe for pipe, run in running.items() if run.fork.has_ended]
        return [running[pipe] for pipe in ready]

    def _hear(self, run: _RunningTask) -> Generator[TaskAnswer, None, bool]:
        """Yield what a fork reported; return whether that was the last."""
        # A fork that is dead but whose children hold the pipe has nothing more to report.
        if not select.select([run.frames.fd], [], [], 0)[0]:
            return True
        task = run.task
        for value, count in run.frames.receive():
            item = task.items[task.done]
            task.done += count
            yield TaskAnswer(item, value)
            if task.done < len(task.items):
                run.deadline = time.monotonic() + task.seconds[task.done]
        return run.frames.ended

    def _end(self, run: _RunningTask, again: list[ForkTask]) -> Iterator[TaskAnswer]:
        """Bury a fork; what it left undone goes on in another, if it is to."""
        os.close(run.frames.fd)
        status, _ = run.fork.reap(kill=True)
        task = run.task
        if task.done == len(task.items):
            return
        if status != _REPLACED << 8 or run.silent:
            item = task.items[task.done]
            task.done += 1
            yield TaskAnswer(item, None, run.silent)
            while task.done < len(task.items) and task.settles(item, task.items[task.done]):
                task.done += 1
        if task.done < len(task.items):
            again.append(task)


_REPLACED = 86
"""The exit status of a fork that leaves the rest to another."""


class Replace(Exception):
    """Raised in a fork: another process is to go on behind what was reported last."""


class Forked(BaseException):
    """Raised in a fork that goes on by itself; code that catches it ends with `leave`."""

    def __init__(self, items: list[Any], tell: Tell) -> None:
        super().__init__()
        self.items = items
        self.tell = tell


def leave(*, replaced: bool = False) -> NoReturn:
    """End a fork at once; `replaced`: another is to go on behind what was reported last."""
    os._exit(_REPLACED if replaced else 0)


def messages_with_output(run: Callable[[Tell], None], output: int) -> Iterator[Any]:
    """Yield what one fork sends until its end; what it prints goes to the descriptor `output`."""
    read, write = os.pipe()

    def live() -> None:
        try:
            os.close(read)
            limits.prepare(output=output, errors=output)
            limits.replace_streams()
            run(teller(write))
        except BaseException:
            traceback.print_exc()
        finally:
            limits.flush_streams()

    fork = Fork(live)
    os.close(write)
    arriving = frames.Frames(read, pickle.loads)
    try:
        while not arriving.ended:
            for value, _ in arriving.receive():
                yield value
    finally:
        os.close(read)
        fork.reap(kill=True)


def teller(pipe: int) -> Tell:
    """Return a function that sends values through a pipe as `Forks` reads them."""
    pid = os.getpid()

    def tell(value: Any, count: int = 1) -> None:
        if os.getpid() != pid:
            os._exit(0)  # the program forked, and its child came back here
        frames.send_pickled(pipe, (value, count))

    return tell


def _live(run: Callable[..., None], task: ForkTask, pipe: int, memory: int) -> None:
    """Run the rest of a task in a fork."""
    status = 1
    try:
        limits.prepare(memory)
        run(task.items[task.done :], teller(pipe))
        status = 0
    except Replace:
        status = _REPLACED
    finally:
        os._exit(status)
