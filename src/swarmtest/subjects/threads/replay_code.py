"""A schedule as a test of pytest, for the suite of the program."""

from __future__ import annotations

import os
from pathlib import Path

from swarmtest.subjects.threads.drawing import timeline_text
from swarmtest.subjects.threads.race_test import RaceTest
from swarmtest.subjects.threads.target import Target

_WIDTH = 92


def replay_code(target: Target, test: RaceTest, folder: Path | None = None) -> str:
    """A test file that fails as long as the schedule shows the fault.

    `folder`: where it will stand; the program is named from there.
    """
    lines = ['"""A race, found by `swarmtest race`.', ""]
    if test.explanation is not None:
        lines += [test.explanation.signature, "", *_picture(test), ""]
    lines += [f"Again: swarmtest {target}", '"""', "", "from swarmtest import replay_race", ""]
    if test.schedule is None:
        lines += [f"# {test.settings}, seed {test.seed}: no schedule was kept"]
        return "\n".join(lines) + "\n"
    lines += [f"SCHEDULE = {_schedule(test)}", "", ""]
    lines += [f"def {_name(target)}():", f"    {_call(target, folder)}"]
    return "\n".join(lines) + "\n"


def _picture(test: RaceTest) -> list[str]:
    assert test.explanation is not None
    text = timeline_text(test.explanation, _WIDTH)
    return [line.replace("\\", "\\\\").replace('"""', "'''") for line in text.splitlines()]


def _schedule(test: RaceTest) -> str:
    assert test.schedule is not None
    plain = test.schedule.to_plain()
    switches = [
        {name: value for name, value in switch.items() if value} for switch in plain["switches"]
    ]
    rows = "".join(f"        {switch!r},\n" for switch in switches)
    return f"{{\n    'version': {plain['version']},\n    'switches': [\n{rows}    ],\n}}"


def _name(target: Target) -> str:
    last = target.name.rpartition("::")[2] or Path(target.path).stem
    word = "".join(c if c.isalnum() else "_" for c in last).removeprefix("test_").strip("_")
    return f"test_race_{word.lower()}"


def _call(target: Target, folder: Path | None) -> str:
    path = target.path
    words = []
    if path.endswith(".py") and folder is not None:
        path = os.path.relpath(Path(path).resolve(), folder.resolve())
        words.append("beside=__file__")
    mark = "::" if path.endswith(".py") else ":"
    reference = f"{path}{mark}{target.name}" if target.name else path
    if target.cover:
        words.append(f"cover={list(target.cover)!r}")
    return f"replay_race({', '.join([repr(reference), 'SCHEDULE', *words])})"
