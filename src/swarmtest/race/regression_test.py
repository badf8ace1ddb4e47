"""Regression tests of races: write a pytest file that replays a schedule, and what it calls."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.control.schedulers import Schedule
from swarmtest.race.explanation import message_of_fault
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer
from swarmtest.race.timeline import Explanation, timeline_text

_TIMELINE_WIDTH = 92


def replay_code(raced: RacedProgram, test: RaceTest, folder: Path | None = None) -> str:
    """Return a pytest file whose test fails as long as the schedule shows the fault.

    `folder` is the directory that the file is written to; the program is named relative to it.
    """
    lines = ['"""A race, found by `swarmtest race`.', ""]
    if test.explanation is not None:
        lines += [test.explanation.signature, "", *_timeline_lines(test), ""]
    lines += [f"Again: swarmtest {raced}", '"""', "", "from swarmtest.race import replay_race", ""]
    if test.schedule is None:
        lines += [f"# {test.settings}, seed {test.seed}: no schedule was kept"]
        return "\n".join(lines) + "\n"
    lines += [f"SCHEDULE = {_schedule_literal(test)}", "", ""]
    lines += [f"def {_test_name(raced)}():", f"    {_replay_call(raced, folder)}"]
    return "\n".join(lines) + "\n"


def _timeline_lines(test: RaceTest) -> list[str]:
    assert test.explanation is not None
    text = timeline_text(test.explanation, _TIMELINE_WIDTH)
    return [line.replace("\\", "\\\\").replace('"""', "'''") for line in text.splitlines()]


def _schedule_literal(test: RaceTest) -> str:
    assert test.schedule is not None
    plain = test.schedule.to_plain()
    switches = [
        {name: value for name, value in switch.items() if value} for switch in plain["switches"]
    ]
    rows = "".join(f"        {switch!r},\n" for switch in switches)
    return f"{{\n    'version': {plain['version']},\n    'switches': [\n{rows}    ],\n}}"


def _test_name(raced: RacedProgram) -> str:
    last = raced.name.rpartition("::")[2] or Path(raced.path).stem
    word = "".join(c if c.isalnum() else "_" for c in last).removeprefix("test_").strip("_")
    return f"test_race_{word.lower()}"


def _replay_call(raced: RacedProgram, folder: Path | None) -> str:
    path = raced.path
    words = []
    if path.endswith(".py") and folder is not None:
        path = os.path.relpath(Path(path).resolve(), folder.resolve())
        words.append("beside=__file__")
    mark = "::" if path.endswith(".py") else ":"
    reference = f"{path}{mark}{raced.name}" if raced.name else path
    if raced.cover:
        words.append(f"cover={list(raced.cover)!r}")
    return f"replay_race({', '.join([repr(reference), 'SCHEDULE', *words])})"


_LOADING_SECONDS = 20.0
"""Seconds allowed for importing the program."""


class RaceShown(AssertionError):
    """Raised when a schedule showed a fault; the message contains its timeline.

    >>> issubclass(RaceShown, AssertionError)
    True
    """


def replay_race(
    program: str, schedule: Any, *, beside: str = "", cover: Sequence[str] = ()
) -> None:
    """Run a program by a schedule; raise `RaceShown`, an AssertionError, if it fails.

    `program` is the argument of ``swarmtest race``, such as ``shop.py::sell_out``. If its path is
    relative to a file, pass that file as `beside`. `schedule` is a `Schedule` or its plain data.
    The program runs in a process of its own. If its code has changed, switches are made where the
    threads do what they did when the schedule was recorded; a warning says how many places were
    found again.

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
    raced = RacedProgram.of(program, tuple(cover))
    try:
        ran = in_fork(
            lambda: Racer(raced).follow(schedule, traced=True),
            _LOADING_SECONDS + 3 * raced.seconds,
        )
    except NoAnswer as error:
        raise UserError(f"{raced.reference}: {error}") from None
    for note in ran.notes:
        warnings.warn(note, stacklevel=2)
    if ran.problem:
        raise UserError(f"{raced.reference}: {ran.problem}")
    if ran.fault is not None:
        message = message_of_fault(ran.fault)
        picture = timeline_text(Explanation("", message, ran.rows, (1, 1), ""), _TIMELINE_WIDTH)
        raise RaceShown(f"{ran.fault.signature}\n\n{picture}")
