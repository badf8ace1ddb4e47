"""A subject whose generator refuses some configurations, and whose tests fail with one feature."""

from __future__ import annotations

from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space

BUG = Fault("exit", "the bug of c")


class Picky:
    """Tests are lists of feature names; the generator cannot do `b`, and `c` shows a bug."""

    def __init__(self, refused=frozenset({"b"})):
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

    def check(self, thorough=False):
        return []

    def execute(self, configuration, seed):
        test = self.test_of(configuration, seed)
        refused = self.refused & set(test["words"])
        if refused:
            return Result(Verdict.INVALID, missing=f"the generator cannot do {min(refused)}")
        return self.replay(test)

    def test_of(self, configuration, seed):
        names = self.space.feature_names
        words = [name for i, name in enumerate(names) if configuration.bits >> i & 1]
        return {"subject": self.name, "words": words * 5}

    def replay(self, test):
        fault = BUG if test["words"].count("c") >= 2 else None
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        return Result(verdict, fault, steps=len(test["words"]), test=test)

    def result_of_journal(self, told, configuration, fault):
        raise AssertionError("its tests never kill their process")

    def size(self, test):
        return len(test["words"])

    def code(self, test):
        return " ".join(test["words"])

    def reduced(self, test, interesting):
        words = list(test["words"])
        while len(words) > 1 and interesting(test | {"words": words[1:]}):
            words = words[1:]
        return test | {"words": words}
