"""Find where a Python function may be called from, by name.

Python does not say what a name will mean at run time, so this over-approximates: a mention of the
name counts as a call (callbacks are mentions). What the text does say narrows it down: imports, the
class around ``self.``, underscores. A name that is mentioned everywhere says nothing; then there
are no call sites (`TOO_MANY`).

Syntax also calls special methods without naming them: ``with`` calls ``__enter__``, and ``len(x)``
calls ``__len__``.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from swarmtest.coverage.weaving.syntax import logical_lines

# Special methods that syntax and built-in functions call.

_BY_FUNCTION = {
    "abs": ("__abs__",),
    "aiter": ("__aiter__",),
    "anext": ("__anext__",),
    "bool": ("__bool__", "__len__"),
    "bytes": ("__bytes__",),
    "complex": ("__complex__",),
    "delattr": ("__delattr__",),
    "dict": ("__iter__", "keys"),
    "dir": ("__dir__",),
    "divmod": ("__divmod__", "__rdivmod__"),
    "enumerate": ("__iter__", "__next__"),
    "float": ("__float__", "__index__"),
    "format": ("__format__", "__str__"),
    "hash": ("__hash__",),
    "int": ("__int__", "__index__", "__trunc__"),
    "iter": ("__iter__", "__getitem__"),
    "len": ("__len__",),
    "list": ("__iter__", "__next__"),
    "max": ("__iter__", "__next__", "__gt__", "__lt__"),
    "min": ("__iter__", "__next__", "__lt__", "__gt__"),
    "next": ("__next__",),
    "pow": ("__pow__", "__rpow__"),
    "print": ("__str__", "__repr__"),
    "repr": ("__repr__",),
    "reversed": ("__reversed__", "__getitem__", "__len__"),
    "round": ("__round__",),
    "set": ("__iter__", "__next__", "__hash__", "__eq__"),
    "setattr": ("__setattr__",),
    "sorted": ("__iter__", "__next__", "__lt__"),
    "str": ("__str__", "__repr__"),
    "sum": ("__iter__", "__next__", "__add__", "__radd__"),
    "tuple": ("__iter__", "__next__"),
}
_OPERATORS = {
    ast.Add: "add",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.LShift: "lshift",
    ast.MatMult: "matmul",
    ast.Mod: "mod",
    ast.Mult: "mul",
    ast.Pow: "pow",
    ast.RShift: "rshift",
    ast.Sub: "sub",
}
_UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__", ast.Not: "__bool__"}
_COMPARED = {
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.In: ("__contains__", "__iter__", "__eq__"),
    ast.NotIn: ("__contains__", "__iter__", "__eq__"),
}
_SUBSCRIPTED = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
_ITERATED = ("__iter__", "__next__", "__getitem__")
_ITERATED_ASYNC = ("__aiter__", "__anext__")


def implicit_mentions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the special methods that a node may call, each with the node that has its line.

    >>> (call,) = ast.parse("len(x)").body
    >>> [name for name, _ in implicit_mentions(call.value)]
    ['__len__']
    """
    located = node.iter if isinstance(node, ast.comprehension) else node
    for name in _special_methods(node):
        yield name, located


def _special_methods(node: ast.AST) -> tuple[str, ...]:
    """Return the names of the special methods that a node may call."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _BY_FUNCTION:
            return _BY_FUNCTION[name]
        case ast.With():
            return ("__enter__", "__exit__")
        case ast.AsyncWith():
            return ("__aenter__", "__aexit__")
        case ast.For() | ast.comprehension(is_async=0) | ast.YieldFrom():
            return _ITERATED
        case ast.AsyncFor() | ast.comprehension():
            return _ITERATED_ASYNC
        case ast.Await():
            return ("__await__",)
        case ast.BinOp(op=operator):
            name = _OPERATORS[type(operator)]
            return (f"__{name}__", f"__r{name}__")
        case ast.AugAssign(op=operator):
            name = _OPERATORS[type(operator)]
            return (f"__i{name}__", f"__{name}__", f"__r{name}__")
        case ast.UnaryOp(op=operator):
            return (_UNARY[type(operator)],)
        case ast.Compare(ops=operators):
            return tuple(n for operator in operators for n in _COMPARED.get(type(operator), ()))
        case ast.Subscript(ctx=context):
            return (_SUBSCRIPTED[type(context)],)
        case ast.If() | ast.While() | ast.IfExp():
            return ("__bool__",)
        case ast.FormattedValue(conversion=conversion):
            return ("__repr__",) if conversion == ord("r") else ("__format__", "__str__")
    return ()


# Call sites.

TOO_MANY = 12
"""With more call sites than this, "one of them is executed" says next to nothing."""
_FEATURE_DECORATORS = {"action", "rule"}
"""Decorators that make a method of a harness a feature."""
_CONSTRUCTORS = {"__init__", "__new__", "__post_init__"}


@dataclass(frozen=True)
class CallSite:
    """A line that calls a function, or mentions it."""

    place: str
    line: int
    """Where the statement begins."""
    caller: str
    """The qualified name of the function around it; empty at module level."""
    feature: str = ""
    """The action of the harness that contains it."""


@dataclass(frozen=True)
class _Mention:
    """An occurrence of a name in the text."""

    name: str
    line: int
    caller: str
    receiver: str
    """What is before the dot: a name, or ``()`` for anything else; empty without a dot."""
    within: str
    """The enclosing class; empty if there is none."""
    stored: bool = False
    implicit: bool = False


@dataclass
class _File:
    """What the text of one file says about names."""

    mentions: dict[str, list[_Mention]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    """Class -> the names of its bases, without what is before the dots."""
    imported: dict[str, str] = field(default_factory=dict)
    """Name in this file -> the name that was imported under it."""
    modules: set[str] = field(default_factory=set)
    """Names that stand for modules."""
    decorators: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Function -> the last parts of the names of its decorators."""
    functions: set[str] = field(default_factory=set)


def call_sites(
    function: str, sources: Mapping[str, str], place: str = "", harness: str = ""
) -> list[CallSite]:
    """Return where a function is called, as far as names say; nothing if that is nearly everywhere.

    `place` is the file that defines it, `harness` the one whose actions are features; both are keys
    of `sources`.

    >>> call_sites("double", {"a.py": "def double(x): ...\\ndef g():\\n    return double(2)\\n"})
    [CallSite(place='a.py', line=3, caller='g', feature='')]
    """
    files = {name: file for name, text in sources.items() if (file := _read(text)) is not None}
    owner = place or next((name for name, file in files.items() if function in file.functions), "")
    callee = _Callee.of(function, owner, files)
    mentions = [
        (name, mention)
        for name, file in files.items()
        for mention in callee.mentions_in(file, name == owner)
    ]
    for narrower in (lambda _: True, callee.is_near):
        chosen = [(name, mention) for name, mention in mentions if narrower((name, mention))]
        sites = _sites(chosen, files, harness)
        if sites and len(sites) <= TOO_MANY:
            return sites
    return []


def _sites(
    mentions: Iterable[tuple[str, _Mention]], files: Mapping[str, _File], harness: str
) -> list[CallSite]:
    sites = {
        CallSite(
            name,
            mention.line,
            mention.caller,
            _feature(files[name], mention.caller) if name == harness else "",
        )
        for name, mention in mentions
    }
    return sorted(sites, key=lambda site: (site.place, site.line))


def _feature(file: _File, caller: str) -> str:
    """Return the action that a function of a harness is, or is part of."""
    outermost = caller.partition(".<locals>")[0]
    decorated = _FEATURE_DECORATORS & set(file.decorators.get(outermost, ()))
    return outermost.rpartition(".")[2] if decorated else ""


@dataclass(frozen=True)
class _Callee:
    """What a mention of the function looks like."""

    name: str
    around: str
    """The class that defines it; empty for a plain function."""
    family: frozenset[str]
    """That class and all its subclasses and superclasses, by name."""
    scope: str
    """The function in which it is defined; empty if there is none."""
    place: str
    stored: bool | None
    """Whether assignments call it (a property's setter); None if it is not a property."""

    @classmethod
    def of(cls, function: str, place: str, files: Mapping[str, _File]) -> _Callee:
        """Return the callee with a qualified name, defined in the file `place`."""
        before, _, name = function.rpartition(".")
        scope, around = "", before
        if "<locals>" in before:
            scope, _, around = before.rpartition(".<locals>")
            around = around.removeprefix(".")
        around = around.rpartition(".")[2]
        family = _family(around, files) if around else frozenset()
        file = files.get(place)
        decorators = set(file.decorators.get(function, ())) if file else set()
        stored = None
        if decorators & {"setter", "deleter"}:
            stored = True
        elif decorators & {"property", "cached_property", "getter"}:
            stored = False
        return cls(name, around, family, scope, place, stored)

    def mentions_in(self, file: _File, own: bool) -> Iterator[_Mention]:
        """Yield the mentions in a file that may mean the function."""
        if self.scope:
            for mention in file.mentions.get(self.name, ()) if own else ():
                nested = mention.caller == self.scope or mention.caller.startswith(self.scope + ".")
                if nested and (mention.receiver or not self.around):
                    yield mention
        elif self.around:
            yield from self._of_method(file)
        else:
            yield from self._of_function(file, own)

    def _of_function(self, file: _File, own: bool) -> Iterator[_Mention]:
        names = {new for new, old in file.imported.items() if old == self.name}
        for name in names | ({self.name} if own or "*" in file.imported else set()):
            for mention in file.mentions.get(name, ()):
                if not mention.receiver and not mention.stored:
                    yield mention
        for mention in file.mentions.get(self.name, ()):
            if mention.receiver in file.modules:
                yield mention

    def _of_method(self, file: _File) -> Iterator[_Mention]:
        if self.name in _CONSTRUCTORS:
            yield from self._of_class(file)
        for mention in file.mentions.get(self.name, ()):
            if mention.implicit:
                yield mention
            elif not mention.receiver or mention.receiver in file.modules:
                continue
            elif mention.receiver in ("self", "cls", "super()"):
                if mention.within in self.family:
                    yield mention
            elif (self.stored in (None, mention.stored)) and (
                self.name not in _CONSTRUCTORS or mention.receiver in self.family
            ):
                yield mention

    def _of_class(self, file: _File) -> Iterator[_Mention]:
        """Yield where the class or a subclass is called."""
        names = {new for new, old in file.imported.items() if old in self.family} | self.family
        for name in names:
            for mention in file.mentions.get(name, ()):
                if not mention.stored:
                    yield mention
        for mention in file.mentions.get("cls", ()):
            if not mention.receiver and mention.within in self.family:
                yield mention

    def is_near(self, mention_in_file: tuple[str, _Mention]) -> bool:
        """Return whether a mention is in the same module, and in the same class for a method."""
        name, mention = mention_in_file
        if self.around and not mention.implicit and self.name not in _CONSTRUCTORS:
            return name == self.place and mention.within in self.family
        return name == self.place


def _family(around: str, files: Mapping[str, _File]) -> frozenset[str]:
    """Return a class with all its subclasses and superclasses."""
    below: dict[str, set[str]] = {}
    above: dict[str, set[str]] = {}
    for file in files.values():
        for child, parents in file.bases.items():
            above.setdefault(child, set()).update(parents)
            for parent in parents:
                below.setdefault(parent, set()).add(child)
    family = {around}
    for relation in (below, above):
        left = [around]
        while left:
            fresh = relation.get(left.pop(), set()) - family
            family |= fresh
            left.extend(fresh)
    return frozenset(family - {"object", "ABC", "Protocol", "Generic", "Exception"})


@lru_cache(maxsize=4096)
def _read(text: str) -> _File | None:
    """Return what a file says about names; None if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        reader = _Reader(logical_lines(text))
    except (SyntaxError, ValueError):
        return None
    reader.visit(tree)
    return reader.file


class _Reader(ast.NodeVisitor):
    """A visitor that collects the names of a file."""

    def __init__(self, starts: dict[int, int]) -> None:
        self.file = _File()
        self._starts = starts
        self._prefix = ""
        self._caller = ""
        self._within = ""

    def _mention(
        self, name: str, node: ast.AST, receiver: str, stored: bool = False, implicit: bool = False
    ) -> None:
        line = getattr(node, "lineno", 0)
        line = self._starts.get(line, line)
        mention = _Mention(name, line, self._caller, receiver, self._within, stored, implicit)
        self.file.mentions.setdefault(name, []).append(mention)

    def generic_visit(self, node: ast.AST) -> None:
        for name, place in implicit_mentions(node):
            self._mention(name, place, "()", implicit=True)
        super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._mention(node.id, node, "", not isinstance(node.ctx, ast.Load))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._mention(node.attr, node, _receiver(node.value), not isinstance(node.ctx, ast.Load))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        name = self._prefix + node.name
        self.file.functions.add(name)
        self.file.decorators[name] = tuple(
            _last_name(decorator) for decorator in node.decorator_list
        )
        for part in (*node.decorator_list, node.args, node.returns):
            if part is not None:
                self.visit(part)
        before = self._prefix, self._caller, self._within
        self._prefix, self._caller = f"{name}.<locals>.", name
        for statement in node.body:
            self.visit(statement)
        self._prefix, self._caller, self._within = before

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.file.bases[node.name] = {_last_name(base) for base in node.bases} - {""}
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        before = self._prefix, self._within
        self._prefix, self._within = f"{self._prefix}{node.name}.", node.name
        for statement in node.body:
            self.visit(statement)
        self._prefix, self._within = before

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.file.modules.add(alias.asname or alias.name.partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.file.imported[alias.asname or alias.name] = alias.name
            self.file.modules.add(alias.asname or alias.name)


def _receiver(value: ast.expr) -> str:
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Call) and _last_name(value.func) == "super":
        return "super()"
    return "()"


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, which may be called or subscripted."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
