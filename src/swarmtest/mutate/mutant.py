"""A module as mutation sees it: its functions, its statements, and where each node is.

An *outer* function is one that is in no other function: a function, a method, a lambda of a module
or class. It is what is compiled and switched; what is nested in it comes along.

Statements of functions are numbered in the order of the text, and so is every outer lambda. The
numbers depend on the text alone: every process that parses the file counts alike.
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

# -------------------------------------------------------------------------------------------------
# A mutant: one small change to a program, as a value that travels, prints and is found again.

Place = tuple[tuple[str, int], ...]
"""The way from a module's syntax tree to a node: fields, with an index (-1 where there is none)."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file.

    `id` is made from the file's path, the function, the statement's text, the operator and the
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


# -------------------------------------------------------------------------------------------------

Function = FunctionNode | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_NODES = (ast.stmt, ast.expr)
_OUTSIDE = frozenset({"args", "decorator_list", "returns", "type_params"})


@dataclass(frozen=True)
class Spot:
    """One node: what it is part of, and what is around it."""

    node: ast.AST
    parent: ast.AST
    field: str
    outer: Place | None
    """The place of the outer function that runs it; None: the module or a class body does."""
    statement: int
    """The number of the statement (or outer lambda) that it is in; -1 outside of functions."""
    qualname: str
    """The function that it is in, or the class; empty at module level."""

    def replace(self, new: ast.AST) -> None:
        """Put another node in its place."""
        self._put(self.node, new)

    def restore(self, new: ast.AST) -> None:
        """Put it back where `new` is."""
        self._put(new, self.node)

    def _put(self, old: ast.AST, new: ast.AST) -> None:
        held = getattr(self.parent, self.field)
        if isinstance(held, list):
            held[next(i for i, one in enumerate(held) if one is old)] = new
        else:
            setattr(self.parent, self.field, new)


@dataclass(frozen=True)
class Outer:
    """An outer function, and the classes around it, which give names their meaning."""

    node: Function
    classes: tuple[str, ...]
    qualname: str

    @property
    def name(self) -> str:
        """The name of its code object."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def line(self) -> int:
        """Where its code object begins."""
        return self.node.lineno if isinstance(self.node, ast.Lambda) else first_line(self.node)


@dataclass
class Module:
    """The syntax tree of a file, with every node's place.

    >>> module = Module("def f(x):\\n    return x + 1\\n", "f.py")
    >>> [outer.qualname for outer in module.outers.values()], module.statements
    (['f'], 1)
    """

    text: str
    filename: str
    outers: dict[Place, Outer] = field(default_factory=dict)
    spots: dict[Place, Spot] = field(default_factory=dict)
    numbered: list[Place] = field(default_factory=list)
    """Where the statements and outer lambdas are, by their numbers."""
    ticks: list[int] = field(default_factory=list)
    """The numbers of the statements that begin a function or the body of a loop: each pass through
    one is a *step*."""
    loops: list[int] = field(default_factory=list)
    """Those of them that are in loops."""
    entries: dict[Place, int] = field(default_factory=dict)
    """The number that begins each outer function; those without a statement are not here."""

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text, self.filename)
        self._walk(self.tree, (), _Around(), _Around())

    @cached_property
    def futures(self) -> list[ast.stmt]:
        """What changes how the module is compiled."""
        return [node for node in self.tree.body if is_future_import(node)]

    def _walk(self, node: ast.AST, place: Place, around: _Around, outside: _Around) -> None:
        """`outside` is what is around a function: there its defaults and decorators run."""
        for name, index, child in children(node):
            below = (*place, (name, index))
            where = outside if name in _OUTSIDE and isinstance(node, _FUNCTIONS) else around
            inner = self._around(node, name, child, below, where)
            if isinstance(child, _NODES):
                self.spots[below] = Spot(
                    child, node, name, inner.outer, inner.statement, where.qualname
                )
            self._walk(child, below, self._inside(child, below, inner), inner)

    def _around(
        self, parent: ast.AST, name: str, child: ast.AST, place: Place, around: _Around
    ) -> _Around:
        """What is around a child: a statement in a function has a number."""
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

    def _inside(self, child: ast.AST, place: Place, around: _Around) -> _Around:
        """What is around that which a child holds."""
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
        self.outers[place] = Outer(child, around.classes, name)
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
        """How many statements and outer lambdas are numbered."""
        return len(self.numbered)


@dataclass(frozen=True)
class _Around:
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

    def _replace(self, **fields: object) -> _Around:
        return _Around(**{**self.__dict__, **fields})


def _first_statement(node: ast.AST) -> ast.stmt | None:
    """The first statement of a body that is executed."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    if isinstance(node, _LOOPS) or not is_docstring(body[0]):
        return body[0]
    return body[1] if len(body) > 1 else None


def children(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """The nodes directly below one, each with its field and its index (-1: not in a list)."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield name, -1, value
        elif isinstance(value, list):
            for i, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield name, i, one
