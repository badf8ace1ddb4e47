"""Tests that come from a grammar: made in this process, and reduced by subtrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarmtest.errors import UserError
from swarmtest.space import Configuration
from swarmtest.subjects.command.generating import Made

if TYPE_CHECKING:
    from swarmtest.subjects.grammar import GrammarGenerator


class GrammarTests:
    """Makes tests with a grammar's generator."""

    def __init__(self, grammar: GrammarGenerator) -> None:
        self._grammar = grammar

    def make(self, configuration: Configuration, seed: int) -> Made:
        """The text of a tree; a configuration that leaves no text to make is an invalid test."""
        names = configuration.space.feature_names
        try:
            tree = self._grammar.generate(
                dict(zip(names, configuration.weights, strict=True)), seed
            )
        except UserError as error:
            return Made(why_not=f"the grammar: {error}")
        return Made(self._grammar.text(tree).encode(), tree=tree)
