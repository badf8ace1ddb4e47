"""A subject whose generator refuses some configurations, and whose tests fail with one feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space

BUG = Fault("exit", "the bug of c")

if TYPE_CHECKING:
    from swarmtest.subjects import Subject as _Base
else:
    _Base = object  # not a Subject: one that does not derive is accepted if it has everything


class Picky(_Base):
    """Tests are lists of feature names; the generator cannot do `b`, and `c` shows a bug."""

    def __init__(self, refused: frozenset[str] = frozenset({"b"})) -> None:
        self.name = "picky"
        self.space = Space(["a", "b", "c"])
        self.refused = refused
        self.interruptible = True
        self.keep_tests = False
        self.journal = None
        self.part = "word"
        self.suffix = ".txt"
        self.harness = ""
        self.weighted = False
        self.seconds = None

    def check(self, thorough: bool = False) -> list[str]:
        return []

    def execute(self, configuration: Configuration, seed: int) -> Result:
        test = self.test_of(configuration, seed)
        refused = self.refused & set(test["words"])
        if refused:
            return Result(Verdict.INVALID, missing=f"the generator cannot do {min(refused)}")
        return self.replay(test)

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        names = self.space.feature_names
        words = [name for i, name in enumerate(names) if configuration.bits >> i & 1]
        return {"subject": self.name, "words": words * 5}

    def replay(self, test: Any) -> Result:
        fault = BUG if test["words"].count("c") >= 2 else None
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        return Result(verdict, fault, steps=len(test["words"]), test=test)

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        raise AssertionError("its tests never kill their process")

    def size(self, test: Any) -> int:
        return len(test["words"])

    def code(self, test: Any) -> str:
        return " ".join(test["words"])

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        words = list(test["words"])
        while len(words) > 1 and interesting(test | {"words": words[1:]}):
            words = words[1:]
        return test | {"words": words}
