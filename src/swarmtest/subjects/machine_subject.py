"""A machine class as a subject: generates tests while running them, replays them, prints them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias

from swarmtest.errors import UserError, did_you_mean
from swarmtest.faults import fault_of_exception
from swarmtest.result import Fault, Result, Verdict
from swarmtest.space import Configuration
from swarmtest.subjects.compiled import Snapshot, compile_machine
from swarmtest.subjects.machine import FromPool, Machine, invariants_of, space_of
from swarmtest.subjects.machine_test import MachineTest, Step
from swarmtest.subjects.values import Ref, to_json

_PASSED = Verdict.PASSED
_TRIES = 3
_MOST_PICKS = 4096

Length: TypeAlias = int | tuple[int, int] | Callable[[random.Random], int]
_Way: TypeAlias = tuple[
    Callable[..., None], list[int], Sequence[float] | None, Sequence[float] | None
]


class MachineSubject:
    """Tests a machine class.

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

    def __init__(
        self, machine: type[Machine], name: str = "", steps: int | tuple[int, int] | None = None
    ) -> None:
        self.machine = machine
        self.name = name or f"{machine.__module__}:{machine.__qualname__}"
        self.space = space_of(machine)
        self._compiled = compile_machine(machine)
        self._actions = {action.name: action for action in self._compiled.actions}
        self._length = _length(machine, steps)
        self._check = self._compiled.check
        self._guarded = any(guard is not None for guard in self._compiled.possible)
        self._stops = machine.stop is not Machine.stop
        self._rng = random.Random(0)
        # Python's own seed() looks at the type first; this is the C function behind it.
        self._reseed = super(random.Random, self._rng).seed
        self._picks: dict[int, list[int]] = {}
        self.journal: Callable[[Any], None] | None = None
        """Told of every step before it runs, when the test at hand may kill the process."""
        self.interruptible = True
        """Whether KeyboardInterrupt is the user's Ctrl-C; in a worker it is the program's doing."""

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test and run it, in one go."""
        rng = self._rng
        self._reseed(seed)
        rng.gauss_next = None  # type: ignore[attr-defined]  # what seed() resets beside the state
        count = self._length if type(self._length) is int else self._draw_length(rng)
        run, picks, weights, bounds = self._way(configuration)
        record = _Record() if self.journal is None else _Journal(self.journal, self)
        tally: list[int] = []
        another = self._guarded and _Another(picks, self._compiled.possible, weights, bounds)
        machine = self.machine()
        if configuration.space.settings:
            machine.settings = configuration.settings
        fault = None
        try:
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
            fault = self._fault(error)
        hits = tuple(f"event:{e}" for e in sorted(machine._events)) if machine._events else ()
        skipped = tally.pop() if tally else 0
        used = tuple(tally) if tally else (0,) * len(self._actions)
        if fault is None:
            return Result(_PASSED, None, used, hits, len(record), skipped)
        test = self._test(record, machine.settings).to_json()
        return Result(Verdict.FAILED, fault, used, hits, len(record), skipped, test)

    def test_of(self, configuration: Configuration, seed: int) -> MachineTest:
        """The test that a configuration and a seed give, also when it passes."""
        told: list[Any] = []
        self.journal = told.append
        try:
            self.execute(configuration, seed)
        finally:
            self.journal = None
        return MachineTest(self.name, _journalled(told), configuration.settings)

    def test_of_journal(self, steps: Sequence[Any], configuration: Configuration) -> Any:
        """The test (JSON data) whose steps the journal told before the process died."""
        return MachineTest(self.name, _journalled(steps), configuration.settings).to_json()

    def replay(self, test: Any) -> Result:
        """Run a saved test step by step; steps that cannot run are skipped and counted."""
        return _Replay(self, MachineTest.from_json(test)).run()

    def code(self, test: Any) -> str:
        """A saved test as a Python program."""
        from swarmtest.subjects.machine_code import code_of

        return code_of(self.machine, MachineTest.from_json(test), self._actions)

    def _draw_length(self, rng: random.Random) -> int:
        if isinstance(self._length, tuple):
            low, high = self._length
            return low + int(rng.random() * (high - low + 1))
        return self._length(rng) if callable(self._length) else self._length

    def _way(self, configuration: Configuration) -> _Way:
        """The loop for a configuration, with the tables it needs."""
        bits = configuration.bits
        picks = self._picks.get(bits)
        if picks is None:
            if len(self._picks) > _MOST_PICKS:
                self._picks.clear()
            picks = [i for i in range(len(self._actions)) if bits >> i & 1]
            self._picks[bits] = picks
        if not configuration.fractional:
            return self._compiled.plain, picks, None, None
        weights = configuration.weights
        if not configuration.renormalised:
            return self._compiled.weighted, picks, weights, None
        bounds = list(itertools.accumulate(weights[k] for k in picks))
        return self._compiled.renormalised, picks, weights, bounds

    def step(self, noted: tuple[Any, ...], label: int, raised: str = "") -> Step:
        """A step as the loop noted it: the action's number, then its arguments."""
        action = self._compiled.actions[noted[0]]
        arguments = tuple(a.data if type(a) is Snapshot else to_json(a) for a in noted[1:])
        return Step(action.name, arguments, label if action.into is not None else 0, raised)

    def _test(self, record: _Record, settings: Mapping[str, Any]) -> MachineTest:
        raised = dict(record.raised)
        steps = tuple(
            self.step(noted, label, raised.get(label, "")) for label, noted in enumerate(record, 1)
        )
        return MachineTest(self.name, steps, dict(settings))

    def _fault(self, error: BaseException) -> Fault:
        """The fault that an exception shows; what is not the program's doing goes on its way."""
        if isinstance(error, UserError) or (
            isinstance(error, KeyboardInterrupt) and self.interruptible
        ):
            raise error
        name = _violated(error.__traceback__, self._compiled.check, invariants_of(self.machine))
        if name:
            return fault_of_exception(error, "invariant", f"invariant {name}:")
        if isinstance(error, MemoryError):
            return fault_of_exception(error, "memory")
        return fault_of_exception(error)


class _Record(list[Any]):
    """The steps of the test at hand, and which of them ended in an expected exception."""

    def __init__(self) -> None:
        self.raised: list[tuple[int, str]] = []

    def rescued(self, error: BaseException) -> None:
        """The step noted last raised an exception that is a correct outcome."""
        self.raised.append((len(self), type(error).__qualname__))


class _Journal(_Record):
    """A record that tells of each step before it runs: for tests that may kill the process."""

    def __init__(self, tell: Callable[[Any], None], subject: MachineSubject) -> None:
        super().__init__()
        self._tell = tell
        self._subject = subject

    def append(self, noted: Any) -> None:
        super().append(noted)
        self._tell(self._subject.step(noted, len(self)))

    def rescued(self, error: BaseException) -> None:
        super().rescued(error)
        self._tell({"raised": type(error).__qualname__})


def _journalled(told: Sequence[Any]) -> tuple[Step, ...]:
    """Steps from what a journal was told: a step, or that the step before it raised."""
    steps: list[Step] = []
    for entry in told:
        if isinstance(entry, dict):
            steps[-1] = steps[-1]._replace(raised=entry["raised"])
        else:
            action, arguments, label, raised = entry
            steps.append(Step(action, tuple(arguments), label, raised))
    return tuple(steps)


class _Another:
    """Picks again when the guard of the action picked first is false.

    A few tries at the full odds, then one among the actions that are possible, listed. Both have
    the odds of "pick among the possible ones", so the number of tries is only a matter of speed.
    """

    __slots__ = ("_bounds", "_picks", "_possible", "_weights")

    def __init__(
        self,
        picks: Sequence[int],
        possible: Sequence[Callable[[Machine], Any] | None],
        weights: Sequence[float] | None,
        bounds: Sequence[float] | None,
    ) -> None:
        self._picks = picks
        self._possible = possible
        self._weights = weights
        self._bounds = bounds

    def __call__(self, machine: Machine, draw: Callable[[], float]) -> int:
        picks, possible = self._picks, self._possible
        if self._bounds is None:
            for _ in range(_TRIES):
                k = picks[int(draw() * len(picks))]
                guard = possible[k]
                if guard is None or guard(machine):
                    return k
        able = [k for k in picks if (guard := possible[k]) is None or guard(machine)]
        if not able:
            return -1
        if self._bounds is None:
            return able[int(draw() * len(able))]
        assert self._weights is not None
        bounds = list(itertools.accumulate(self._weights[k] for k in able))
        point = draw() * bounds[-1]
        return next(k for k, bound in zip(able, bounds, strict=True) if point < bound)


class _Replay:
    """One replay of a saved test."""

    def __init__(self, subject: MachineSubject, test: MachineTest) -> None:
        self._subject = subject
        self._test = test
        self._made: dict[int, Any] = {}
        self._ran: list[Step] = []

    def run(self) -> Result:
        subject = self._subject
        machine = subject.machine()
        machine.settings = dict(self._test.settings)
        used = [0] * len(subject._actions)
        skipped = 0
        fault = None
        try:
            try:
                machine.start()
                subject._compiled.check(machine)
                for step in self._test.steps:
                    if not self._runs(machine, step, used):
                        skipped += 1
            finally:
                machine.stop()
        except BaseException as error:
            fault = subject._fault(error)
        hits = tuple(f"event:{e}" for e in sorted(machine._events))
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        return Result(verdict, fault, tuple(used), hits, sum(used), skipped, self._test.to_json())

    def _runs(self, machine: Machine, step: Step, used: list[int]) -> bool:
        """Run one step; False if a value that it uses, or its guard, is gone."""
        actions = self._subject._actions
        action = actions.get(step.action)
        if action is None:
            raise UserError(
                f"the test calls {step.action!r}, which {self._subject.name} does not have"
                f"{did_you_mean(step.action, actions)}"
            )
        values = dict(zip(action.arguments, step.values(), strict=False))
        if len(values) != len(action.arguments) or not self._resolve(values):
            return False
        number = list(actions).index(step.action)
        if action.when is not None and not action.when(machine):
            return False
        self._take(machine, action.arguments, step)
        used[number] += 1
        try:
            result = getattr(machine, action.name)(**values)
        except action.raises:
            result = None
        if action.into is not None and result is not None:
            self._made[step.label] = result
            getattr(machine, action.into.name).entries.append((step.label, result))
        self._subject._compiled.check(machine)
        return True

    def _resolve(self, values: dict[str, Any]) -> bool:
        for name, value in values.items():
            if isinstance(value, Ref):
                if value.label not in self._made:
                    return False
                values[name] = self._made[value.label]
        return True

    def _take(self, machine: Machine, arguments: dict[str, Any], step: Step) -> None:
        for source, value in zip(arguments.values(), step.values(), strict=True):
            if isinstance(source, FromPool) and source.consumed:
                del self._made[value.label]
                entries = getattr(machine, source.pool.name).entries
                entries[:] = [entry for entry in entries if entry[0] != value.label]


def _length(machine: type[Machine], steps: int | tuple[int, int] | None) -> Length:
    wanted = machine.steps if steps is None else steps
    if callable(wanted):
        return wanted
    low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
    if not 1 <= low <= high:
        raise UserError(
            f"machine {machine.__name__!r}: steps is a number above 0, a range, or a function of "
            f"a random source, not {wanted!r}"
        )
    return low if low == high else (low, high)


def _violated(
    tb: TracebackType | None, check: Callable[..., None], invariants: Sequence[str]
) -> str:
    """The invariant whose check raised, from the traceback; empty if an action raised."""
    while tb is not None:
        if tb.tb_frame.f_code is check.__code__:
            line = tb.tb_lineno - check.__code__.co_firstlineno - 1
            return invariants[line // 2]
        tb = tb.tb_next
    return ""
