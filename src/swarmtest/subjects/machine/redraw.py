"""Draw again the arguments that a saved test cannot hold.

A saved test holds data only (see `values`), and some arguments are no data: open files, objects of
a class without fields, functions made on the way. Such an argument is saved as the place where it
was drawn: ``{"$drawn": [step, position]}``, together with the *origin* of the test, its
configuration and its seed. To run the test, the trial is generated again up to that draw, which
gives the state of the random source; the argument's generator then draws from that state. The value
is a new object each time, as it was in the trial, and other steps may be gone.

An argument from a list of options (`sampled_from`) is saved as its number in that list:
``{"$option": 2}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.compiled import ArgumentSnapshot, WatchedRandom
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.machine.machine import Action, FromPool, Machine
from swarmtest.subjects.machine.mixtures.program_random import ProgramRandom
from swarmtest.subjects.machine.test import MachineTest, Step, drawn_arguments
from swarmtest.subjects.machine.values import from_json, to_json

if TYPE_CHECKING:
    from swarmtest.core.configuration import Configuration
    from swarmtest.subjects.machine.subject import MachineSubject

Place = tuple[int, int]
"""A step's number in the trial, from 1, and an argument's position."""


def saved_argument(value: Any, source: Generator[Any] | FromPool, place: Place) -> Any:
    """Return an argument as JSON data; if it has no form, say how to draw it again.

    A value that the program may change is given as a `ArgumentSnapshot`.
    """
    data = value.data if type(value) is ArgumentSnapshot else to_json(value)
    if type(data) is not dict or "$lost" not in data or isinstance(source, FromPool):
        return data
    for number, option in enumerate(source.options):
        if option is value:
            return {"$option": number, "repr": data["$lost"]}
    return {"$drawn": list(place), "repr": data["$lost"]}


def origin_of(configuration: Configuration, seed: int) -> dict[str, Any]:
    """Return the origin of a test, as JSON data."""
    return {"configuration": configuration.to_json(), "seed": seed}


class Redraw:
    """The arguments of one test, with those that have to be drawn again."""

    def __init__(self, subject: MachineSubject, test: MachineTest) -> None:
        self._subject = subject
        self._test = test
        self._states: dict[Place, Any] = {}

    def prepare(self) -> None:
        """Find the states of the random source from which arguments are drawn again."""
        wanted = set(drawn_arguments(self._test.steps))
        if wanted:
            self._states = random_states(self._subject, self._test.origin, wanted)

    def values(self, action: Action, step: Step) -> dict[str, Any]:
        """Return the arguments of a step by name, as new values; references remain `Ref`."""
        pairs = zip(action.arguments.items(), step.arguments, strict=False)
        return {name: self._value(source, data) for (name, source), data in pairs}

    def _value(self, source: Generator[Any] | FromPool, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(source, Generator):
            if "$option" in data:
                return _option(source, data["$option"])
            if "$drawn" in data:
                module = self._subject.machine.__module__
                return _drawn(source, self._states, tuple(data["$drawn"]), module)
        return from_json(data)


def random_states(
    subject: MachineSubject, origin: Mapping[str, Any], wanted: set[Place]
) -> dict[Place, Any]:
    """Generate a trial again, up to the last wanted draw, and return the states before the draws.

    The steps before that draw run. They did not end their process in the trial.
    """
    try:
        configuration = subject.space.configuration(origin["configuration"])
        seed = int(origin["seed"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(
            "this test has an argument to draw again, and does not say from which seed"
        ) from None
    watched = _StatesBefore(wanted, subject.machine.__module__)
    journal, subject.journal = subject.journal, watched.note_step
    try:
        subject.generate_with(watched, configuration, seed)
    finally:
        subject.journal = journal
    return watched.states


def drawn_argument(
    machine: type[Machine], action: str, position: int, origin: Mapping[str, Any], step: int
) -> Any:
    """Draw an argument of an action again; printed tests use this.

    `step` is the number of the step in the trial that `origin` gives.
    """
    from swarmtest.subjects.machine.subject import MachineSubject

    subject = MachineSubject(machine)
    place = (step, position)
    source = list(subject.actions[action].arguments.values())[position]
    assert isinstance(source, Generator)
    return _drawn(source, random_states(subject, origin, {place}), place, machine.__module__)


def option_argument(machine: type[Machine], action: str, position: int, number: int) -> Any:
    """Return an option of an argument by its number; printed tests use this."""
    from swarmtest.subjects.machine.subject import MachineSubject

    source = list(MachineSubject(machine).actions[action].arguments.values())[position]
    assert isinstance(source, Generator)
    return _option(source, number)


def _drawn(source: Generator[Any], states: Mapping[Place, Any], place: Any, module: str) -> Any:
    if place not in states:
        raise UserError(
            f"the argument drawn for step {place[0]} of the trial cannot be drawn again: the "
            "subject has changed since"
        )
    rng = ProgramRandom(module)
    rng.set_draw_state(states[place])
    return source.draw(rng)


def _option(source: Generator[Any], number: Any) -> Any:
    if not (isinstance(number, int) and 0 <= number < len(source.options)):
        raise UserError(f"this test uses option {number} of an argument, which has fewer")
    return source.options[number]


class _Enough(BaseException):
    """All wanted states are known: end the test here, as a failure of the program would."""


class _StatesBefore(WatchedRandom):
    """Notes the state of the random source before each wanted draw."""

    def __init__(self, wanted: set[Place], module: str = "") -> None:
        super().__init__(module)
        self.states: dict[Place, Any] = {}
        self._wanted = wanted
        self._step = 1

    def note_step(self, entry: Any) -> None:
        """Count the steps of the trial; other entries of a journal are not steps."""
        self._step += not isinstance(entry, dict)

    def begin_argument(self, position: int) -> None:
        place = (self._step, position)
        if place in self._wanted:
            self.states[place] = self.draw_state()
            if len(self.states) == len(self._wanted):
                raise _Enough
