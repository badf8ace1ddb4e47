"""The process in which one release of a package is tested: it answers questions on standard input.

The release is imported from a directory of its own, before anything else of that name.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sized
from itertools import islice
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of
from swarmtest.subjects.machine.machine import Action, Machine
from swarmtest.subjects.machine.replay import MachineReplay
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.machine.test import MachineTest
from swarmtest.subjects.machine.values import text_of

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_LONGEST = 2000
_MOST = 1000


def main() -> None:
    """Answer questions, a line of JSON each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # what the program prints is no answer
    start = json.loads(sys.stdin.readline())
    sys.path.insert(0, start["directory"])
    sys.path.insert(1, os.getcwd())
    subject: MachineSubject | None = None
    for line in sys.stdin:
        try:
            subject = subject or _load(start["harness"])
            answer = answered(subject, json.loads(line))
        except UserError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def _load(harness: dict[str, Any]) -> MachineSubject:
    from swarmtest.subjects.loading import SubjectReference

    subject = SubjectReference.from_json(harness).load()
    if not isinstance(subject, MachineSubject):
        raise UserError(f"{subject.name} is not a machine: releases are compared by its actions")
    return subject


def answered(subject: MachineSubject, question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a question.

    >>> from swarmtest.subjects.api import api_machine
    >>> answer = answered(MachineSubject(api_machine(list)), {"ask": "space"})
    >>> "append" in str(answer)
    True
    """
    if question["ask"] == "space":
        parameters = {name: [*action.arguments] for name, action in subject.actions.items()}
        return {"space": subject.space.to_json(), "parameters": parameters}
    if question["ask"] == "test":
        configuration = subject.space.configuration(question["configuration"])
        return {"test": subject.test_of(configuration, question["seed"])}
    test = MachineTest.from_json(question["test"])
    if question["ask"] == "code":
        return {"code": subject.code(question["test"])}
    replay = ObservedReplay(subject, test)
    replay.run()
    return {"steps": replay.observed}


class ObservedReplay(MachineReplay):
    """A replay that notes what each action returned or raised, and the state after it."""

    def __init__(self, subject: MachineSubject, test: MachineTest) -> None:
        super().__init__(subject, test)
        self.observed: list[dict[str, Any]] = []

    def call(
        self, machine: Machine, action: Action, positional: list[Any], named: dict[str, Any]
    ) -> Any:
        """Call an action, and note what came of it."""
        try:
            result = super().call(machine, action, positional, named)
        except Exception as error:
            did = f"raised {message_of(getattr(error, 'original', error))}"
            self._note(machine, action, did.partition(":")[0])
            raise
        shown = getattr(machine, "observed", None) if result is None else result
        self._note(machine, action, f"returned {shown_value(shown)}")
        return result

    def _note(self, machine: Machine, action: Action, did: str) -> None:
        tested = getattr(machine, "object", None)
        own = getattr(machine, "observe", None)
        state = own() if callable(own) else _contents(tested)
        step = {"at": self._position, "action": action.name, "did": did}
        self.observed.append(step | {"state": shown_value(state)})


def _contents(tested: Any) -> Any:
    """Return what can be seen of an object under test without changing it."""
    from swarmtest.subjects.oracles.metamorphic import fingerprint

    try:
        return fingerprint(tested) if tested is not None else None
    except Exception as error:
        return message_of(error)


def shown_value(value: Any) -> str:
    """Return a value as text that is the same in each process.

    >>> shown_value([1, object()])
    '[1, <object object at 0x?>]'
    """
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__} of {sorted(map(text_of, value))}"[:_LONGEST]
    # Not the `repr` of an object of the package: that another release writes it in another way is
    # no difference in what it does.
    if type(value).__module__ != "builtins" and isinstance(value, Iterable):
        kind = f"{type(value).__name__} of "
        value = kind + text_of(list(islice(value, _MOST)) if isinstance(value, Sized) else "")
        return _ADDRESS.sub("0x?", value)[:_LONGEST]
    return _ADDRESS.sub("0x?", text_of(value))[:_LONGEST]


if __name__ == "__main__":
    main()
