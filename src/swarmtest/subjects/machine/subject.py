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
from swarmtest.core.errors import UserError
from swarmtest.core.faults import (
    examinable,
    fault_of_exception,
    message_of,
    operation_of_check,
)
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.subjects.machine.compiled import compile_machine, invariants_of, space_of
from swarmtest.subjects.machine.machine import Machine
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
from swarmtest.subjects.subject import Subject

_PASSED = Verdict.PASSED
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
    ) -> None:
        """Create the subject; `repeats` is the share of values that repeat earlier ones."""
        self.machine = machine
        self.harness = _file_of(machine) if harness else ""
        """The file that only drives the program; empty if the machine is derived from a class."""
        self.name = name or f"{machine.__module__}:{machine.__qualname__}"
        self.space = space_of(machine)
        self._used = UsedValues(repeats) if repeats else None
        self.compiled = compile_machine(machine, self._used.action if self._used else None)
        self.actions = {action.name: action for action in self.compiled.actions}
        self._length = _length(machine, steps)
        self._check = self.compiled.check
        self._guarded = any(guard is not None for guard in self.compiled.possible)
        self._stops = machine.stop is not Machine.stop
        self._rng = random.Random(0)
        # Random.seed() is Python code that looks at the type of the seed first; this is the C
        # function that it calls, which is faster.
        self._reseed = super(random.Random, self._rng).seed
        self._picks: dict[int, list[int]] = {}

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test while running it."""
        rng = self._rng
        self._reseed(seed)
        rng.gauss_next = None  # type: ignore[attr-defined]  # Random.seed() resets this too
        if self._used is not None:
            self._used.forget()
        count = self._length if type(self._length) is int else self._draw_length(rng)
        run, picks, weights, bounds = self._loop(configuration)
        record = StepRecord() if self.journal is None else self._journal(configuration, seed)
        tally: list[int] = []
        another = self._guarded and ReplacementAction(
            picks, self.compiled.possible, weights, bounds
        )
        machine = None
        fault = None
        try:
            machine = self.machine()
            if configuration.space.settings:
                machine.settings = configuration.settings
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
                    machine.stop()
        except BaseException as error:
            last = self.compiled.actions[record[-1][0]].name if record else ""
            fault = self.fault_of(error, last)
        hits = machine.hits() if machine is not None and machine._events else ()
        skipped = tally.pop() if tally else 0
        used = tuple(tally) if tally else (0,) * len(self.actions)
        if fault is None and not self.keep_tests:
            result = Result(_PASSED, None, used, hits, len(record), skipped)
        else:
            test = self._test(record, configuration, seed).to_json()
            verdict = Verdict.FAILED if fault else _PASSED
            result = Result(verdict, fault, used, hits, len(record), skipped, test)
        if machine is not None and (machine._covered or machine._missing):
            return result._replace(covered=machine._covered, missing=machine._missing)
        return result

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

        defaults = self.space.default().settings
        whole = MachineTest.from_json(test)
        return reduced_machine_test(whole, self.actions, defaults, interesting).to_json()

    def parts(self, test: Any) -> list[Any]:
        """Return the steps of a saved test."""
        return list(MachineTest.from_json(test).steps)

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return a saved test with its steps replaced."""
        return replace(MachineTest.from_json(test), steps=tuple(parts)).to_json()

    def repeating(self, share: float) -> MachineSubject:
        """Return the same subject, with tests in which this share of the values repeat."""
        steps = None if callable(self._length) else self._length
        return MachineSubject(self.machine, self.name, steps, bool(self.harness), share)

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
        operation = operation_of_check(self.machine, error, last)
        return fault_of_exception(error, operation=operation)

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
            picks = self._picks[bits] = _numbers_of(bits)
        return picks

    def _journal(self, configuration: Configuration, seed: int) -> Journal:
        assert self.journal is not None
        return Journal(self.journal, self.step, lambda: origin_of(configuration, seed))

    def _test_of_journal(self, entries: Sequence[Any], configuration: Configuration) -> MachineTest:
        origins = (
            entry["origin"] for entry in entries if isinstance(entry, dict) and "origin" in entry
        )
        steps = journalled(entries)
        return MachineTest(self.name, steps, configuration.settings, next(origins, {}))

    def _test(self, record: StepRecord, configuration: Configuration, seed: int) -> MachineTest:
        raised = dict(record.raised)
        steps = tuple(
            self.step(noted, label, raised.get(label, "")) for label, noted in enumerate(record, 1)
        )
        origin = origin_of(configuration, seed) if any(drawn_arguments(steps)) else {}
        return MachineTest(self.name, steps, configuration.settings, origin)


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
