"""The baton scheduler: one thread of a run runs at a time, and a `ThreadScheduler` says which.

Each thread has a baton, a real lock that it waits for. At a probe the scheduler may name another
thread: that thread's baton is released, and the running thread waits for its own. As long as the
same thread continues, only a counter changes.

A thread that has to wait (for a lock, another thread or the clock) hands over in the same way. If
no thread is able to run, the clock is advanced to the next time that one waits for. If there is no
such time, the threads are stuck, which is a fault. Once a run is decided, its threads are unwound
one after the other: each gets its baton, and an exception is raised where it stands.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, NoReturn

from swarmtest.race.control.io_waits import IoWait, wait_really
from swarmtest.race.control.schedulers import Switch, ThreadScheduler
from swarmtest.race.control.stuck import (
    CLOCK,
    END,
    fault_of_cycle,
    fault_of_stuck,
    livelock_fault,
)
from swarmtest.race.control.tasks import Baton, RunPolicy, ThreadTask, new_baton
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.policy import get_ident, raw_lock
from swarmtest.race.unwinding import Unwound

STEP, LIMIT, IDENT = 0, 1, 2
"""The cells of the state that a probe reads: the number of probes passed, the number at which to
ask the scheduler, and the identity of the running thread."""

Where = int | tuple[str, CodeType | None]
"""Where a thread stopped: a site, or an operation and the code that called it."""
Handover = tuple[ThreadTask, int, ThreadTask, bool, Where]
"""The thread that stopped, the number of its probe, the thread that continued, whether the
switch was forced, and where the thread stopped."""

_MAX_STREAK = 10_000
"""The number of probes after which a thread must let the next one run if others are able to. A
thread that spins until another one does something would never end otherwise."""
_MAX_POLLS = 50
"""The number of times that a thread may ask for input or output before it lets the next one run."""
_MAX_UNWINDS = 100
_MAX_OVERSLEEP = 1.0
"""The number of seconds by which running threads may be slow, so that a thread that sleeps no
longer than that may overtake them."""


class BatonPolicy(RunPolicy):
    """The threads of a run, of which one runs at a time."""

    def __init__(self, scheduler: ThreadScheduler, most_probes: int) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.most_probes = most_probes
        self.main.ident = get_ident()
        self.main.baton = new_baton()
        self.running = self.main
        self.able = [self.main]
        self.asleep: list[ThreadTask] = []
        """The sleeping threads that may wake before threads that are able to run."""
        self.sleeps = False
        """Whether a thread has slept in this run."""
        self.waits_for_io = False
        """Whether a thread waits for input or output."""
        self.abandoned: list[ThreadTask] = []
        self.handovers: list[Handover | Switch] = []
        self.clock = 0.0
        self.state: list[int] = [0, 1, self.main.ident]
        self.quiet = 0
        """While this is not 0, a thread that is able to continue is not stopped."""
        self._resumed = 0
        self._streak = self._polls = 0
        self._max_streak = min(_MAX_STREAK, most_probes // 4)

    # Probes.

    def decide(self, site: int, obj: Any) -> None:
        """Ask the scheduler which thread continues; the running thread is before an access."""
        task = self.running
        task.site, task.obj = site, obj
        self.point(task)

    def point(self, task: ThreadTask) -> None:
        """Let the scheduler stop the running thread here."""
        state = self.state
        step = state[STEP]
        if self.ended or step > self.most_probes:
            self.end_here(task)
        if self.waits_for_io:
            self.wake_ready()
        able, asleep = self.able, self.asleep
        if self.quiet or (len(able) == 1 and not (asleep and self.scheduler.wakes)):
            often = self.quiet or self.waits_for_io
            state[LIMIT] = step + 1 if often else self.most_probes + 1
            return
        passed = step - self._resumed
        task.count += passed
        self._streak += passed
        self._resumed = step
        if asleep and self.scheduler.wakes and self.scheduler.wakes_now():
            chosen = self.scheduler.choose(task, [*able, *asleep], step)
            while chosen.waiting is not None:
                self._advance_clock()
        else:
            chosen = self.scheduler.choose(task, able, step)
        if chosen is task and self._streak > self._max_streak:
            self.scheduler.gave_way(task)
            chosen = able[(able.index(task) + 1) % len(able)]
        if chosen is task:
            state[LIMIT] = self._next_limit(step)
            return
        self._hand_over(task, chosen, False)
        self.pause(task)
        if self.scheduler.stops_again(task):
            self.point(task)

    def gives_way(self, task: ThreadTask) -> None:
        """Let the next thread run now and then, if the running one polls and passes no probe."""
        self._polls += 1
        if self._polls > _MAX_POLLS:
            self.wake_ready()
            able = self.able
            self.resume(able[(able.index(task) + 1) % len(able)])
            self.pause(task)

    def must_stop(self) -> bool:
        """Return whether the running thread may not continue, whatever the scheduler says."""
        return self.ended or self.state[STEP] > self.most_probes

    def _next_limit(self, step: int) -> int:
        asks, left = self.scheduler.asks, self._max_streak + 1 - self._streak
        if asks > left:  # min() and max() would take three times as long
            asks = left
        at, last = step + (asks if asks > 1 else 1), self.most_probes + 1
        return at if at < last else last

    # Switching threads.

    def _hand_over(self, task: ThreadTask, chosen: ThreadTask, forced: bool) -> None:
        where: Where = task.site
        if task.site < 0:
            frame = user_frame(sys._getframe(1))
            where = task.doing, frame.f_code if frame else None
        self.handovers.append((task, task.count, chosen, forced, where))
        self.resume(chosen)

    def resume(self, chosen: ThreadTask) -> None:
        """Make a thread the running one; it continues as soon as it gets its baton."""
        state = self.state
        self.running = chosen
        self._resumed = state[STEP]
        self._streak = self._polls = 0
        state[LIMIT] = 0 if self.ended else self._next_limit(state[STEP])
        state[IDENT] = chosen.ident

    def pause(self, task: ThreadTask) -> None:
        """Release the baton of the thread that runs next, and wait for the own baton."""
        if self.running is not task:
            task.baton.hand(self.running.baton)
        if self.ended:
            raise Unwound

    def block(self, task: ThreadTask, waiting: Any, deadline: float | None) -> None:
        """Make the running thread wait; return when it is able to run and has been chosen."""
        self._count_probes(task)
        task.waiting, task.deadline, task.expired = waiting, deadline, False
        self.changed()
        self._choose_next(task)
        self.pause(task)

    def count_of(self, task: ThreadTask) -> int:
        """Return the number of probes that a thread has passed."""
        since = self.state[STEP] - self._resumed if task is self.running else 0
        return task.count + since

    def _count_probes(self, task: ThreadTask) -> None:
        step = self.state[STEP]
        task.count += step - self._resumed
        self._resumed = step

    def changed(self) -> None:
        """Update which threads are able to run, and ask the scheduler at the next probe."""
        self.able = [task for task in self.tasks if task.waiting is None and not task.done]
        self.waits_for_io = any(type(task.waiting) is IoWait for task in self.tasks)
        if self.sleeps:
            until = self.clock + _MAX_OVERSLEEP
            self.asleep = [
                task
                for task in self.tasks
                if (task.waiting is CLOCK or (task.timed and task.waiting is not None))
                and task.deadline
                and task.deadline <= until
            ]
        self.state[LIMIT] = 0

    def _choose_next(self, task: ThreadTask) -> None:
        """Hand over from a thread that cannot continue."""
        if self.waits_for_io:
            self.wake_ready()
        while not self.able and self._let_time_pass():
            pass
        able = self.able
        if not able:
            fault = fault_of_stuck(self.tasks, self.log)
            if fault is not None:
                self.fail(fault)
            self.end()
            self._unwind_next(task)
        elif len(able) == 1:
            self.scheduler.asks = 1
            self.resume(able[0])  # there is no choice, so nothing to record
        else:
            chosen = self.scheduler.choose_next(task, able, self.state[STEP])
            self._hand_over(task, chosen, True)

    def _let_time_pass(self) -> bool:
        """Wait until a thread is able to run; False if that will never be, or if the run ended."""
        if not self.waits_for_io:
            return self._advance_clock()
        if fault_of_cycle(self.tasks) is not None:
            return False
        deadlines = [task.deadline for task in self.tasks if task.waiting and task.deadline]
        limit = max(min(deadlines) - self.clock, 0.0) if deadlines else None
        if wait_really(self.wake_ready, lambda: self.ended, limit):
            return True
        return not self.ended and self._advance_clock()

    def wake_ready(self) -> bool:
        """Make the threads able to run whose input or output is ready; return whether any is."""
        woken = False
        for task in self.tasks:
            waiting = task.waiting
            if type(waiting) is IoWait and waiting.is_ready():
                task.waiting, task.deadline = None, None
                woken = True
        if woken:
            self.changed()
        return woken

    def _advance_clock(self) -> bool:
        """Advance the clock to the next time that a thread waits for; False if there is none."""
        timed = [task for task in self.tasks if task.waiting is not None and task.deadline]
        if not timed:
            return False
        self.clock = max(self.clock, min(task.deadline or 0.0 for task in timed))
        for task in timed:
            if task.deadline and task.deadline <= self.clock:
                task.expired = True
                task.waiting, task.deadline = None, None
        self.changed()
        return True

    def wake(self, waited_for: Any) -> None:
        """Make the threads that wait for this object able to run."""
        woken = False
        for task in self.tasks:
            if task.waiting is waited_for:
                task.waiting, task.deadline = None, None
                woken = True
        if woken:
            self.changed()

    # Ending a run.

    def end(self) -> None:
        """Decide the run: its threads end where they are."""
        self.ended = True
        self.state[LIMIT] = 0

    def end_here(self, task: ThreadTask) -> NoReturn:
        """End the running thread by raising `Unwound`."""
        if not self.ended:
            self.fail(livelock_fault(self.most_probes, self.tasks))
        task.raised += 1
        if task.raised > _MAX_UNWINDS and task is not self.main:
            self._park(task)
        raise Unwound

    def _park(self, task: ThreadTask) -> NoReturn:
        """Block a thread forever that catches every exception and so cannot be ended."""
        self.notes.append(f"{task.name} cannot be ended: it catches every exception; it was left")
        task.done = True
        self.abandoned.append(task)
        self._unwind_next(task)
        self.running.baton.release()
        forever = raw_lock()
        while True:
            forever.acquire()

    def abandon(self, task: ThreadTask, problem: str) -> None:
        """Continue without the running thread, which is blocked where it has no probes."""
        self.problem = problem
        self.end()
        if task is not self.main:
            task.done = True
            self.abandoned.append(task)
            self._unwind_next(task)
            self.running.baton.release()

    def finished(self, task: ThreadTask) -> Baton | None:
        """Return the baton of the next thread when a thread has ended; None if it was abandoned."""
        if task.done:
            return None
        self._count_probes(task)
        task.done = True
        task.site, task.doing = -1, "end"
        if self.ended:
            self._unwind_next(task)
        else:
            self.wake(task)
            self.wake(END)
            self.changed()
            self._choose_next(task)
        return self.running.baton

    def _unwind_next(self, task: ThreadTask) -> None:
        """Resume the youngest thread that has not ended; main is the last."""
        for other in reversed(self.tasks):
            if not other.done and other is not task:
                self.resume(other)
                return
        if not task.done:
            self.resume(task)

    def outlive(self) -> None:
        """Let other threads run to their ends after main has returned, as Python does."""
        main = self.main
        try:
            while not self.ended and any(not t.done and not t.daemon for t in self.tasks[1:]):
                main.doing, main.site = "end", -1
                self.block(main, END, None)
        except Unwound:
            pass
        self.end()
        if self.running is not main:  # main was interrupted while it was waiting
            main.baton.acquire()
        while any(not task.done for task in self.tasks[1:]):
            self._unwind_next(main)
            main.baton.hand(self.running.baton)
