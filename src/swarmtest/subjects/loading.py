"""Load the subject that a user names on the command line, in this process or in a worker."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest.core.constraints import Constraint
from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of
from swarmtest.languages.user_objects import (
    entry_point,
    entry_point_module,
    is_module,
    load_module,
    load_object,
    split_reference,
)
from swarmtest.subjects.learned_values import read_values
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject, incompleteness, is_subject, is_subject_class

SAVED_FORMAT = "swarmtest test 1"
"""The format of a saved test whose own data does not say what it is a test of."""
ENTRY_POINTS = "swarmtest.subjects"
"""The group in which installed packages offer subjects by name."""


@contextlib.contextmanager
def examining(text: str) -> Iterator[None]:
    """Turn what a class of the user raises when it is looked at into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{text}: looking at the class raised {message_of(error)}") from error


LOADED: set[str] = set()
"""The names of the subjects that this process has loaded."""


@dataclass(frozen=True)
class SubjectReference:
    """How to load a subject: the store keeps it, and workers receive it.

    >>> SubjectReference("examples/stack.py").api
    False
    """

    text: str
    """``file.py``, ``file.py::Machine``, ``module:Machine``, ``file.toml``, for a program with
    threads ``race file.py::function`` or ``race -- ./program args``, the name of an entry point in
    the group ``swarmtest.subjects``, ``diff RELEASE RELEASE HARNESS``, or, with `api`,
    ``module:Class``."""
    api: bool = False
    """Derive a machine from the public methods of a class."""
    steps: tuple[int, int] | None = None
    raises: tuple[str, ...] = ()
    """With `api`: more exceptions that are a correct outcome, by name."""
    avoid: tuple[Constraint, ...] = ()
    """Constraints on configurations in addition to the subject's own, to avoid known faults."""
    repeats: float = 0.0
    """For machines: the share of values that repeat earlier ones of the same test."""
    like: str = ""
    """The ready model with which a class is compared, instead of `api`."""
    without: tuple[str, ...] = ()
    """With `api` and `like`: methods and checks to leave out."""
    tolerate: tuple[str, ...] = ()
    """For machines: faults after which a test goes on."""
    values: tuple[Any, ...] = ()
    """With `repeats`: numbers and texts that count as used from the beginning of each test."""
    value_features: bool | None = None
    """For machines: whether classes of argument values are features; None: as the machine says."""
    learned: str = ""
    """With `api`: the file with values that `swarmtest learn` has recorded."""
    network: bool = False
    """With `api`: whether tests may reach other hosts."""

    def load(self) -> Subject:
        """Return the subject, with the constraints in `avoid`."""
        LOADED.add(self.text)
        subject = self._load()
        if self.value_features is not None:
            if not isinstance(subject, MachineSubject):
                raise UserError(f"{self.text}: only the values of machines can be features")
            subject = subject.with_value_features(self.value_features)
        if self.repeats and isinstance(subject, MachineSubject):
            subject = subject.repeating(self.repeats, self.values)
        if self.tolerate:
            if not isinstance(subject, MachineSubject):
                raise UserError(f"{self.text}: only tests of machines can go on after a fault")
            subject = subject.tolerating(self.tolerate)
        subject.space = subject.space.constrained(self.avoid)
        return subject

    def _load(self) -> Subject:
        if self.text.startswith("diff "):
            from swarmtest.subjects.oracles.releases import ReleasesSubject

            harness = self.to_json() | {"tolerate": [], "avoid": []}
            return resized(ReleasesSubject(self.text, harness), None, self.text)
        if self.api or self.like:
            return self._load_class()
        if self.text.startswith("race "):
            return _load_race(self.text)
        where, name = split_reference(self.text)
        if where.endswith(".toml"):
            return self._load_command(where, name)
        if is_grammar_file(where):
            raise UserError(
                f"{where} is a grammar, and what is tested with it is not said: name it in a TOML "
                "file ([generate] grammar) or a GrammarSubject; `swarmtest features` lists it"
            )
        if not where.endswith(".py") and Path(where).is_file():
            raise UserError(
                f"{where}: a subject is a Python file (.py), a module, or a TOML file (.toml)"
            )
        if not name:
            installed = _installed_subject(where)
            if installed is not None:
                return _tested(installed, where, self.steps)
            name = _only_subject(load_module(where), where)
        member = load_object(f"{where}:{name}", "machine", is_testable)
        separator = "::" if where.endswith(".py") else ":"
        return _tested(member, f"{where}{separator}{name}", self.steps)

    def _load_class(self) -> Subject:
        option = "--like" if self.like else "--api"
        if ".toml" in self.text:
            raise UserError(f"{option} is for Python classes: name {self.text} without it")
        cls = load_object(self.text, "class")
        if not inspect.isclass(cls):
            raise UserError(f"{self.text} is not a class: {option} derives a machine from a class")
        machine: type[Machine]
        with examining(self.text):
            if self.like:
                from swarmtest.subjects.oracles.compared import compared_machine

                machine = compared_machine(cls, self.like, self.raises, self.without)
            else:
                from swarmtest.subjects.api import api_machine

                learned = read_values(self.learned) if self.learned else {}
                machine = api_machine(cls, self.raises, self.without, learned, self.network)
            return MachineSubject(machine, self.text, self.steps, harness=False)

    def _load_command(self, where: str, name: str) -> Subject:
        from swarmtest.subjects.command.subject import load_command_subject

        if name:
            raise UserError(f"{self.text}: a TOML file describes one subject: name it as {where}")
        subject = load_command_subject(where)
        return resized(subject, self.steps, where)

    def to_json(self) -> dict[str, Any]:
        """Return the reference as plain data."""
        return {
            "text": self.text,
            "api": self.api,
            "steps": list(self.steps) if self.steps else None,
            "raises": list(self.raises),
            "avoid": [constraint.to_json() for constraint in self.avoid],
            **({"repeats": self.repeats} if self.repeats else {}),
            **({"like": self.like} if self.like else {}),
            **({"without": list(self.without)} if self.without else {}),
            **({"tolerate": list(self.tolerate)} if self.tolerate else {}),
            **({"values": list(self.values)} if self.values else {}),
            **({"value_features": self.value_features} if self.value_features is not None else {}),
            **({"learned": self.learned} if self.learned else {}),
            **({"network": self.network} if self.network else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SubjectReference:
        """Return the reference that `to_json` described."""
        steps = tuple(data["steps"]) if data.get("steps") else None
        avoid = tuple(map(Constraint.from_json, data.get("avoid", ())))
        raises = tuple(data.get("raises", ()))
        repeats = float(data.get("repeats", 0.0))
        more = data.get("like", ""), tuple(data.get("without", ())), tuple(data.get("tolerate", ()))
        values = tuple(data.get("values", ()))
        api, value_features = data.get("api", False), data.get("value_features")
        last = value_features, data.get("learned", ""), data.get("network", False)
        return cls(data["text"], api, steps, raises, avoid, repeats, *more, values, *last)


def with_reference(test: Any, subject: str, reference: Any) -> dict[str, Any]:
    """Return a test as JSON data that also says how its subject is loaded.

    Tests of the built-in kinds are mappings with a format, to which the reference is added. A
    subject of the user's may have tests of any form, so such a test is enclosed.

    >>> with_reference(["pay"], "tills.py::Till", {"text": "tills.py::Till"})["test"]
    ['pay']
    """
    if isinstance(test, dict) and "format" in test:
        return test | {"reference": reference}
    return {"format": SAVED_FORMAT, "subject": subject, "reference": reference, "test": test}


def enclosed_test(saved: Any) -> Any:
    """Return the test in what `with_reference` returned.

    >>> enclosed_test(with_reference(["pay"], "tills.py::Till", None))
    ['pay']
    """
    return saved.get("test") if saved.get("format") == SAVED_FORMAT else saved


def package_of(where: str) -> str:
    """Return the package of a module, or of the subject that an entry point of this name offers.

    >>> package_of("shop.cart"), package_of("stack")
    ('shop', 'stack')
    """
    return module_of(where).partition(".")[0]


def module_of(where: str) -> str:
    """Return the module of the subject that an entry point of this name offers, or the name itself.

    >>> module_of("shop.cart")
    'shop.cart'
    """
    module = entry_point_module(ENTRY_POINTS, where) if _may_be_installed(where) else ""
    return module or where


def _installed_subject(name: str) -> Any:
    """Return what an entry point of this name offers; None if it is a file, a module or neither."""
    return entry_point(ENTRY_POINTS, name) if _may_be_installed(name) else None


def _may_be_installed(name: str) -> bool:
    """Return whether a name may be that of an entry point: it is not a file or a module."""
    path_like = "/" in name or name.endswith(".py")
    return not (path_like or "." in name or is_module(name))


def _tested(member: Any, name: str, steps: tuple[int, int] | None) -> Subject:
    """Return the subject for a member; raise `UserError` if it cannot be tested."""
    subject = subject_of(member, name, steps)
    if subject is None:
        shown = name.replace("::", ":")
        raise UserError(
            incompleteness(member, name)
            or f"{shown} is neither a Machine nor another subject: subclass "
            "swarmtest.Machine, or use --api to derive one from its public methods"
        )
    return subject


def _load_race(text: str) -> Subject:
    if " -- " in text:
        from swarmtest.race.native.subject import load_native_threads

        return load_native_threads(text)
    from swarmtest.race.subject import ThreadsSubject

    return ThreadsSubject(text)


def is_grammar_file(path: str) -> bool:
    """Return whether a file describes a language, judged by its name.

    >>> is_grammar_file("sql.lark"), is_grammar_file("sql.py")
    (True, False)
    """
    return path.endswith((".lark", ".g4"))


def is_testable(member: object) -> bool:
    """Return whether a member of a module is a subject or `subject_of` can turn it into one.

    >>> is_testable(Machine), is_testable(len)
    (False, False)
    """
    return (
        _is_machine(member)
        or _is_state_machine(member)
        or is_subject_class(member)
        or isinstance(member, Subject)
        or is_subject(member)
    )


def subject_of(member: Any, name: str, steps: tuple[int, int] | None = None) -> Subject | None:
    """Return a subject for a machine, a Hypothesis state machine or a subject; otherwise None.

    A class that derives from `Subject` is called without arguments.

    >>> class Lamp(Machine): pass
    >>> subject_of(len, "len") is None
    True
    """
    if _is_machine(member):
        return MachineSubject(member, name, steps)
    if _is_state_machine(member):
        from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

        return RuleBasedSubject(member, name, steps)
    if is_subject_class(member):
        member = _instance(member, name)
    if isinstance(member, Subject) and not is_subject(member):
        raise UserError(incompleteness(member, name))
    if is_subject(member):
        subject: Subject = copy.copy(member)
        subject.name = name
        return resized(subject, steps, name)
    return None


def resized(subject: Any, steps: tuple[int, int] | None, name: str) -> Subject:
    """Return the subject with tests of another size; raise `UserError` if it cannot change it."""
    unchanged: Subject = subject
    if steps is None:
        return unchanged
    if not hasattr(subject, "resized"):
        raise UserError(f"{name}: its generator decides how long a test is: omit --steps")
    changed: Subject = subject.resized(steps)
    return changed


def _is_machine(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, Machine) and member is not Machine


def _is_state_machine(member: object) -> bool:
    """Return whether a member is a Hypothesis state machine or its TestCase.

    Hypothesis is not imported for it: the module of a state machine has already imported it.
    """
    if "hypothesis.stateful" not in sys.modules or not inspect.isclass(member):
        return False
    from swarmtest.subjects.hypothesis.declaration import is_state_machine

    return is_state_machine(member)


def _instance(cls: type[Subject], name: str) -> Subject:
    try:
        return cls()
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{name}: {cls.__name__}() raised {message_of(error)}: name an object of the class "
            "instead, or give its parameters defaults"
        ) from None


def _only_subject(module: ModuleType, where: str) -> str:
    """Return the name of the one subject that a module defines."""
    members = {
        name: member for name, member in vars(module).items() if _is_defined_in(member, module)
    }
    # An object is preferred to its class: it was made with the parameters that are wanted.
    used = {type(member) for member in members.values() if not inspect.isclass(member)}
    names = [
        name for name, member in members.items() if not (inspect.isclass(member) and member in used)
    ]
    if names and len({id(_machine_behind(getattr(module, name))) for name in names}) == 1:
        return names[0]
    if not names:
        for name, member in vars(module).items():
            incomplete = incompleteness(member, f"{where}::{name}")
            if incomplete:
                raise UserError(incomplete)
        raise UserError(
            f"{where} defines no machine and no other subject: subclass swarmtest.Machine, "
            f"or name a class to derive one from: {where}::CLASS --api"
        )
    raise UserError(f"{where} defines several subjects: name one of {', '.join(names)}")


def _machine_behind(member: Any) -> Any:
    """Return a member; for a TestCase made from a Hypothesis state machine, that machine.

    Test modules name the TestCase, so that both are in the module; they are one subject.
    """
    if not _is_state_machine(member):
        return member
    from swarmtest.subjects.hypothesis.declaration import state_machine_of

    return state_machine_of(member)


def _is_defined_in(member: Any, module: ModuleType) -> bool:
    """Return whether a member is testable and the module defines it instead of importing it."""
    if not is_testable(member):
        return False
    return not inspect.isclass(member) or member.__module__ == module.__name__
