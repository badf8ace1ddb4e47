"""Handing the baton: one thread runs at a time, and a scheduler says which.

Each thread has a baton, a real lock that it waits for. At a probe the scheduler may name another
thread: that one's baton is released, and the thread that ran waits for its own. As long as the same
thread goes on, nothing is touched but a counter.

A thread that has to wait (for a lock, another thread, the clock) hands over in the same way. When
none is able to run, the clock is set to the next time for which one waits; without such a time the
threads are stuck, which is a fault. Once a run is decided its threads are unwound, one after the
other: each is handed the baton and gets an exception where it stands.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, NoReturn

from swarmtest.core.result import Fault
from swarmtest.race.control.schedulers import Scheduler
from swarmtest.race.control.stuck import CLOCK, END, fault_of_stuck, livelock
from swarmtest.race.control.tasks import Baton, Task, Unwound, main_task, new_baton
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.originals import get_ident, raw_lock
from swarmtest.race.primitives.policy import Policy

STEP, LIMIT, IDENT = 0, 1, 2
"""The cells of the state that a probe looks at: probes passed, when to ask, who runs."""

Where = int | tuple[str, CodeType | None]
"""Where a thread stopped: a site, or what it does and in which code."""
Handover = tuple[Task, int, Task, bool, Where]
"""Who stopped, at which of its probes, who went on, whether it had to stop, and where it was."""

_PATIENCE = 10_000
"""A thread that has passed so many probes while others were able to run lets the next one run:
one that spins until another does something would never end."""
_MOST_RAISED = 100
_SLOWEST = 1.0
"""A thread may be slow for so many seconds, so that one that sleeps no longer overtakes it."""


class Handing(Policy):
    """The threads of a run, and who of them runs."""

    def __init__(self, scheduler: Scheduler, most_probes: int) -> None:
        self.scheduler = scheduler
        self.most_probes = most_probes
        self.main = main_task()
        self.main.ident = get_ident()
        self.main.baton = new_baton()
        self.running = self.main
        self.tasks = [self.main]
        self.able = [self.main]
        self.asleep: list[Task] = []
        """Those that sleep, and may wake before others get on that are slow."""
        self.sleeps = False
        """Whether a thread has slept in this run."""
        self.abandoned: list[Task] = []
        self.handovers: list[Handover] = []
        self.fault: Fault | None = None
        self.problem = ""
        self.notes: list[str] = []
        self.clock = 0.0
        self.ended = self.interrupted = False
        self.state: list[int] = [0, 1, self.main.ident]
        self.quiet = 0
        """While this is not 0, no thread stops that is able to go on."""
        self._resumed = 0
        self._streak = 0
        self._patience = min(_PATIENCE, most_probes // 4)

    # Probes.

    def decide(self, site: int, obj: Any) -> None:
        """The running thread is before an access, and it is time to ask who goes on."""
        task = self.running
        task.site, task.obj = site, obj
        self.point(task)

    def point(self, task: Task) -> None:
        """The running thread may be stopped here."""
        state = self.state
        step = state[STEP]
        if self.ended or step > self.most_probes:
            self.end_here(task)
        able, asleep = self.able, self.asleep
        if self.quiet or (len(able) == 1 and not (asleep and self.scheduler.wakes)):
            state[LIMIT] = step + 1 if self.quiet else self.most_probes + 1
            return
        passed = step - self._resumed
        task.count += passed
        self._streak += passed
        self._resumed = step
        if asleep and self.scheduler.wakes and self.scheduler.wakes_now():
            chosen = self.scheduler.choose(task, [*able, *asleep], step)
            while chosen.waiting is not None:
                self._advance()
        else:
            chosen = self.scheduler.choose(task, able, step)
        if chosen is task and self._streak > self._patience:
            self.scheduler.gave_way(task)
            chosen = able[(able.index(task) + 1) % len(able)]
        if chosen is task:
            state[LIMIT] = self._limit(step)
            return
        self._hand_over(task, chosen, False)
        self.pause(task)
        if self.scheduler.stops_again(task):
            self.point(task)

    def must_stop(self) -> bool:
        """Whether the running thread may not go on, whatever the scheduler says."""
        return self.ended or self.state[STEP] > self.most_probes

    def _limit(self, step: int) -> int:
        asks, left = self.scheduler.asks, self._patience + 1 - self._streak
        if asks > left:  # as min and max say, which take three times as long
            asks = left
        at, last = step + (asks if asks > 1 else 1), self.most_probes + 1
        return at if at < last else last

    # Handing over.

    def _hand_over(self, task: Task, chosen: Task, forced: bool) -> None:
        where: Where = task.site
        if task.site < 0:
            frame = user_frame(sys._getframe(1))
            where = task.doing, frame.f_code if frame else None
        self.handovers.append((task, task.count, chosen, forced, where))
        self.resume(chosen)

    def resume(self, chosen: Task) -> None:
        """A thread is to run, as soon as it has its baton."""
        state = self.state
        self.running = chosen
        self._resumed = state[STEP]
        self._streak = 0
        state[LIMIT] = 0 if self.ended else self._limit(state[STEP])
        state[IDENT] = chosen.ident

    def pause(self, task: Task) -> None:
        """Let the thread run that is to run, and wait for the baton."""
        if self.running is not task:
            task.baton.hand(self.running.baton)
        if self.ended:
            raise Unwound

    def block(self, task: Task, waiting: Any, deadline: float | None) -> None:
        """The running thread waits; when this is over it is able to run, and runs."""
        self._stop(task)
        task.waiting, task.deadline, task.expired = waiting, deadline, False
        self.changed()
        self._next(task)
        self.pause(task)

    def count_of(self, task: Task) -> int:
        """How many probes a thread has passed."""
        since = self.state[STEP] - self._resumed if task is self.running else 0
        return task.count + since

    def _stop(self, task: Task) -> None:
        step = self.state[STEP]
        task.count += step - self._resumed
        self._resumed = step

    def changed(self) -> None:
        """Who is able to run has changed: ask at the next probe."""
        self.able = [task for task in self.tasks if task.waiting is None and not task.done]
        if self.sleeps:
            until = self.clock + _SLOWEST
            self.asleep = [
                t for t in self.tasks if t.waiting is CLOCK and t.deadline and t.deadline <= until
            ]
        self.state[LIMIT] = 0

    def _next(self, task: Task) -> None:
        """Hand over from a thread that cannot go on."""
        while not self.able and self._advance():
            pass
        able = self.able
        if not able:
            fault = fault_of_stuck(self.tasks)
            if fault is not None:
                self.fail(fault)
            self.end()
            self._unwind_next(task)
        elif len(able) == 1:
            self.scheduler.asks = 1
            self.resume(able[0])  # there is no choice: nothing to record
        else:
            chosen = self.scheduler.choose_next(task, able, self.state[STEP])
            self._hand_over(task, chosen, True)

    def _advance(self) -> bool:
        """Set the clock to the next time that a thread waits for."""
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
        """Who waits for this is able to run."""
        found = False
        for task in self.tasks:
            if task.waiting is waited_for:
                task.waiting, task.deadline = None, None
                found = True
        if found:
            self.changed()

    def note(self, line: str) -> None:
        """Something that the user should know; once is enough."""
        if line not in self.notes:
            self.notes.append(line)

    # The end.

    def fail(self, fault: Fault) -> None:
        """The run shows a fault; the first one counts."""
        if not self.ended:
            self.fault = fault
        self.end()

    def end(self) -> None:
        """The run is decided: threads end where they are."""
        self.ended = True
        self.state[LIMIT] = 0

    def end_here(self, task: Task) -> NoReturn:
        """The running thread does not go on."""
        if not self.ended:
            self.fail(livelock(self.most_probes, self.tasks))
        task.raised += 1
        if task.raised > _MOST_RAISED and task is not self.main:
            self._park(task)
        raise Unwound

    def _park(self, task: Task) -> NoReturn:
        """A thread that catches everything cannot be ended; it may not run on either."""
        self.notes.append(f"{task.name} cannot be ended: it catches every exception; it was left")
        task.done = True
        self.abandoned.append(task)
        self._unwind_next(task)
        self.running.baton.release()
        for_ever = raw_lock()
        while True:
            for_ever.acquire()

    def abandon(self, task: Task, problem: str) -> None:
        """The running thread is blocked outside of our sight: go on without it."""
        self.problem = problem
        self.end()
        if task is not self.main:
            task.done = True
            self.abandoned.append(task)
            self._unwind_next(task)
            self.running.baton.release()

    def finished(self, task: Task) -> Baton | None:
        """A thread has run its last: the baton of the next one; None if this one was given up."""
        if task.done:
            return None
        self._stop(task)
        task.done = True
        task.site, task.doing = -1, "end"
        if self.ended:
            self._unwind_next(task)
        else:
            self.wake(task)
            self.wake(END)
            self.changed()
            self._next(task)
        return self.running.baton

    def _unwind_next(self, task: Task) -> None:
        """Hand the baton to the youngest thread that has not ended; main is the last."""
        for other in reversed(self.tasks):
            if not other.done and other is not task:
                self.resume(other)
                return
        if not task.done:
            self.resume(task)

    def outlive(self) -> None:
        """Main's function has returned: other threads go on to their ends, as Python has it."""
        main = self.main
        try:
            while not self.ended and any(not t.done and not t.daemon for t in self.tasks[1:]):
                main.doing, main.site = "end", -1
                self.block(main, END, None)
        except Unwound:
            pass
        self.end()
        if self.running is not main:  # main was interrupted while it waited
            main.baton.acquire()
        while any(not task.done for task in self.tasks[1:]):
            self._unwind_next(main)
            main.baton.hand(self.running.baton)
