"""A subject that tests a function on random texts of a grammar.

A test is JSON data with a text, which is run, and a tree, which is used to reduce it. So a saved
test still runs after the grammar was edited.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.subjects.generated import Runnable, input_of, result_of_run
from swarmtest.subjects.grammar.generator import DEPTH, LENGTH, GrammarGenerator, load_grammar
from swarmtest.subjects.grammar.growth import Tree
from swarmtest.subjects.subject import NoTest, Subject

FORMAT = "swarmtest grammar test 1"


class GrammarSubject(Subject):
    """A subject that runs a function, or a native program, on texts of a grammar.

    `run` is a function that is called with a text, or a `swarmtest.coverage.Program`; a function
    may return the run of a program. An exception from `run` is a fault, unless it is one of
    `raises`, which are correct outcomes (for example a syntax error that the program reports). If
    `run` returns a list, tuple or set of texts, these are events: targets that this test reached.

    >>> def run(text):
    ...     assert "((" not in text
    >>> subject = GrammarSubject('start: "x" | "(" start ")"', run, length=9)
    >>> result = subject.execute(subject.space.default(), seed=1)
    >>> result.verdict.label, result.test["text"]
    ('failed', '((x))')
    """

    part = "token"
    weighted = True

    def __init__(
        self,
        grammar: str | Path,
        run: Runnable | Callable[[str], object],
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
        self.function = run
        """What is called with the text of each test, or the program that is run on it."""
        self.seconds = getattr(run, "timeout", None) if isinstance(run, Runnable) else None
        self.name = name or getattr(run, "__name__", "grammar")
        self.raises = _exceptions(raises)
        self.space = Space(self.generator.features, self.generator.constraints)
        self.suffix = suffix

    def check(self, thorough: bool = False) -> list[str]:
        """Return the parts of the grammar that were left out because they can never be used."""
        return list(self.generator.grammar.notes) if thorough else []

    def resized(self, steps: tuple[int, int]) -> GrammarSubject:
        """Return the same subject with texts of so many tokens (``--steps``)."""
        other = copy.copy(self)
        other.generator = self.generator.resized(steps)
        return other

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return a text of the grammar, with its tree."""
        try:
            plan = self.generator.plan_for(configuration)
            tree = self.generator.grow(plan, seed)
        except UserError as error:
            raise NoTest(str(error)) from None
        return self._test(tree)

    def run(self, test: Any) -> Result:
        """Run a saved test: call the function with its text, or run the program on it."""
        saved = _checked_test(test)
        used, size = self._facts(saved)
        text = saved["text"]
        try:
            tested = self.function
            ran = tested.run(input_of(text)) if isinstance(tested, Runnable) else tested(text)
            result = result_of_run(ran, size)
        except self.raises:
            result = Result(Verdict.PASSED)
        except BaseException as error:
            result = Result(Verdict.FAILED, self.fault_of(error))
        return result._replace(used=used, steps=size, test=dict(saved))

    def result_of_journal(
        self, entries: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process.

        `entries` is what the journal was given: the whole test, before it ran.
        """
        if not entries:
            return Result(Verdict.FAILED, fault)
        test = entries[-1]
        used, size = self._facts(test)
        return Result(Verdict.FAILED, fault, used, (), size, 0, test)

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
