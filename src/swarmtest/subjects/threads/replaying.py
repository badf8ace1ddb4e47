"""Replaying a schedule in a test of one's own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarmtest.errors import UserError
from swarmtest.subjects.threads.drawing import timeline_text
from swarmtest.subjects.threads.explaining import message_of_fault
from swarmtest.subjects.threads.forking import NoAnswer, in_fork
from swarmtest.subjects.threads.racer import Racer
from swarmtest.subjects.threads.target import Target
from swarmtest.subjects.threads.timeline import Explanation
from swarmtest.threads import Schedule

_LOADING = 20.0
"""Seconds for importing the program."""


class RaceShown(AssertionError):
    """A schedule showed a fault; the message has its timeline.

    >>> issubclass(RaceShown, AssertionError)
    True
    """


def replay_race(
    program: str, schedule: Any, *, beside: str = "", cover: Sequence[str] = ()
) -> None:
    """Run a program by a schedule; raises `RaceShown`, an AssertionError, if it fails.

    `program` is what ``swarmtest race`` was given: ``shop.py::sell_out``; if its path is relative
    to a file, `beside` is that file. `schedule` is a `Schedule`, or its plain data. The program
    runs in a process of its own. If its code has changed, switches are made where its threads do
    what they did then; how many were found again is told as a warning.

    >>> _ = Path("greeting.py").write_text('''
    ... from threading import Thread
    ...
    ... def greet():
    ...     thread = Thread(target=print, args=["hello"])
    ...     thread.start()
    ...     thread.join()
    ... ''')
    >>> replay_race("greeting.py::greet", Schedule())
    """
    if not isinstance(schedule, Schedule):
        schedule = Schedule.from_plain(schedule)
    if beside and not os.path.isabs(program):
        program = os.path.relpath(Path(beside).resolve().parent / program)
    target = Target.of(program, tuple(cover))
    try:
        ran = in_fork(
            lambda: Racer(target).follow(schedule, traced=True), _LOADING + 3 * target.seconds
        )
    except NoAnswer as error:
        raise UserError(f"{target.reference}: {error}") from None
    for note in ran.notes:
        warnings.warn(note, stacklevel=2)
    if ran.problem:
        raise UserError(f"{target.reference}: {ran.problem}")
    if ran.fault is not None:
        message = message_of_fault(ran.fault)
        picture = timeline_text(Explanation("", message, ran.rows, (1, 1), ""), 92)
        raise RaceShown(f"{ran.fault.signature}\n\n{picture}")
