"""A subject that tests a function on random texts of a grammar.

A test is JSON data with a text, which is run, and a tree, which is used to reduce it. So a saved
test still runs after the grammar was edited.
"""

from __future__ import annotations

import copy
import inspect
import sys
from bdb import BdbQuit
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.subjects.grammar.generator import DEPTH, LENGTH, GrammarGenerator, load_grammar
from swarmtest.subjects.grammar.growth import Tree

FORMAT = "swarmtest grammar test 1"


class GrammarSubject:
    """A subject that calls a function with texts of a grammar.

    An exception from `run` is a fault, unless it is one of `raises`, which are correct outcomes
    (for example a syntax error that the program reports). If `run` returns a list, tuple or set of
    texts, these are events: targets that this test reached.

    >>> def run(text):
    ...     assert "((" not in text
    >>> subject = GrammarSubject('start: "x" | "(" start ")"', run, length=9)
    >>> result = subject.execute(subject.space.default(), seed=1)
    >>> result.verdict.label, result.test["text"]
    ('failed', '((x))')
    """

    def __init__(
        self,
        grammar: str | Path,
        run: Callable[[str], object],
        *,
        start: str = "",
        depth: int = DEPTH,
        length: int | tuple[int, int] = LENGTH,
        name: str = "",
        suffix: str = ".txt",
        raises: type[BaseException] | tuple[type[BaseException], ...] = (),
        optional_features: bool = True,
        effective: bool = True,
    ) -> None:
        self.harness = sys._getframe(1).f_globals.get("__file__") or ""
        """The file that creates the subject."""
        self.generator: GrammarGenerator = load_grammar(
            _beside(grammar, self.harness), start, depth, length, optional_features, effective
        )
        if not self.generator.features:
            raise UserError(
                f"{self.generator.grammar.path}: no rule has alternatives and no part may be left "
                "out, so there are no features to choose"
            )
        self.run = run
        self.name = name or getattr(run, "__name__", "grammar")
        self.raises = _exceptions(raises)
        self.space = Space(self.generator.features, self.generator.constraints)
        self.journal: Callable[[Any], None] | None = None
        self.keep_tests = False
        self.interruptible = True
        self.part = "token"
        self.suffix = suffix
        self.weighted = True
        self.seconds: float | None = None

    def check(self, thorough: bool = False) -> list[str]:
        """Return the parts of the grammar that were left out because they can never be used."""
        return list(self.generator.grammar.notes) if thorough else []

    def resized(self, steps: tuple[int, int]) -> GrammarSubject:
        """Return the same subject with texts of so many tokens (``--steps``)."""
        other = copy.copy(self)
        other.generator = self.generator.resized(steps)
        return other

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a text and call the function with it."""
        try:
            tree = self.generator.grown(configuration.weights, seed)
        except UserError as error:
            return Result(Verdict.INVALID, missing=str(error))
        test = self._test(tree)
        if self.journal is not None:
            self.journal(test)
        return self._run_test(test)

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        """Return the test of a configuration and a seed (JSON data), whether or not it passes."""
        return self._test(self.generator.grown(configuration.weights, seed))

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process.

        `told` is what the journal was given: the whole test, before it ran.
        """
        if not told:
            return Result(Verdict.FAILED, fault)
        test = told[-1]
        used, size = self._facts(test)
        return Result(Verdict.FAILED, fault, used, (), size, 0, test)

    def replay(self, test: Any) -> Result:
        """Run a saved test."""
        return self._run_test(_checked_test(test), keep=True)

    def size(self, test: Any) -> int:
        """Return the number of tokens of a saved test."""
        return self._facts(_checked_test(test))[1]

    def code(self, test: Any) -> str:
        """Return the text of a saved test."""
        return str(_checked_test(test)["text"])

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return a smaller test for which `interesting` still holds."""
        saved = _checked_test(test)
        if not isinstance(saved.get("tree"), list):
            raise UserError("this test has no tree: it cannot be reduced")
        tree = self.generator.reduced(saved["tree"], lambda tree: interesting(self._test(tree)))
        return self._test(tree)

    def _test(self, tree: Tree) -> dict[str, Any]:
        text = self.generator.text(tree)
        return {"format": FORMAT, "subject": self.name, "text": text, "tree": tree}

    def _facts(self, test: Mapping[str, Any]) -> tuple[tuple[int, ...], int]:
        """Return how often each feature was used, and the number of tokens."""
        tree = test.get("tree")
        if not isinstance(tree, list):
            return (), 0
        try:
            used = self.generator.used(tree)
        except KeyError:  # the grammar was edited since the test was saved
            return (), self.generator.size(tree)
        counts = tuple(used.get(name, 0) for name in self.space.feature_names)
        return counts, self.generator.size(tree)

    def _run_test(self, test: Mapping[str, Any], keep: bool = False) -> Result:
        fault: Fault | None = None
        events: tuple[str, ...] = ()
        try:
            events = _events(self.run(test["text"]))
        except self.raises:
            pass
        except BaseException as error:
            fault = self._fault_of(error)
        used, size = self._facts(test)
        verdict = Verdict.PASSED if fault is None else Verdict.FAILED
        saved = dict(test) if fault or keep or self.keep_tests else None
        return Result(verdict, fault, used, events, size, 0, saved)

    def _fault_of(self, error: BaseException) -> Fault:
        if isinstance(error, UserError):
            raise error
        if isinstance(error, KeyboardInterrupt | BdbQuit) and self.interruptible:
            raise KeyboardInterrupt from error
        if isinstance(error, MemoryError):
            return fault_of_exception(error, "memory")
        return fault_of_exception(error)


def _events(returned: object) -> tuple[str, ...]:
    if not isinstance(returned, list | tuple | set | frozenset):
        return ()
    return tuple(sorted({f"event:{event}" for event in returned}))


def _beside(grammar: str | Path, harness: str) -> str | Path:
    """Return a grammar's path, relative to the file that names it if it is there."""
    text = str(grammar)
    if isinstance(grammar, str) and ("\n" in text or ": " in text):
        return grammar
    if not isinstance(grammar, str | Path) or not text.strip():
        return grammar  # `load_grammar` raises
    path = Path(grammar)
    if path.is_absolute() or not harness:
        return path
    beside = Path(harness).parent / path
    return beside if beside.exists() or not path.exists() else path


def _exceptions(
    raises: type[BaseException] | tuple[type[BaseException], ...],
) -> tuple[type[BaseException], ...]:
    several = raises if isinstance(raises, tuple) else (raises,)
    if not all(inspect.isclass(e) and issubclass(e, BaseException) for e in several):
        raise UserError(f"raises is an exception class, or several, not {raises!r}")
    return several


def _checked_test(test: Any) -> Mapping[str, Any]:
    if not isinstance(test, Mapping) or test.get("format") != FORMAT:
        raise UserError(f"not a saved grammar test (its format should be {FORMAT!r})")
    if not isinstance(test.get("text"), str):
        raise UserError("a saved grammar test is broken: it has no 'text'")
    return test
