"""The part of a TOML file about tests that come from a grammar instead of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.errors import UserError, did_you_mean
from swarmtest.space import Feature
from swarmtest.subjects.command.reading_features import read_feature
from swarmtest.subjects.command.toml_section import Section

if TYPE_CHECKING:
    from swarmtest.subjects.grammar import GrammarGenerator

_LARGEST = 1_000_000


def read_grammar(section: Section, path: Path) -> GrammarGenerator:
    """The generator of a grammar file, of the size that the file asks for."""
    from swarmtest.subjects.grammar import load_grammar
    from swarmtest.subjects.grammar.generator import DEPTH, LENGTH

    start = section.text("start")
    depth = section.integer("depth", DEPTH, low=1, high=_LARGEST)
    length = section.integers("length", LENGTH)
    if len(length) not in (1, 2):
        raise section.error("length", f"a number of tokens, or a range like [5, 100], not {length}")
    try:
        return load_grammar(path, start, depth, (length[0], length[-1]))
    except UserError as error:
        raise section.error("grammar", str(error)) from None


def grammar_features(section: Section, grammar: GrammarGenerator) -> list[Feature]:
    """The grammar's features; the file may say more about each, like its rate."""
    said = {}
    names = [feature.name for feature in grammar.features]
    for name in section.names():
        if name not in names:
            raise section.error(name, f"the grammar has no such feature{did_you_mean(name, names)}")
        inner = section.section(name)
        said[name] = read_feature(name, inner)
        inner.close()
    return [said.get(feature.name, feature) for feature in grammar.features]
