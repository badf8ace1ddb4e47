"""An event loop of asyncio in a controlled run.

The loop itself runs in a thread of the run, as ever. In place of its `_run_once` it gets ours,
which asks a `LoopScheduler` at each step which of the tasks that are ready runs next, and how late
the next timer is. Rules that keep every run possible:

- no task overtakes a plain callback, because asyncio promises their order and its own streams and
  sockets rely on it;
- timers fire in the order of their times; a late one delays the others with it;
- time is simulated: it passes when nothing is ready. As long as the loop waits for sockets, pipes
  or child processes, time is real, since their answers take real time;
- nothing outside the loop is reordered: work in threads (`asyncio.to_thread`) runs in threads of
  the run, which are controlled as any others.
"""

from __future__ import annotations

import gc
import heapq
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.race.control.baton_scheduler import LIMIT, STEP
from swarmtest.race.control.schedulers import LoopScheduler, Switch
from swarmtest.race.loops.stuck import fault_of_stuck_tasks, location_of
from swarmtest.race.loops.tasks import TaskActor, actor_of, place_of, set_actor, task_of
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.policy import raw_monotonic

if TYPE_CHECKING:
    from swarmtest.race.control.control import ControlPolicy

LOOP_TICK = 1e-4
"""The seconds by which reading the loop's clock advances it, so that a loop that polls it ends."""
_REAL_WAIT = 0.05
"""The longest real wait for sockets, pipes and child processes before other threads may run."""
_MOST_COLLECTIONS = 30
_SELF_PIPE = 1
_DESTROYED = "Task was destroyed but it is pending!"


class LoopIdle:
    """What the thread of an event loop waits for: a timer, or a call from another thread."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop

    def fault(self) -> Fault | None:
        """Return the fault of a loop whose tasks wait forever."""
        return fault_of_stuck_tasks(self.loop)


class LoopControl:
    """The event loops of one run."""

    def __init__(self, control: ControlPolicy, scheduler: LoopScheduler) -> None:
        self._control = control
        self._scheduler = scheduler
        self._tasks: list[weakref.ref[Any]] = []
        self._timers: dict[int, tuple[tuple[str, int], str]] = {}
        """By the id of a timer's handle: the task that set it and its number there, and where."""
        self._idle: dict[int, LoopIdle] = {}
        self._collections = 0
        self.actor: TaskActor | None = None
        """The task that makes a step now."""
        self.created = self.spawned = 0
        self._too_late: list[Any] = []
        """The tasks that were left, or created, when the run was decided."""
        self.steps: dict[str, int] = {}
        """How many steps each task made."""
        self.reorders = False
        self.selects = False
        """Whether a loop waits for sockets, pipes or child processes in real time."""

    # One iteration of a loop.

    def run_once(self, loop: Any) -> None:
        """Run what is ready, one step after the other."""
        self._check_end()
        self._poll(loop)
        ready = loop._ready
        for _ in range(len(ready)):
            if not ready:
                break
            handle = self._next(ready)
            if not handle._cancelled:
                self._run(handle)

    def _check_end(self) -> None:
        control = self._control
        if control.must_stop():
            self._too_late += [task for ref in self._tasks if (task := ref()) is not None]
            self._tasks.clear()
            control.end_here(control.running)

    def _next(self, ready: Any) -> Any:
        """Remove the next handle from the queue; tasks before the next callback may take turns."""
        candidates: list[Any] = []
        actors: list[TaskActor] = []
        for handle in ready:
            if handle._cancelled:
                continue
            task = task_of(handle)
            actor = actor_of(task) if task is not None else None
            if actor is None:
                break
            candidates.append(handle)
            actors.append(actor)
        if len(candidates) < 2:
            return ready.popleft()
        chosen = self._scheduler.choose(actors)
        if chosen:
            self._note_order(task_of(candidates[0]), actors[0], actors[chosen])
        ready.remove(candidates[chosen])
        return candidates[chosen]

    def _note_order(self, task: Any, first: TaskActor, chosen: TaskActor) -> None:
        self.reorders = True
        site = self._control.place_text(place_of(task))
        self._control.handovers.append(
            Switch(first.name, first.steps + 1, chosen.name, site=site, step=True)
        )

    def _run(self, handle: Any) -> None:
        task = task_of(handle)
        actor = actor_of(task) if task is not None else None
        self._count_step()
        if actor is not None:
            actor.steps += 1
            self.steps[actor.name] = actor.steps
        before, self.actor = self.actor, actor
        try:
            handle._run()
        finally:
            self.actor = before
        if actor is not None:
            self._stepped(task, actor)
        self._check_end()

    def _count_step(self) -> None:
        """Count a step as a probe: another thread may run, and a run without end is noticed."""
        control = self._control
        state = control.state
        state[STEP] += 1
        if state[STEP] >= state[LIMIT]:
            running = control.running
            running.site, running.obj, running.doing = -1, None, "step"
            try:
                control.point(running)
            finally:
                running.doing = ""

    def _stepped(self, task: Any, actor: TaskActor) -> None:
        """Look at a task after its step: a failed assertion counts, even if it is caught."""
        control = self._control
        if not task.done():
            if control.tracer is not None and not control.ended:
                control.tracer.awaits(control.running, actor.name, task)
        elif not task.cancelled():
            error = task._exception
            if isinstance(error, AssertionError):
                control.fail(fault_of_exception(error))

    # Waiting.

    def _poll(self, loop: Any) -> None:
        """Wait until something is ready, and add it to the queue."""
        timers = loop._scheduled
        while timers and timers[0]._cancelled:
            loop._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False
        may_wait = not loop._ready and not loop._stopping
        if len(loop._selector.get_map()) > _SELF_PIPE:
            self._select(loop, may_wait)
        elif may_wait:
            self._wait(loop)
        self._fire_timers(loop)

    def _wait(self, loop: Any) -> None:
        """Let simulated time pass until the next timer, or until another thread calls the loop."""
        control = self._control
        self._collect()
        if loop._ready:
            return
        deadline = self._deadline(loop)
        idle = self._idle.setdefault(id(loop), LoopIdle(loop))
        control.wait_in_loop(idle, deadline)

    def _deadline(self, loop: Any) -> float | None:
        """Return the time on the run's clock at which the next timer fires, with its lateness."""
        timers = loop._scheduled
        if not timers:
            return None
        handle = timers[0]
        timer, site = self._timers.get(id(handle), (("", 0), ""))
        late = self._scheduler.lateness(timer) if timer[0] else 0.0
        if late:
            self._control.handovers.append(Switch(*timer, "", site=site, late=late))
        return max(self._control.loop_clock(handle._when) + late, 1e-9)

    def _select(self, loop: Any, may_wait: bool) -> None:
        """Ask for sockets, pipes and child processes; other threads run, then real time passes."""
        control = self._control
        events = loop._selector.select(0)
        while may_wait and not events and not loop._ready:
            self._check_end()
            timers = loop._scheduled
            left = control.loop_clock(timers[0]._when) - control.clock if timers else _REAL_WAIT
            if left <= 0:
                break
            if control.others_are_able():
                idle = self._idle.setdefault(id(loop), LoopIdle(loop))
                control.wait_in_loop(idle, control.clock + 1e-9)
                events = loop._selector.select(0)
                continue
            begin = raw_monotonic()
            self.selects = True
            try:
                events = loop._selector.select(min(left, _REAL_WAIT))
            finally:
                self.selects = False
            control.clock += raw_monotonic() - begin
        loop._process_events(events)
        if events:
            _drop_duplicates(loop._ready)

    def _fire_timers(self, loop: Any) -> None:
        timers, now = loop._scheduled, self._control.loop_time()
        while timers and timers[0]._when <= now:
            handle = heapq.heappop(timers)
            handle._scheduled = False
            self._timers.pop(id(handle), None)
            loop._ready.append(handle)

    def _collect(self) -> None:
        """Collect garbage: a task that nobody holds disappears while it waits."""
        if self._collections < _MOST_COLLECTIONS:
            self._collections += 1
            gc.collect()

    def woken(self, loop: Any) -> None:
        """Continue a loop that waits, because another thread has called it."""
        idle = self._idle.get(id(loop))
        if idle is not None:
            self._control.wake(idle)

    # Tasks and timers.

    def creates_task(self, task: Any) -> None:
        """Name a new task."""
        running = self._control.running
        if self.created == 0:
            name = running.name
        elif self.actor is None or self.actor.name == running.name:
            running.children += 1
            name = f"{running.name}.{running.children}"
        else:
            self.actor.children += 1
            name = f"{self.actor.name}.{self.actor.children}"
        self.created += 1
        self.spawned += self.actor is not None
        if self._control.ended:
            self._too_late.append(task)
        set_actor(task, TaskActor(name))
        self._tasks.append(weakref.ref(task))

    def sets_timer(self, handle: Any) -> None:
        """Give a new timer a number among those of the task that sets it."""
        actor = self.actor
        if actor is not None:
            actor.timers += 1
            frame = user_frame(sys._getframe(1))
            code = frame.f_code if frame is not None else None
            site = self._control.place_text(("timer", code))
            self._timers[id(handle)] = (actor.name, actor.timers), site

    # Errors that asyncio only logs.

    def reports(self, loop: Any, context: dict[str, Any], original: Callable[..., None]) -> None:
        """Turn what a loop would only log into a fault."""
        control = self._control
        if control.ended:
            return
        if loop._exception_handler is not None:
            original(loop, context)
            return
        error, message = context.get("exception"), context.get("message", "")
        if message == _DESTROYED:
            where = location_of(context["task"])
            control.fail(Fault("lost task", f"lost task: {where}", f"{message} {where}"))
        elif isinstance(error, Exception):
            control.fail(fault_of_exception(error))
        else:
            original(loop, context)

    def end(self) -> None:
        """Look at the tasks that are left: an exception that nobody asked for is a fault."""
        control = self._control
        # A run that was cut short has not asked for exceptions that it would have asked for.
        is_whole = control.fault is None and not (control.problem or control.interrupted)
        left = [task for ref in self._tasks if (task := ref()) is not None]
        for task in (*left, *self._too_late):
            if task.done() and not task.cancelled() and task._log_traceback:
                error = task._exception
                if is_whole and task in left and isinstance(error, Exception):
                    control.fault = control.fault or fault_of_exception(error)
                task._log_traceback = False
            task._log_destroy_pending = False
            coroutine = task.get_coro()
            is_plain = inspect.iscoroutine(coroutine)
            if is_plain and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # it will never begin

    @property
    def tasks(self) -> int:
        """The number of tasks of the program; those that asyncio makes to close a loop are none."""
        return self.spawned + 1 if self.created else 0


def _drop_duplicates(ready: Any) -> None:
    """Drop handles that are in a queue twice: a selector reports a descriptor until it is read."""
    seen: set[int] = set()
    for handle in list(ready):
        if id(handle) in seen:
            ready.reverse()
            ready.remove(handle)
            ready.reverse()
        seen.add(id(handle))
