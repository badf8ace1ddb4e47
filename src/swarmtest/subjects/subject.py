"""The interface between a campaign and what it tests.

A subject of your own derives from `Subject` and has three things: a `space`, `generate` and `run`.
Everything else has a default. An object of a class that does not derive from `Subject` is a subject
too if it has every member in `MEMBERS`.
"""

from __future__ import annotations

import inspect
import json
import os
from bdb import BdbQuit
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception, message_of
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.signatures import is_older_form
from swarmtest.core.space import Space

MEMBERS = (
    "name",
    "space",
    "interruptible",
    "keep_tests",
    "journal",
    "part",
    "suffix",
    "harness",
    "weighted",
    "seconds",
    "check",
    "execute",
    "result_of_journal",
    "test_of",
    "replay",
    "reduced",
    "size",
    "code",
)
"""What campaigns and commands use: an object with all of it is a subject."""

_REQUIRED = {
    "generate": ("def generate(self, configuration, seed), which returns a test", "test_of"),
    "run": ("def run(self, test), which returns a Result", "replay"),
}
"""What a class has to define, and the method that can be defined together with `execute` instead of
it."""


class NoTest(UserError):
    """Raised by `Subject.generate` if a configuration gives no test; the trial is invalid.

    >>> raise NoTest("the generator ran out of names")
    Traceback (most recent call last):
    ...
    swarmtest.subjects.subject.NoTest: the generator ran out of names
    """


class Subject:
    """Something that can be tested: it generates tests from configurations and runs them.

    Define `space`, `generate` and `run`. A test is JSON data. If it is a list, a text or a mapping
    with a list ``steps``, then its elements, lines or steps are its parts, and a failing test is
    reduced by leaving parts out. Otherwise define `parts` and `with_parts`, or `reduced`.

    >>> import random
    >>> from swarmtest import Campaign
    >>> class Total(Subject):
    ...     space = Space(["add", "subtract"])
    ...     def generate(self, configuration, seed):
    ...         return random.Random(seed).choices(sorted(configuration.included), k=20)
    ...     def run(self, test):
    ...         total = test.count("add") - test.count("subtract")
    ...         assert total < 15, "overflow"
    ...         return Result(Verdict.PASSED)
    >>> outcome = Campaign(Total(), "coin", 30, workers=1, store=":memory:").run()
    >>> [fault.signature for fault in outcome.faults]
    ['AssertionError: overflow [Total.run: assert total < 15]']
    """

    space: Space
    """The features and settings from which configurations are chosen."""
    name: str = ""
    """The name that a person uses, and by which a worker process loads the same subject. The
    default is ``module:Class``."""
    part: str = "step"
    """One word for what its tests consist of: step, line, token."""
    suffix: str = ".txt"
    """The suffix of a file that holds what `code` returns: ``.py``, ``.c``."""
    harness: str = ""
    """The file that only drives the program: its text is the subject's version; may be empty."""
    weighted: bool = False
    """Whether weights between 0 and 1 have a meaning. If not, strategies that produce such weights
    are refused, and the default strategy is `coin`."""
    modes: tuple[str, ...] = ()
    """Features that are on or off in a whole test and never counted in it."""
    alternatives: Mapping[str, Sequence[str]] = {}
    """Dimensions of a search that choose one of several features; ``none`` chooses none of them. A
    later one that chooses a feature counts before an earlier one."""
    seconds: float | None = None
    """The subject's own time limit for a test; None if it sets none."""
    interruptible: bool = True
    """Whether KeyboardInterrupt is the user's Ctrl-C; in a worker, the program raised it. Campaigns
    set it."""
    keep_tests: bool = False
    """Whether the result of a passed test contains the test as well. Campaigns set it."""
    journal: Callable[[Any], None] | None = None
    """Called with what is about to run (the whole test, or every step), when the current test may
    kill the process. Campaigns set it."""

    fault_names: Mapping[Fault, str] = {}
    """The ids of the faults that a store already has (`swarmtest.store.fault_groups`)."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create a subject; raise `UserError` if its class does not define what it has to."""
        for method, (signature, instead) in _REQUIRED.items():
            defines_instead = _overrides(cls, "execute") and _overrides(cls, instead)
            if not _overrides(cls, method) and not defines_instead:
                raise UserError(
                    f"{_class_place(cls)}: an incomplete subject, it has no method {method}: "
                    f"write {signature}"
                )
        subject = super().__new__(cls)
        if not cls.name:
            subject.name = f"{cls.__module__}:{cls.__qualname__}"
        return subject

    # To be defined.

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test (JSON data) that a configuration and a seed give, always the same one.

        Raise `NoTest` if there is none.
        """
        raise NotImplementedError

    def run(self, test: Any) -> Result:
        """Run a test. Return its result, or let the program's exception escape: that is a fault."""
        raise NotImplementedError

    # With defaults. Subjects whose tests depend on what the program does override `execute`.

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test from a configuration and a seed, and run it.

        Override it if the generator must see the program's state before it chooses the next step
        (the papers' feedback). Such a subject calls `journal` with every step before the step runs.
        """
        try:
            test = self.generate(configuration, seed)
        except NoTest as error:
            return Result(Verdict.INVALID, missing=str(error))
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{self.name}: generate raised {message_of(error)}") from error
        if self.journal is not None:
            self.journal(test)
        result = _run_completely(self, test)
        if result.verdict is not Verdict.FAILED and not self.keep_tests:
            return result._replace(test=None)
        _check_json(self, result.test)
        return result

    def warm_up(self) -> None:
        """Do what the first test of a process has to do; called before processes are forked.

        The default does nothing. Without a call, the first test does it.
        """

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        """Return the test that a configuration and a seed give (JSON data), even if it passes."""
        return self.generate(configuration, seed)

    def replay(self, test: Any) -> Result:
        """Run a test that was saved as JSON data.

        Override it if one run is not enough to see the fault again.
        """
        return _run_completely(self, test)

    def result_of_journal(
        self, entries: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process, from its journal entries."""
        if not entries:
            return Result(Verdict.FAILED, fault)
        return Result(Verdict.FAILED, fault, steps=len(self.parts(entries[-1])), test=entries[-1])

    def check(self, thorough: bool = False) -> list[str]:
        """Return what is wrong with the subject, a line each, before any test is run.

        Most subjects are checked when they are loaded. `thorough` adds checks that take a while.
        """
        return []

    def parts(self, test: Any) -> list[Any]:
        """Return the parts of a test; an empty list if they do not make sense on their own."""
        if isinstance(test, str):
            return test.splitlines(keepends=True)
        steps = test.get("steps") if isinstance(test, Mapping) else test
        return list(steps) if isinstance(steps, list | tuple) else []

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return a test with its parts replaced."""
        if isinstance(test, str):
            return "".join(parts)
        return {**test, "steps": list(parts)} if isinstance(test, Mapping) else list(parts)

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return a smaller test for which `interesting` still holds."""
        from swarmtest.reducer.reducer import ConvertedCriterion, minimised

        parts = self.parts(test)
        if not parts:
            raise UserError(
                f"{self.name} does not say what its tests consist of: write parts(self, test) and "
                "with_parts(self, test, parts)"
            )
        still = ConvertedCriterion(interesting, lambda kept: self.with_parts(test, kept))
        return self.with_parts(test, minimised(parts, still))

    def size(self, test: Any) -> int:
        """Return how many parts a test has."""
        return len(self.parts(test))

    def code(self, test: Any) -> str:
        """Return a test (JSON data) as text that a person can read and run."""
        if isinstance(test, str):
            return test
        if isinstance(test, list):
            return "".join(f"{_line(step)}\n" for step in test)
        return json.dumps(test, indent=1) + "\n"

    def fault_of(self, error: BaseException) -> Fault:
        """Return the fault that an exception shows; raise what the program did not cause."""
        if isinstance(error, UserError):
            raise error
        if isinstance(error, KeyboardInterrupt | BdbQuit) and self.interruptible:
            raise KeyboardInterrupt from error
        if isinstance(error, MemoryError):
            return fault_of_exception(error, "memory")
        return fault_of_exception(error)


def usual_strategy(subject: Subject) -> str:
    """Return the default strategy: the best one whose weights the subject understands."""
    return "layered" if subject.weighted else "coin"


def is_subject(member: Any) -> bool:
    """Return whether an object is a subject: by its class, or because it has every member.

    >>> is_subject(Subject), is_subject("text")
    (False, False)
    """
    return not inspect.isclass(member) and (
        (isinstance(member, Subject) and hasattr(member, "space"))
        or all(hasattr(member, name) for name in MEMBERS)
    )


def is_subject_class(member: Any) -> bool:
    """Return whether a class derives from `Subject`.

    >>> is_subject_class(Subject), is_subject_class(int)
    (False, False)
    """
    return inspect.isclass(member) and issubclass(member, Subject) and member is not Subject


def identity_of(subject: Subject) -> str:
    """Return the name of a subject as a part of the ids of its faults: ``./a.py`` is ``a.py``."""
    name = str(getattr(subject, "name", ""))
    where, mark, member = name.partition("::")
    is_file = where.endswith((".py", ".toml")) and not where.startswith("race ")
    return f"{os.path.normpath(where)}{mark}{member}" if is_file else name


def named_fault(subject: Subject, fault: Fault) -> Fault:
    """Return a fault with its id: that of the store, or else the one that it would get."""
    names = getattr(subject, "fault_names", {})
    known = names.get(fault) or _name_in_older_store(names, fault)
    if known:
        return Fault(fault.kind, fault.signature, fault.details, known)
    return fault.of_subject(identity_of(subject))


def _name_in_older_store(names: Mapping[Fault, str], fault: Fault) -> str:
    """Return the id of a fault that an older version recorded; empty if it is not clear which."""
    matching = {
        name
        for recorded, name in names.items()
        if recorded.kind == fault.kind and is_older_form(recorded.signature, fault.signature)
    }
    return matching.pop() if len(matching) == 1 else ""


def incompleteness(member: Any, name: str) -> str:
    """Return what an object lacks to be a subject, in one line; empty if it is not meant as one.

    >>> class Dice:
    ...     space = Space(["odd"])
    ...     def run(self, test): return Result(Verdict.PASSED)
    >>> incompleteness(Dice(), "dice.py::dice")
    'dice.py::dice: an incomplete subject, it has no generate: derive Dice from swarmtest.Subject'
    >>> incompleteness("text", "dice.py::text")
    ''
    """
    if inspect.isclass(member) or is_subject(member):
        return ""
    cls = type(member)
    if isinstance(member, Subject):
        return (
            f"{name}: an incomplete subject, it has no space: write space = Space([...]) in class "
            f"{cls.__name__}"
        )
    meant = isinstance(getattr(member, "space", None), Space) or hasattr(cls, "execute")
    if not meant:
        return ""
    wanted = MEMBERS if hasattr(cls, "execute") else ("space", "generate", "run")
    missing = [attribute for attribute in wanted if not hasattr(member, attribute)]
    lacks = f"it has no {', '.join(missing)}" if missing else "it is not derived from Subject"
    return f"{name}: an incomplete subject, {lacks}: derive {cls.__name__} from swarmtest.Subject"


def _run_completely(subject: Subject, test: Any) -> Result:
    """Run a test; the result contains it, and the number of its parts."""
    try:
        result = subject.run(test)
    except BaseException as error:
        result = Result(Verdict.FAILED, subject.fault_of(error))
    if not isinstance(result, Result):
        raise UserError(f"{subject.name}: run returned {result!r}, not a Result")
    if result.verdict is Verdict.FAILED and result.fault is None:
        raise UserError(f"{subject.name}: run returned a failed Result without a Fault: add one")
    if result.verdict is Verdict.INVALID:
        return result
    if result.test is None:
        result = result._replace(test=test)
    return result if result.steps else result._replace(steps=len(subject.parts(result.test)))


def _check_json(subject: Subject, test: Any) -> None:
    try:
        json.dumps(test)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{subject.name}: generate returned a test that is not JSON data: {error}"
        ) from None


def _overrides(cls: type[Subject], method: str) -> bool:
    return getattr(cls, method) is not getattr(Subject, method)


def _class_place(cls: type) -> str:
    """Return the name of a class and where it is defined."""
    try:
        return f"{cls.__qualname__} ({inspect.getsourcefile(cls) or cls.__module__})"
    except (TypeError, OSError):
        return f"{cls.__qualname__} ({cls.__module__})"


def _line(step: Any) -> str:
    return step if isinstance(step, str) else json.dumps(step)


def printed_code(subject: Any, test: Any) -> str:
    """Return a test as its subject prints it; empty if there is no test or it cannot be printed.

    A store keeps this beside the test, so that showing the test imports no code of the user.
    """
    if test is None:
        return ""
    try:
        return str(subject.code(test))
    except Exception:  # code of a user: a fault is recorded even if its test cannot be printed
        return ""
