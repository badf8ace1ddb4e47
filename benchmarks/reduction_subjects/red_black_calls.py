"""Calls of a red-black tree as parts of a test, the lines they reach and the mutants they kill.

The tree is loaded twice, from two copies of its file: one is watched, the other is given mutants.
"""

from __future__ import annotations

import importlib
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from swarmtest import Coverage
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.loaded_files import live_files, source_of
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.switching import LiveFile, StepBudgetExceeded

ORIGINAL = Path(__file__).resolve().parents[1] / "red_black.py"
KEYS = 40
STEPS = 2_000
"""More than a test takes; ten times that is what a mutant may take."""
Call = tuple[str, int]
Code = tuple[CodeType, Any]


class RedBlackCalls:
    """What the study asks of a subject."""

    title = "red-black tree (Python)"
    part = "call"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._watching = Coverage("line", "red_black_watched").install()
        self._watched = self._copy("red_black_watched")
        self._watching.uninstall()
        self._mutated = self._copy("red_black_mutated")
        source = source_of(str(Path(self._directory.name) / "red_black_mutated.py"))
        (ticking,) = live_files([source])
        ticking.tick()
        # Of another object, so that taking a mutant back leaves the loops ticking.
        file = LiveFile(ticking.source, ticking.functions, ticking.steps)
        self._steps = ticking.steps
        self._functions = [one for some in ticking.functions.values() for one in some]
        self._original = self._code()
        self.mutants = [m for m in mutants_of(source) if file.switchable(m)]
        self._mutants = [self._code_of(file, mutant) for mutant in self.mutants]
        self._expected: tuple[Sequence[Call], list[object]] = ((), [])

    def _code(self) -> list[Code]:
        return [(one.__code__, one.__defaults__) for one in self._functions]

    def _code_of(self, file: LiveFile, mutant: Mutant) -> list[tuple[int, Code]]:
        """The functions that are not the original's: made once, since each is used often."""
        file.switch_on(mutant)
        changed = self._code()
        file.restore()
        both = enumerate(zip(changed, self._original, strict=True))
        return [(at, new) for at, (new, old) in both if new is not old and new != old]

    def _give(self, codes: Iterable[tuple[int, Code]]) -> None:
        for at, (code, defaults) in codes:
            self._functions[at].__code__ = code
            self._functions[at].__defaults__ = defaults

    def _copy(self, name: str) -> Any:
        text = ORIGINAL.read_text()
        (Path(self._directory.name) / f"{name}.py").write_text(text)
        sys.path.insert(0, self._directory.name)
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(self._directory.name)

    def test(self, seed: int) -> list[Call]:
        """200 calls, as the dissertation has for YAFFS2."""
        rng = random.Random(seed)
        names = ("insert", "insert", "delete", "contains", "iterate", "check")
        return [(rng.choice(names), rng.randrange(KEYS)) for _ in range(200)]

    def reached(self, calls: Sequence[Call]) -> frozenset[int]:
        """The lines that calls reach."""
        self._watching.reset()
        _outcome(self._watched, calls)
        return frozenset(np.frombuffer(self._watching.take().numbers, "<u4").tolist())

    def kills(self, calls: Sequence[Call], mutant: int) -> bool:
        """Whether calls tell a mutant from the original."""
        if self._expected[0] is not calls:
            self._steps.allow(STEPS)
            self._expected = calls, _outcome(self._mutated, calls)
        self._steps.allow(STEPS)
        changed = self._mutants[mutant]
        self._give(changed)
        try:
            return _outcome(self._mutated, calls) != self._expected[1]
        except StepBudgetExceeded:
            return True
        finally:
            self._give((at, self._original[at]) for at, _ in changed)

    def killed(self, calls: Sequence[Call], among: Iterable[int]) -> frozenset[int]:
        """Those of some mutants that calls kill."""
        return frozenset(mutant for mutant in among if self.kills(calls, mutant))

    @cached_property
    def all_mutants(self) -> range:
        """The numbers of the mutants."""
        return range(len(self.mutants))


def _outcome(module: Any, calls: Sequence[Call]) -> list[object]:
    """What calls give, up to an error and with it."""
    told: list[object] = []
    try:
        tree = module.RedBlackTree()
        for name, key in calls:
            told.append(_call(tree, name, key))
    except Exception as error:
        told.append(type(error).__name__)
    return told


def _call(tree: Any, name: str, key: int) -> object:
    if name == "contains":
        return key in tree
    if name == "iterate":
        return list(tree), len(tree)
    return tree.check() if name == "check" else getattr(tree, name)(key)
