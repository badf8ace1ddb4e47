"""A mutant as a value, and a Python module as mutation sees it: functions, statements, places.

A mutant is one small change to a program; it can be sent to other processes, printed, and found
again in the file. It names the node that it replaces by the node's place in the syntax tree.

An *outer* function is one that is not nested in another function: a function, a method, or a lambda
at module or class level. Outer functions are what is compiled and switched; functions that are
nested in them come along.

Statements in functions are numbered in the order of the text, and so is every outer lambda. The
numbers depend on the text alone, so every process that parses the file assigns the same numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from swarmtest.core.targets import Source, Target, content_hash
from swarmtest.coverage.weaving.syntax import (
    FunctionNode,
    first_line,
    is_docstring,
    is_future_import,
)

Place = tuple[tuple[str, int], ...]
"""The path from a module's syntax tree to a node: field names, each with an index (-1: none)."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file.

    `id` is a hash of the file's path, the function, the statement's text, the operator and the
    change, so it stays the same when the file is edited elsewhere.

    >>> from swarmtest.core.targets import Source
    >>> from swarmtest.mutate.generation import mutants_of
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
    """The qualified name of the enclosing function; empty at module and class level."""
    operator: str
    before: str
    """The lines that it changes, before the change."""
    after: str
    """The same lines after the change."""
    place: Place
    """The place of the node that it replaces."""
    change: str
    """The source of the node's replacement."""
    statement: str
    """The source of the statement that it changes."""

    @property
    def diff_text(self) -> str:
        """The change as a small diff, for people."""
        removed = "".join(f"\n-{line}" for line in self.before.splitlines())
        added = "".join(f"\n+{line}" for line in self.after.splitlines())
        return f"--- {self.path}:{self.line} {self.function}".rstrip() + removed + added

    def target(self, source: Source) -> Target:
        """Return the mutant as a target, which a test hits by killing the mutant."""
        content = content_hash(f"{self.statement}\n{self.change}")
        name = f"{self.line} {self.id}"
        return source.target("mutant", name, self.line, self.function, content, self.diff_text)


# The syntax tree of a module, with what mutation needs to know about each node.

Function = FunctionNode | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_NODES = (ast.stmt, ast.expr)
_OUTSIDE = frozenset({"args", "decorator_list", "returns", "type_params"})
"""The fields of a function that are evaluated outside of it, when it is defined."""


@dataclass(frozen=True)
class NodeSpot:
    """One node of the syntax tree, with its parent and its surroundings."""

    node: ast.AST
    parent: ast.AST
    field: str
    outer: Place | None
    """The place of the outer function that runs it; None if the module or a class body does."""
    statement: int
    """The number of the enclosing statement (or outer lambda); -1 outside of functions."""
    qualname: str
    """The enclosing function or class; empty at module level."""

    def replace(self, new: ast.AST) -> None:
        """Replace the node in the tree by another."""
        self._put(self.node, new)

    def restore(self, new: ast.AST) -> None:
        """Undo `replace`, which put `new` into the tree."""
        self._put(new, self.node)

    def _put(self, old: ast.AST, new: ast.AST) -> None:
        value = getattr(self.parent, self.field)
        if isinstance(value, list):
            value[next(i for i, node in enumerate(value) if node is old)] = new
        else:
            setattr(self.parent, self.field, new)


@dataclass(frozen=True)
class OuterFunction:
    """An outer function and its enclosing classes, which decide what names in it mean."""

    node: Function
    classes: tuple[str, ...]
    qualname: str

    @property
    def name(self) -> str:
        """The name of its code object."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def line(self) -> int:
        """The first line of its code object."""
        return self.node.lineno if isinstance(self.node, ast.Lambda) else first_line(self.node)


@dataclass
class Module:
    """The syntax tree of a file, with the place of every node and the numbers of statements.

    >>> module = Module("def f(x):\\n    return x + 1\\n", "f.py")
    >>> [outer.qualname for outer in module.outers.values()], module.statements
    (['f'], 1)
    """

    text: str
    filename: str
    outers: dict[Place, OuterFunction] = field(default_factory=dict)
    spots: dict[Place, NodeSpot] = field(default_factory=dict)
    numbered: list[Place] = field(default_factory=list)
    """The places of the numbered statements and outer lambdas."""
    ticks: list[int] = field(default_factory=list)
    """The numbers of the statements that begin a function or the body of a loop: each execution of
    one is a *step*."""
    loops: list[int] = field(default_factory=list)
    """Those of `ticks` that begin the body of a loop."""
    entries: dict[Place, int] = field(default_factory=dict)
    """The number of each outer function's first statement, for functions that have one."""

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text, self.filename)
        self._walk(self.tree, (), _Context(), _Context())

    @cached_property
    def futures(self) -> list[ast.stmt]:
        """The ``from __future__`` imports, which change how the module is compiled."""
        return [node for node in self.tree.body if is_future_import(node)]

    def _walk(self, node: ast.AST, place: Place, around: _Context, outside: _Context) -> None:
        """Visit all nodes below one.

        `outside` is the context of a function's definition, where its defaults and decorators run.
        """
        for name, index, child in children(node):
            below = (*place, (name, index))
            where = outside if name in _OUTSIDE and isinstance(node, _FUNCTIONS) else around
            inner = self._around(node, name, child, below, where)
            if isinstance(child, _NODES):
                self.spots[below] = NodeSpot(
                    child, node, name, inner.outer, inner.statement, where.qualname
                )
            self._walk(child, below, self._inside(child, below, inner), inner)

    def _around(
        self, parent: ast.AST, name: str, child: ast.AST, place: Place, around: _Context
    ) -> _Context:
        """Return the context of a child; number it if it is a statement in a function."""
        if around.outer is None or not isinstance(child, ast.stmt):
            return around
        number = self._number(place)
        begins = name == "body" and isinstance(parent, (*_FUNCTIONS, *_LOOPS))
        if begins and child is _first_statement(parent):
            self.ticks.append(number)
            if isinstance(parent, _LOOPS):
                self.loops.append(number)
            elif place[:-1] in self.outers:
                self.entries[place[:-1]] = number
        return around._replace(statement=number)

    def _inside(self, child: ast.AST, place: Place, around: _Context) -> _Context:
        """Return the context of the nodes in a child; note it if it is an outer function."""
        if isinstance(child, ast.ClassDef):
            name = around.within(child.name)
            classes = (*around.classes, child.name)
            return around._replace(classes=classes, qualname=name, local=False)
        if not isinstance(child, _FUNCTIONS):
            return around
        own = "<lambda>" if isinstance(child, ast.Lambda) else child.name
        name = around.within(own)
        if around.outer is not None:
            return around._replace(qualname=name, local=True)
        self.outers[place] = OuterFunction(child, around.classes, name)
        statement = -1
        if isinstance(child, ast.Lambda):
            statement = self._number(place)
            self.ticks.append(statement)
            self.entries[place] = statement
        return around._replace(outer=place, qualname=name, local=True, statement=statement)

    def _number(self, place: Place) -> int:
        self.numbered.append(place)
        return len(self.numbered) - 1

    @property
    def statements(self) -> int:
        """The number of numbered statements and outer lambdas."""
        return len(self.numbered)


@dataclass(frozen=True)
class _Context:
    """The context of a node: the enclosing outer function, statement and classes."""

    outer: Place | None = None
    statement: int = -1
    qualname: str = ""
    classes: tuple[str, ...] = ()
    local: bool = False
    """Whether names are local to a function."""

    def within(self, name: str) -> str:
        if not self.qualname:
            return name
        return f"{self.qualname}.<locals>.{name}" if self.local else f"{self.qualname}.{name}"

    def _replace(self, **fields: object) -> _Context:
        return _Context(**{**self.__dict__, **fields})


def _first_statement(node: ast.AST) -> ast.stmt | None:
    """Return the first statement of a body that is executed: a docstring is not."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    if isinstance(node, _LOOPS) or not is_docstring(body[0]):
        return body[0]
    return body[1] if len(body) > 1 else None


def children(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """Yield the direct children of a node, each with its field and index (-1: not in a list)."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield name, -1, value
        elif isinstance(value, list):
            for i, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield name, i, child
