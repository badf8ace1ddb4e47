"""Tests that try to become code, and files with values of others.

Used by hostile.py. `reproduce` and `suite` write tests as programs and run these, and steps of
commands may be given to a shell. Each injection creates a file where it is executed.
"""

# ruff: noqa: E501  # a table is read by its rows

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_stores import STORE, columns, marker

_WRITING = (
    "reproduce FAULT", "reproduce FAULT --script", "suite 1 --no-reduce -q -o out_test.py",
    "replay FAULT --save out.py", "reduce FAULT --time 5s",
)  # fmt: skip
_OF_RULES = ("suite 10 --no-reduce -q -o out_test.py", "suite 10 -q -o out_test.py", "replay 10#3")
_OF_COMMANDS = ("suite 8 --no-reduce -q -o out_test.py", "replay --faults prog.toml", "triage 8")


def _with_step(arguments: Callable[[str], list[Any]]) -> Callable[[Any, str], None]:
    """Return what puts a step before the others, which a replay may skip."""

    def change(test: Any, call: str) -> None:
        steps = test.get("steps") or []
        if steps and isinstance(steps[0], list):
            steps.insert(0, ["write", arguments(call)])

    return change


def _labelled(test: Any, call: str) -> None:
    for step in [step for step in test.get("steps") or [] if isinstance(step, list)][:1]:
        step[2:] = [f"1 = {call}; v2", ""]


def _raising(test: Any, call: str) -> None:
    for step in test.get("steps") or []:
        if isinstance(step, list):
            step[2:] = [0, f"{call}, ValueError"]


def _with_texts(test: Any, call: str) -> None:
    for step in test.get("steps") or []:
        if isinstance(step, dict) and step.get("arguments"):
            step["arguments"] = dict.fromkeys(step["arguments"], f"{call} or 1")


def _with_parameters(test: Any, call: str) -> None:
    for step in test.get("steps") or []:
        if isinstance(step, dict) and step.get("arguments"):
            step["arguments"] = {f"x={call} or 1, **dict() or x": "1"}


def _with_rules(test: Any, call: str) -> None:
    for step in test.get("steps") or []:
        if isinstance(step, dict):
            step["rule"] = f"add(x={call} or 1) or state.{step['rule']}"


def _with_setting(test: Any, call: str) -> None:
    path = call.split("'")[3]
    test["settings"] = {"level": f"one; mkdir {path}"}


INJECTIONS: dict[str, tuple[str, ...]] = {
    "a reference": _WRITING,
    "a name": _WRITING,
    "a class": _WRITING,
    "a path": _WRITING,
    "a label": _WRITING,
    "an exception": _WRITING,
    "texts of rules": _OF_RULES,
    "parameters of rules": _OF_RULES,
    "names of rules": _OF_RULES,
    "a setting of a command": _OF_COMMANDS,
}
"""What of a test is code, and the commands that write or run it."""
NAMED = {
    "strategy": ("resume 1 --tests 210 -q", "resume 2 --tests 210 -q", "growth 1", "plan disk.py"),
    "subject": (
        "replay FAULT",
        "replay KEPT",
        "reduce FAULT --time 5s",
        "why FAULT --again",
        "resume 1 --tests 210 -q",
        "suite 1 -q",
        "reproduce FAULT",
        "mutate disk.py --campaign 1",
        "triage 1",
    ),
}
"""What a campaign may name, and the commands that load it."""
_CHANGES: dict[str, Callable[[Any, str], None]] = {
    "a reference": _with_step(lambda call: [{"$ref": f"0 if {call} else 0"}]),
    "a name": _with_step(lambda call: [{"$ref": 77}, {"$name": f"builtins:{call}"}]),
    "a class": _with_step(
        lambda call: [
            {"$tuple": [{"$dataclass": "os:mkdir", "fields": {"path": call.split("'")[3]}}]}
        ]
    ),
    "a path": _with_step(lambda call: [{"$path": [f"Path({call})", "x"]}]),
    "a label": _labelled,
    "an exception": _raising,
    "texts of rules": _with_texts,
    "parameters of rules": _with_parameters,
    "names of rules": _with_rules,
    "a setting of a command": _with_setting,
}


def name_functions(place: Path, what: str) -> None:
    """Let campaigns name what creates a file as their strategy, or their subject."""
    path = marker(place, what)
    with sqlite3.connect(place / STORE) as store:
        if what == "strategy":
            store.execute("UPDATE campaigns SET strategy = ?", (f"os:mkdir:path={path}",))
        else:
            reference = {"text": "code:InteractiveInterpreter", "api": True}
            store.execute(
                "UPDATE campaigns SET options = json_set(options, '$.subject', json(?))",
                (json.dumps(reference),),
            )
            step = ["runsource", [f"__import__('os').mkdir('{path}')"]]
            for table in ("faults", "tests", "reductions"):
                store.execute(
                    f"UPDATE {table} SET test = json_set(test, '$.steps', json(?)) "
                    "WHERE json_extract(test, '$.format') LIKE '%machine%'",
                    (json.dumps([step]),),
                )
    store.close()


def inject(place: Path, name: str) -> None:
    """Change every stored test, so that it would create a file where it is taken for code."""
    call = f"__import__('os').mkdir('{marker(place, name.replace(' ', '-'))}')"

    def changed(text: Any) -> Any:
        if not isinstance(text, str) or not text.startswith('{"format"'):
            return text
        test = json.loads(text)
        _CHANGES[name](test, call)
        return json.dumps(test)

    path = place / STORE
    with sqlite3.connect(path) as store:
        store.create_function("changed", 1, changed)
        for table, column in columns(path):
            if column == "code":
                store.execute(f"UPDATE \"{table}\" SET code = ''")
            elif column == "test":
                store.execute(f'UPDATE "{table}" SET test = changed(test) WHERE test IS NOT NULL')
    store.close()


_API = ("run ring:Ring --api -n 10 -q --values x.values", "check ring:Ring --api --values x.values")
_SECTION = "[ring:Ring.append]\n"
VALUES_FILES: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "that are code": ("x.values", _SECTION + "item = __import__('os').abort()\n", _API),
    "that are deep": ("x.values", _SECTION + "item = " + "[" * 5000 + "]" * 5000 + "\n", _API),
    "that are deep and odd": ("x.values", _SECTION + "item = " + "-" * 90_000 + "1\n", _API),
    "that are large": ("x.values", _SECTION + f"item = {'9' * 6000}\n", _API),
    "that are not there": ("x.values", _SECTION + "item =\n", _API),
    "of no method": ("x.values", "[ring:Ring.appendd]\nitem = 1\n", _API),
    "of no parameter": ("x.values", _SECTION + "itm = 1\n", _API),
    "with escapes": ("x.values", _SECTION + "item\x1b]0;owned\x07 = 1\n", _API),
    "with escapes in texts": ("x.values", _SECTION + "item = '\\x1b]0;owned\\x07\\ud800'\n", _API),
    "that are bytes": ("x.values", b"\xff\xfe\x00", _API),
    "that hold NULs": ("x.values", _SECTION + "item = '\0'\n", _API),
    "in the directory": ("ring.values", _SECTION + "item = open('x')\n", ("run ring:Ring --api -n 10 -q", "init --api ring:Ring")),
    "of a program that crashes": ("use.py", "import os, ring\nring.Ring().append(3)\nos.abort()\n", ("learn ring -o out.values -- PYTHON use.py",)),
    "of a program that leaves a daemon": ("use.py", "import subprocess, ring\nring.Ring().append(3)\nsubprocess.Popen(['sleep', '9744'])\n", ("learn ring -o out.values -- PYTHON use.py",)),
    "of a program that stops recording": ("use.py", "import sys, ring\nsys.setprofile(None)\nring.Ring().append(3)\n", ("learn ring -- PYTHON use.py",)),
    "of a program without directory": ("use.py", "import os, shutil, ring\nring.Ring().append(3)\nfor n in os.environ.values():\n    if n.endswith('/results'): shutil.rmtree(n)\n", ("learn ring -- PYTHON use.py",)),
    "of no program": ("use.py", "", ("learn ring -- no-such-command", "learn ring -- .", "learn", "learn ring", "learn ../x -- PYTHON use.py", "learn ring -o /dev/full -- PYTHON good.py")),
}  # fmt: skip
"""A file, what is in it, and the commands that read it."""
