"""From what a user names on the command line to a subject, in this process or in a worker."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from swarmtest.errors import UserError
from swarmtest.loading import load_module, load_object, split_reference
from swarmtest.space import Constraint
from swarmtest.subjects.machine import Machine
from swarmtest.subjects.machine_subject import MachineSubject


@dataclass(frozen=True)
class SubjectReference:
    """How to find a subject again: what the store keeps and what travels to workers.

    >>> SubjectReference("examples/stack.py").api
    False
    """

    text: str
    """``file.py``, ``file.py::Machine``, ``module:Machine`` or, with `api`, ``module:Class``."""
    api: bool = False
    """Derive a machine from the public methods of a class."""
    steps: tuple[int, int] | None = None
    raises: tuple[str, ...] = ()
    """With `api`: more exceptions that are a correct outcome, by name."""
    avoid: tuple[Constraint, ...] = ()
    """What configurations must respect beside the subject's own constraints: known faults."""

    def load(self) -> MachineSubject:
        """The subject itself."""
        subject = self._load()
        subject.space = subject.space.constrained(self.avoid)
        return subject

    def _load(self) -> MachineSubject:
        if self.api:
            from swarmtest.subjects.api import api_machine

            found = load_object(self.text, "class")
            if not inspect.isclass(found):
                raise UserError(f"{self.text} is not a class: --api derives a machine from a class")
            return MachineSubject(
                api_machine(found, self.raises), self.text, self.steps, harness=False
            )
        where, name = split_reference(self.text)
        if not name:
            name = _only_machine(load_module(where), where)
        found = load_object(f"{where}:{name}", "machine", _is_machine)
        if not _is_machine(found):
            raise UserError(
                f"{where}:{name} is not a Machine: subclass swarmtest.Machine, or use --api to "
                "derive one from its public methods"
            )
        mark = "::" if where.endswith(".py") else ":"
        return MachineSubject(found, f"{where}{mark}{name}", self.steps)

    def to_json(self) -> dict[str, Any]:
        """The reference as plain data."""
        return {
            "text": self.text,
            "api": self.api,
            "steps": list(self.steps) if self.steps else None,
            "raises": list(self.raises),
            "avoid": [constraint.to_json() for constraint in self.avoid],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SubjectReference:
        """The reference that `to_json` described."""
        steps = tuple(data["steps"]) if data.get("steps") else None
        avoid = tuple(map(Constraint.from_json, data.get("avoid", ())))
        raises = tuple(data.get("raises", ()))
        return cls(data["text"], data.get("api", False), steps, raises, avoid)


def _is_machine(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, Machine) and member is not Machine


def _only_machine(module: ModuleType, where: str) -> str:
    names = [
        name
        for name, member in vars(module).items()
        if _is_machine(member) and member.__module__ == module.__name__
    ]
    if len(names) == 1:
        return names[0]
    if not names:
        raise UserError(
            f"{where} defines no machine: subclass swarmtest.Machine, "
            f"or name a class to derive one from: {where}::CLASS --api"
        )
    raise UserError(f"{where} defines several machines: name one of {', '.join(names)}")
