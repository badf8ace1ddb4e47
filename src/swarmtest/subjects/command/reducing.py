"""Making a test smaller: by subtrees, or blocks and lines; then by an external reducer if asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarmtest.reduction import minimised
from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.specification import Specification

if TYPE_CHECKING:
    from swarmtest.subjects.grammar import GrammarGenerator

_MOST_BYTES = 4096
"""Binary tests up to this size are reduced byte by byte at the end."""

Interesting = Callable[[CommandTest], bool]


def reduced_test(spec: Specification, test: CommandTest, interesting: Interesting) -> CommandTest:
    """A smaller test that is still interesting."""
    grammar = spec.generate.grammar
    if grammar is not None and test.tree is not None:
        test = _by_subtrees(grammar, test, interesting)
    else:
        for split in (blocks, lines, single_bytes):
            test = _by_parts(test, split(test.content), interesting)
    from swarmtest.subjects.command.external import externally_reduced, reducer_of

    command = reducer_of(spec)
    return externally_reduced(spec, command, test, interesting) if command else test


def _by_subtrees(
    grammar: GrammarGenerator, test: CommandTest, interesting: Interesting
) -> CommandTest:
    def with_tree(tree: Any) -> CommandTest:
        return replace(test, content=grammar.text(tree).encode(), tree=tree)

    return with_tree(grammar.reduced(test.tree, lambda tree: interesting(with_tree(tree))))


def _by_parts(test: CommandTest, parts: list[bytes], interesting: Interesting) -> CommandTest:
    if len(parts) < 2:
        return test

    def still(kept: Sequence[bytes]) -> bool:
        return bool(kept) and interesting(test.with_content(b"".join(kept)))

    kept: tuple[bytes, ...] = minimised(parts, still)
    return test.with_content(b"".join(kept))


def lines(content: bytes) -> list[bytes]:
    """The lines of a test, with their ends.

    >>> lines(b"a\\nb")
    [b'a\\n', b'b']
    """
    return content.splitlines(keepends=True)


def blocks(content: bytes) -> list[bytes]:
    """Lines joined where braces are open, so that functions and structs go as wholes.

    >>> blocks(b"int x;\\nint f() {\\n  return 1;\\n}\\nint y;\\n")
    [b'int x;\\n', b'int f() {\\n  return 1;\\n}\\n', b'int y;\\n']
    """
    found: list[bytes] = []
    depth = 0
    for line in lines(content):
        if depth > 0:
            found[-1] += line
        else:
            found.append(line)
        depth = max(0, depth + line.count(b"{") - line.count(b"}"))
    joined = len(found) < len(lines(content))
    return found if joined else []


def single_bytes(content: bytes) -> list[bytes]:
    """The bytes of a small binary test; nothing for text, whose words are not to be torn.

    >>> single_bytes(b"\\xff\\x00")
    [b'\\xff', b'\\x00']
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        if len(content) <= _MOST_BYTES:
            return [content[i : i + 1] for i in range(len(content))]
    return []
