"""C text as a syntax tree, by tree-sitter: a real grammar, which needs no headers and no flags."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from swarmtest.errors import UserError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


@functools.cache
def _parser() -> Parser:
    try:
        import tree_sitter
        import tree_sitter_c
    except ImportError:
        raise UserError(
            "mutants of C programs need tree-sitter: pip install 'swarmtest[mutants-c]'"
        ) from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))


def parsed(raw: bytes) -> Node:
    """The root of a file's tree; what the grammar does not know is a node of type ``ERROR``."""
    return _parser().parse(raw).root_node
