"""A machine class as a subject: generate tests while running them, replay them, print them."""

from __future__ import annotations

import itertools
import random
import sys
import traceback
from bdb import BdbQuit
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeAlias

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Integer, Scalar
from swarmtest.core.errors import UserError
from swarmtest.core.faults import (
    examinable,
    fault_of_exception,
    message_of,
    operation_of_check,
)
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.subjects.machine.compiled import (
    actions_of,
    compile_machine,
    invariants_of,
    space_of,
)
from swarmtest.subjects.machine.generators import Generator
from swarmtest.subjects.machine.machine import Action, Machine
from swarmtest.subjects.machine.mixtures.comparisons import log_into, watch_comparisons
from swarmtest.subjects.machine.mixtures.program_random import ProgramRandom
from swarmtest.subjects.machine.redraw import origin_of, saved_argument
from swarmtest.subjects.machine.repeats import UsedValues
from swarmtest.subjects.machine.replay import (
    Journal,
    MachineReplay,
    ReplacementAction,
    StepRecord,
    journalled,
)
from swarmtest.subjects.machine.test import MachineTest, Step, drawn_arguments
from swarmtest.subjects.machine.value_features import ValueFeatures, with_value_features
from swarmtest.subjects.subject import Subject, named_fault

_PASSED = Verdict.PASSED
LENGTH = "steps"
"""The setting of a machine that is the length of its tests."""
_MAX_CACHED_PICKS = 4096
"""Configurations whose list of included actions is cached."""

_AS_NUMBERS = bytes.maketrans(b"01", b"\0\1")

Length: TypeAlias = int | tuple[int, int] | Callable[[random.Random], int]
_Loop: TypeAlias = tuple[
    Callable[..., None], Sequence[int], Sequence[float] | None, Sequence[float] | None
]
"""A generated loop with its ``picks``, ``weights`` and ``bounds`` (see `compiled`)."""


class MachineSubject(Subject):
    """The subject that tests a machine class.

    >>> from swarmtest import Machine, action
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 3
    ...     @action
    ...     def down(self): self.n -= 1
    >>> subject = MachineSubject(Counter)
    >>> result = subject.execute(subject.space.configuration(["up"]), seed=1)
    >>> result.verdict.label, result.steps
    ('failed', 3)
    """

    suffix = ".py"
    weighted = True

    def __init__(
        self,
        machine: type[Machine],
        name: str = "",
        steps: int | tuple[int, int] | None = None,
        harness: bool = True,
        repeats: float = 0.0,
        tolerate: Sequence[str] = (),
        values: Sequence[Any] = (),
        value_features: bool | None = None,
    ) -> None:
        """Create the subject.

        `repeats` is the share of values that repeat earlier ones, `tolerate` names faults after
        which a test goes on, in addition to the machine's own. With `repeats`, `values` count as
        used before the first step. `value_features`: whether classes of argument values are
        features; None: as the machine says.
        """
        self.machine = machine
        self.harness = _file_of(machine) if harness else ""
        """The file that only drives the program; empty if the machine is derived from a class."""
        self.name = name or f"{machine.__module__}:{machine.__qualname__}"
        self.space = space_of(machine)
        self._repeats, self._values = repeats, tuple(values)
        self._used = UsedValues(repeats, values) if repeats else None
        self.tolerated = (*machine.tolerate, *tolerate)
        """The faults after which a test goes on."""
        if machine.tolerate_and not in ("restart", "go on"):
            raise UserError(
                f"machine {machine.__name__!r}: tolerate_and is 'restart' or 'go on', not "
                f"{machine.tolerate_and!r}"
            )
        self.value_features = machine.value_features if value_features is None else value_features
        """Whether classes of argument values are features."""
        own_features = self.space.feature_names
        self._values_of = None
        if self.value_features:
            actions = actions_of(machine)
            self._values_of = ValueFeatures(actions, own_features)
            self.space = with_value_features(self.space, actions, self._values_of.names)
        self.compiled = compile_machine(
            machine,
            self._changed_action if self._used or self._values_of else None,
            self.tolerates if self.tolerated else None,
        )
        self.actions = {action.name: action for action in self.compiled.actions}
        self.modes = self.space.feature_names[len(self.actions) :]
        """The features that are not actions: modes, which the machine reads among its settings, and
        classes of values. They take no steps, so how much of them is in a test is no question."""
        self._modes_read = own_features[len(self.actions) :]
        self._reads_settings = bool(self.space.settings or self._modes_read)
        self._first_value = len(own_features)
        self._action_bits = (1 << len(self.actions)) - 1
        self._steps = steps
        self._length = _length(machine, steps)
        # A length that was asked for takes precedence over the setting.
        self._length_is_drawn = steps is None and _has_length(machine, self.space)
        self.range_is_setting = (
            isinstance(self._length, tuple) and LENGTH not in self.space.setting_names
        )
        """Whether a range of lengths is a setting of the space, for the roles of lengths; the
        machine declares no such setting, so it is not among those that it reads."""
        if isinstance(self._length, tuple) and self.range_is_setting:
            low, high = self._length
            length = Integer(LENGTH, low, high, default=(low + high) // 2)
            self.space = Space([*self.space.dimensions, length], self.space.constraints)
        self._check = self.compiled.check
        self._guarded = any(guard is not None for guard in self.compiled.possible)
        self._stops = machine._in_loop or machine.stop is not Machine.stop
        self._rng: random.Random = ProgramRandom(machine.__module__)
        # Random.seed() is Python code that looks at the type of the seed first; this is the C
        # function that it calls, which is faster.
        self._reseed = super(random.Random, self._rng).seed
        self._picks: dict[int, list[int]] = {}
        self._mixed = any(
            isinstance(source, Generator) and source.mixed
            for action in self.compiled.actions
            for source in action.arguments.values()
        )
        """Whether draws depend on what the test has drawn and compared before."""
        self._watched = not self._mixed or machine.compared is False

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test while running it."""
        rng = self._rng
        self._reseed(seed)
        rng.gauss_next = None  # type: ignore[attr-defined]  # Random.seed() resets this too
        if self._mixed:
            self._begin_values(rng)
        if self._values_of is not None:
            self._values_of.begin(configuration.weights[self._first_value :])
        if self._used is not None:
            self._used.forget()
        count = self._length if type(self._length) is int else self._draw_length(rng)
        if self._length_is_drawn or (
            # Stored configurations may be of a time when ranges were not in the space.
            self.range_is_setting and LENGTH in configuration.space.setting_names
        ):
            count = configuration[LENGTH]
        run, picks, weights, bounds = self._loop(configuration)
        if self.modes and not configuration.bits & self._action_bits:
            count = 0  # with modes, a configuration that is not empty may have no action
        record = StepRecord() if self.journal is None else self._journal(configuration, seed)
        tally: list[int] = []
        another = self._guarded and ReplacementAction(
            picks, self.compiled.possible, weights, bounds
        )
        machine = None
        fault = None
        try:
            machine = self.new_machine()
            if self._reads_settings:
                machine.settings = self.settings_of(configuration)
            try:
                machine.start()
                self._check(machine)
                run(
                    machine,
                    rng,
                    picks,
                    weights,
                    bounds,
                    count,
                    record,
                    record.rescued,
                    another,
                    tally,
                )
            finally:
                if self._stops:
                    machine._end()
        except BaseException as error:
            last = self.compiled.actions[record[-1][0]].name if record else ""
            fault = self.fault_of(error, last)
        hits = machine.hits() if machine is not None and machine._events else ()
        skipped = tally.pop() if tally else 0
        used = tuple(tally) if tally else (0,) * len(self.actions)
        if self.modes:
            used += (0,) * len(self.modes)
        if fault is None and not self.keep_tests:
            result = Result(_PASSED, None, used, hits, len(record), skipped)
        else:
            test = self._test(record, configuration, seed).to_json()
            verdict = Verdict.FAILED if fault else _PASSED
            result = Result(verdict, fault, used, hits, len(record), skipped, test)
        if machine is not None and (machine._covered or machine._missing):
            return result._replace(covered=machine._covered, missing=machine._missing)
        return result

    def warm_up(self) -> None:
        """Watch the comparisons of the program, if tests need that."""
        if not self._watched:
            self._watched = True
            watch_comparisons(self.machine.__module__)

    def _begin_values(self, rng: random.Random) -> None:
        """Forget the values of the test before; watch the program's comparisons from now on."""
        self.warm_up()
        if isinstance(rng, ProgramRandom):
            rng.begin()
            log_into(rng.compared)

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test that a configuration and a seed give; it is run to find out."""
        entries: list[Any] = []
        self.journal = entries.append
        try:
            self.execute(configuration, seed)
        finally:
            self.journal = None
        return self._test_of_journal(entries, configuration).to_json()

    def generate_with(self, rng: random.Random, configuration: Configuration, seed: int) -> None:
        """Generate a test while running it, with another random source."""
        own = self._rng, self._reseed
        self._rng, self._reseed = rng, super(random.Random, rng).seed
        try:
            self.execute(configuration, seed)
        finally:
            self._rng, self._reseed = own

    def result_of_journal(
        self, entries: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process, from its journal entries."""
        test = self._test_of_journal(entries, configuration)
        used = tuple(sum(step.action == name for step in test.steps) for name in self.actions)
        used += (0,) * len(self.modes)
        return Result(Verdict.FAILED, fault, used, (), len(test), 0, test.to_json())

    def run(self, test: Any) -> Result:
        """Run a saved test step by step; steps that cannot run are skipped and counted."""
        return MachineReplay(self, MachineTest.from_json(test)).run()

    def size(self, test: Any) -> int:
        """Return how many steps a saved test has."""
        return len(MachineTest.from_json(test))

    def code(self, test: Any) -> str:
        """Return a saved test as a Python program."""
        from swarmtest.subjects.machine.code import code_of

        return code_of(self.machine, MachineTest.from_json(test), self.actions)

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return the test without unneeded steps, with simpler arguments, in a canonical order."""
        from swarmtest.subjects.machine.reduction import reduced_machine_test

        defaults = self._read_settings(self.space.default()) | dict.fromkeys(
            self._modes_read, False
        )
        whole = MachineTest.from_json(test)
        return reduced_machine_test(whole, self.actions, defaults, interesting).to_json()

    def parts(self, test: Any) -> list[Any]:
        """Return the steps of a saved test."""
        return list(MachineTest.from_json(test).steps)

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return a saved test with its steps replaced."""
        return replace(MachineTest.from_json(test), steps=tuple(parts)).to_json()

    def _changed_action(self, action: Action) -> Action:
        """Return an action whose arguments follow the configuration, and repeat."""
        if self._values_of is not None:
            action = self._values_of.action(action)
        return self._used.action(action) if self._used is not None else action

    def repeating(self, share: float, values: Sequence[Any] = ()) -> MachineSubject:
        """Return the same subject, with tests in which this share of the values repeat.

        They repeat earlier values of the same test, or one of `values`.
        """
        steps = self._steps
        return MachineSubject(
            self.machine,
            self.name,
            steps,
            bool(self.harness),
            share,
            self.tolerated,
            values,
            self.value_features,
        )

    def tolerating(self, faults: Sequence[str]) -> MachineSubject:
        """Return the same subject, with tests that go on after these faults."""
        steps = self._steps
        tolerate = (*self.tolerated, *faults)
        harness, repeats = bool(self.harness), self._repeats
        return MachineSubject(
            self.machine,
            self.name,
            steps,
            harness,
            repeats,
            tolerate,
            self._values,
            self.value_features,
        )

    def with_value_features(self, on: bool = True) -> MachineSubject:
        """Return the same subject, in which classes of argument values are features, or not."""
        steps = self._steps
        harness, repeats = bool(self.harness), self._repeats
        return MachineSubject(
            self.machine, self.name, steps, harness, repeats, self.tolerated, self._values, on
        )

    def settings_of(self, configuration: Configuration) -> dict[str, Scalar]:
        """Return the values of the settings, and whether each mode is on."""
        included = configuration.bits >> len(self.actions)
        modes = {name: bool(included >> i & 1) for i, name in enumerate(self._modes_read)}
        return {**self._read_settings(configuration), **modes}

    def _read_settings(self, configuration: Configuration) -> dict[str, Scalar]:
        """Return the values of the settings that the machine declares."""
        settings = configuration.settings
        if self.range_is_setting:
            settings.pop(LENGTH, None)
        return settings

    def new_machine(self) -> Machine:
        """Create a machine for one test."""
        machine = self.machine()
        if self.tolerated:
            machine.tolerate = self.tolerated
        if machine._in_loop:
            machine._is_tested = True
        return machine

    def tolerates(
        self, machine: Machine, error: Exception, last: str = "", *, restart: bool = False
    ) -> bool:
        """Return whether the test goes on after what an action or an invariant raised.

        `last` is the action that ran last: the identity of some faults tells it.
        """
        if isinstance(error, UserError):
            return False
        fault = named_fault(self, self.fault_of(error, last))
        return machine.tolerates(error, fault, restart=restart)

    def told_again(self, test: Any) -> Result:
        """Run a saved test; in the result's test each step has the expected exception it raised."""
        return MachineReplay(self, MachineTest.from_json(test)).run(noting=True)

    def step(self, noted: tuple[Any, ...], label: int, raised: str = "") -> Step:
        """Return a step from what the loop recorded: the action's number, then its arguments."""
        action = self.compiled.actions[noted[0]]
        arguments = tuple(
            saved_argument(argument, source, (label, position))
            for position, (argument, source) in enumerate(
                zip(noted[1:], action.arguments.values(), strict=True)
            )
        )
        return Step(action.name, arguments, label if action.into is not None else 0, raised)

    def fault_of(self, error: BaseException, last: str = "") -> Fault:
        """Return the fault that an exception shows; raise what the program did not cause.

        `last` is the action that ran last; empty if none did.
        """
        error = examinable(error)
        if isinstance(error, UserError):
            raise error
        if isinstance(error, KeyboardInterrupt | BdbQuit) and self.interruptible:
            raise KeyboardInterrupt from error
        violated = _violated(error.__traceback__, self.compiled.check, invariants_of(self.machine))
        if violated:
            after = f" after {last}" if last else ""
            return fault_of_exception(error, "invariant", f"invariant {violated}{after}:")
        guarded = self._guard_in(error.__traceback__)
        if guarded:
            self._refuse_mistake_in_guard(guarded, error)
            return fault_of_exception(error, label=f"guard of {guarded}:")
        if isinstance(error, MemoryError):
            return fault_of_exception(error, "memory")
        kind = getattr(type(error), "swarmtest_kind", "exception")
        operation = operation_of_check(self.machine, error, last)
        return fault_of_exception(error, kind, operation=operation)

    def _guard_in(self, tb: TracebackType | None) -> str:
        """Return the action whose guard is in a traceback; empty if there is none."""
        codes = {_code_of(a.when): name for name, a in self.actions.items()}
        while tb is not None:
            if tb.tb_frame.f_code in codes:
                return codes[tb.tb_frame.f_code]
            tb = tb.tb_next
        return ""

    def _refuse_mistake_in_guard(self, action: str, error: BaseException) -> None:
        """Raise `UserError` for an exception that a guard or its machine raised, not the program.

        It is no fault of a test: no test can show it again, for it comes before the next step.
        """
        if not isinstance(error, Exception) or isinstance(error, MemoryError | RecursionError):
            return
        frames = list(traceback.walk_tb(error.__traceback__))
        innermost, line = frames[-1]
        own = {
            getattr(member, "__code__", None)
            for base in self.machine.__mro__
            for member in vars(base).values()
        }
        if innermost.f_code in own or innermost.f_code is _code_of(self.actions[action].when):
            raise UserError(
                f"machine {self.machine.__name__!r}: the guard (when=) of {action!r} raised "
                f"{message_of(error)} ({innermost.f_code.co_filename}:{line})"
            ) from error

    def _draw_length(self, rng: random.Random) -> int:
        if isinstance(self._length, tuple):
            low, high = self._length
            return low + int(rng.random() * (high - low + 1))
        if not callable(self._length):
            return self._length
        name = self.machine.__name__
        try:
            steps = self._length(rng)
        except Exception as error:
            raise UserError(f"machine {name!r}: steps raised {message_of(error)}") from None
        if not isinstance(steps, int) or steps < 1:
            raise UserError(f"machine {name!r}: steps returned {steps!r}, not a number above 0")
        return steps

    def _loop(self, configuration: Configuration) -> _Loop:
        """Return the loop for a configuration, with the tables it needs."""
        if not configuration.fractional:
            return self.compiled.plain, self._picks_of(configuration.bits), None, None
        if not configuration.renormalised:
            picks = self._picks_of(configuration.bits)
            return self.compiled.weighted, picks, configuration.weights, None
        bounds = configuration.running_weights()
        if self.modes:
            bounds = bounds[: len(self.actions)]
        if not self._guarded:
            return self.compiled.renormalised, (), None, bounds
        # Only to replace an action that is not possible.
        picks = self._picks_of(configuration.bits)
        return self.compiled.renormalised, picks, configuration.weights, bounds

    def _picks_of(self, bits: int) -> Sequence[int]:
        """Return the numbers of the included actions."""
        picks = self._picks.get(bits)
        if picks is None:
            if len(self._picks) > _MAX_CACHED_PICKS:
                self._picks.clear()
            picks = self._picks[bits] = _numbers_of(bits & self._action_bits)
        return picks

    def _journal(self, configuration: Configuration, seed: int) -> Journal:
        assert self.journal is not None
        return Journal(self.journal, self.step, lambda: origin_of(configuration, seed))

    def _test_of_journal(self, entries: Sequence[Any], configuration: Configuration) -> MachineTest:
        origins = (
            entry["origin"] for entry in entries if isinstance(entry, dict) and "origin" in entry
        )
        steps = journalled(entries)
        return MachineTest(self.name, steps, self.settings_of(configuration), next(origins, {}))

    def _test(self, record: StepRecord, configuration: Configuration, seed: int) -> MachineTest:
        raised = dict(record.raised)
        steps = tuple(
            self.step(noted, label, raised.get(label, "")) for label, noted in enumerate(record, 1)
        )
        origin = origin_of(configuration, seed) if any(drawn_arguments(steps)) else {}
        return MachineTest(self.name, steps, self.settings_of(configuration), origin)


def _numbers_of(bits: int) -> list[int]:
    """Return the numbers of the bits that are set, the lowest first, in linear time."""
    digits = f"{bits:b}".encode().translate(_AS_NUMBERS)
    return [*itertools.compress(range(len(digits)), reversed(digits))]


def _code_of(guard: Callable[..., Any] | None) -> Any:
    return getattr(guard, "__code__", None)


def _file_of(machine: type[Machine]) -> str:
    module = sys.modules.get(machine.__module__)
    return getattr(module, "__file__", None) or ""


def _length(machine: type[Machine], steps: int | tuple[int, int] | None) -> Length:
    length = machine.steps if steps is None else steps
    if callable(length):
        return length
    low, high = length if isinstance(length, tuple) and len(length) == 2 else (length, length)
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high):
        raise UserError(
            f"machine {machine.__name__!r}: steps is a number above 0, a range, or a function of "
            f"a random source, not {length!r}"
        )
    return low if low == high else (low, high)


def _has_length(machine: type[Machine], space: Space) -> bool:
    """Return whether a setting of the space is the length of tests."""
    setting = next((setting for setting in space.settings if setting.name == LENGTH), None)
    if setting is not None and not (isinstance(setting, Integer) and setting.low >= 1):
        raise UserError(
            f"machine {machine.__name__!r}: the setting {LENGTH!r} is the length of a test, so it "
            f"is an Integer from 1 or more, not {setting!r}"
        )
    return setting is not None


def _violated(
    tb: TracebackType | None, check: Callable[..., None], invariants: Sequence[str]
) -> str:
    """Return the invariant whose check is in a traceback; empty if an action raised."""
    while tb is not None:
        if tb.tb_frame.f_code is check.__code__:
            # The generated check has two lines for each invariant.
            line = tb.tb_lineno - check.__code__.co_firstlineno - 1
            return invariants[line // 2]
        tb = tb.tb_next
    return ""
