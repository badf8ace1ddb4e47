"""A mutant: one small change to a program, as a value that travels, prints and is found again."""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.targets import Source, Target, content_hash

Place = tuple[tuple[str, int], ...]
"""The way from a module's syntax tree to a node: fields, with an index (-1 where there is none)."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file.

    `id` is made from the file's path, the function, the statement's text, the operator and the
    change, so it stays the same when the file is edited elsewhere.

    >>> from swarmtest.targets import Source
    >>> from swarmtest.mutation import mutants_of
    >>> source = Source("shop.py", "def total(a, b):\\n    return a + b\\n")
    >>> print(mutants_of(source, "arithmetic")[0].diff_text)
    --- shop.py:2 total
    -    return a + b
    +    return a - b
    """

    id: str
    path: str
    """`Source.path`."""
    line: int
    function: str
    """The qualified name of the function around it; empty at module and class level."""
    operator: str
    before: str
    """The lines that it changes, as they are."""
    after: str
    """The same lines, changed."""
    place: Place
    """Where the node is that it replaces."""
    change: str
    """The source of what replaces the node."""
    statement: str
    """The source of the statement that it changes."""

    @property
    def diff_text(self) -> str:
        """The change as a person reads it."""
        removed = "".join(f"\n-{line}" for line in self.before.splitlines())
        added = "".join(f"\n+{line}" for line in self.after.splitlines())
        return f"--- {self.path}:{self.line} {self.function}".rstrip() + removed + added

    def target(self, source: Source) -> Target:
        """The mutant as a target: a test that kills it hits it."""
        content = content_hash(f"{self.statement}\n{self.change}")
        name = f"{self.line} {self.id}"
        return source.target("mutant", name, self.line, self.function, content, self.diff_text)
