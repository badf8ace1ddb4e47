"""Languages with indentation: INDENT and DEDENT are spaces in a text, and Lark reads it back."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest
from lark.indenter import Indenter, PythonIndenter

from swarmtest.subjects.grammar.generator import GrammarGenerator, load_grammar
from swarmtest.subjects.grammar.growth import tokens_of
from swarmtest.subjects.grammar.model import DEDENT, INDENT

PYTHON = Path(lark.__file__).parent / "grammars" / "python.lark"
TREES = r"""
start: _NL* tree
tree: NAME _NL [_INDENT tree+ _DEDENT]
NAME: /[a-z]+/
_NL: /(\r?\n[\t ]*)+/
%declare _INDENT _DEDENT
%ignore / +/
"""


class TreeIndenter(Indenter):
    """As in Lark's example of an indented tree."""

    NL_type = "_NL"
    OPEN_PAREN_types: list[str] = []
    CLOSE_PAREN_types: list[str] = []
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


def texts_of(generator: GrammarGenerator, count: int) -> list[str]:
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    return [generator.text(generator.generate(weights, seed)) for seed in range(count)]


def test_a_text_nests_as_its_tree_does() -> None:
    generator = load_grammar(TREES, length=(1, 60))
    parser = lark.Lark(TREES, parser="lalr", postlex=TreeIndenter())
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    nested = 0
    for seed in range(100):
        tree = generator.generate(weights, seed)
        names = [t for t in tokens_of(tree) if t.isalpha()]
        depths = [d for d, t in _with_depths(tokens_of(tree)) if t.isalpha()]
        read = parser.parse(generator.text(tree))
        assert [(d, n) for d, n in _names_of(read)] == [*zip(depths, names, strict=True)]
        nested += max(depths) > 1
    assert nested > 20


def _with_depths(tokens: list[str]) -> list[tuple[int, str]]:
    found, depth = [], 0
    for token in tokens:
        depth += {INDENT: 1, DEDENT: -1}.get(token, 0)
        found.append((depth, token))
    return found


def _names_of(tree: lark.Tree[lark.Token], depth: int = -1) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for child in tree.children:
        if isinstance(child, lark.Tree):
            found += _names_of(child, depth + 1)
        elif child is not None:
            found.append((depth, str(child)))
    return found


@pytest.mark.parametrize("start", ["file_input", "eval_input"])
def test_larks_own_python_grammar_reads_every_text_back(start: str) -> None:
    generator = load_grammar(PYTHON, start, length=(5, 60))
    parser = lark.Lark.open(str(PYTHON), parser="lalr", postlex=PythonIndenter(), start=start)
    for text in texts_of(generator, 150):
        parser.parse(text + ("\n" if start == "file_input" else ""))


def test_blocks_are_reduced_with_their_indentation() -> None:
    generator = load_grammar(TREES, length=40)
    weights = dict.fromkeys(generator.grammar.features, 1.0)

    def deep(text: str) -> bool:
        return re.search(r"\n {8}[a-z]", text) is not None

    tree = next(t for s in range(100) if deep(generator.text(t := generator.generate(weights, s))))
    small = generator.reduced(tree, lambda tree: deep(generator.text(tree)))
    assert generator.text(small) == "a\n    a\n        a\n"
