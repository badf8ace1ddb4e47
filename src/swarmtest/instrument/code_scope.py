"""The code object that statements are in, as far as weaving cares."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from swarmtest.instrument import snippets
from swarmtest.instrument.outline import Outline


@dataclass
class CodeScope:
    """A module, class or function, and how what happens in it is noted."""

    function: int
    direct: bool
    """Every statement has a probe: module and class bodies."""
    name: str = ""
    """What qualified names of what is defined here begin with."""
    outline: Outline | None = None
    added: dict[str, int] | None = None
    """What symbols add to the number of a way, if ways are counted and not spelt out."""
    predicate: bool = False
    """Whether the states of predicates are noted."""
    unproven: bool = False
    """Whether an exception in the current region would leave a statement without proof."""

    def within(self, name: str) -> str:
        """The qualified name of something defined here."""
        return f"{self.name}.{name}" if self.name else name

    def symbol(self, node: ast.stmt, way: int) -> str:
        """What stands for a way out of a decision in paths; empty when no paths are noted."""
        return self.outline.symbols.get((id(node), way), "") if self.outline else ""

    def step(self, symbol: str) -> ast.stmt:
        """What notes that a way was taken."""
        if self.added is None:
            return snippets.step_path(symbol)
        return snippets.step_way(self.added[symbol])
