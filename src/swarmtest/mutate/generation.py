"""From the text of a file to its mutants.

Left alone are docstrings, annotations, ``__all__`` and ``__slots__``, what only type checkers or
``python file.py`` see, messages of assertions, and lines marked ``# pragma: no mutate`` or
``# pragma: no cover`` with all that is below them.

A mutant that compiles to the code of the original, or of an earlier mutant, is *trivially
equivalent*: it is dropped and counted.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import io
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.seeds import key_of, mixed
from swarmtest.core.targets import Source, content_hash
from swarmtest.coverage.weaving.syntax import header_end, is_docstring
from swarmtest.mutate.mutant import Function, Module, Mutant, Outer, Place, Spot, children
from swarmtest.mutate.operators import changes_of, parse_operators

# -------------------------------------------------------------------------------------------------
# Compiling the part of a module that a mutant changes, and telling code objects apart.
#
# A function is compiled inside the classes that it is in, because they decide what ``super()`` and
# names with two underscores mean; what else is in them is left out. Names of variables that code
# takes from the function around it must stay the same in a mutant, or it could not be put into a
# function that exists already: what no longer occurs is mentioned in code that never runs.


def replacement(spot: Spot, change: str) -> ast.AST:
    """The node that `change` stands for, at the lines of the one that it replaces."""
    new: ast.AST
    if isinstance(spot.node, ast.stmt):
        new = ast.parse(change).body[0]
    else:
        wrapped = ast.parse(f"_[{change}]").body[0]
        assert isinstance(wrapped, ast.Expr)
        assert isinstance(wrapped.value, ast.Subscript)
        new = wrapped.value.slice
    for node in ast.walk(new):
        if "lineno" in node._attributes:
            ast.copy_location(node, spot.node)
    return new


def module_code(module: Module) -> CodeType:
    """The code of the whole module, as the tree is now."""
    return _compile(module.tree.body, module.filename)


def statement_code(module: Module, index: int) -> CodeType:
    """The code of a statement of the module, as the tree is now."""
    return _compile([*module.futures, module.tree.body[index]], module.filename)


def function_code(
    module: Module, outer: Outer, keep: dict[str, set[str]] | None = None
) -> CodeType:
    """The code object of an outer function.

    `keep`: for functions within it, by qualified name, variables that have to stay free.
    """
    node: Function = outer.node
    if keep:
        node = _mentioning(outer, keep)
    body: ast.stmt = node if not isinstance(node, ast.Lambda) else _expression(node)
    for name in reversed(outer.classes):
        body = _class(name, body)
    code = _compile([*module.futures, body], module.filename)
    return next(
        one
        for one in nested_codes(code)
        if one.co_name == outer.name and one.co_firstlineno == outer.line
    )


def _compile(body: list[ast.stmt], filename: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mutant may do what nobody would write
        code: CodeType = compile(ast.Module(body, []), filename, "exec", dont_inherit=True)
        return code


def _expression(node: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(node), node)


def _class(name: str, body: ast.stmt) -> ast.stmt:
    shell = ast.parse(f"class {name}: pass").body[0]
    assert isinstance(shell, ast.ClassDef)
    shell.body = [body]
    return shell


def _mentioning(outer: Outer, keep: dict[str, set[str]]) -> Function:
    """A copy of a function in which variables are mentioned where they no longer occur."""
    whole = copy.deepcopy(outer.node)
    for node, name in _functions_in(whole, outer.qualname):
        if keep.get(name) and not isinstance(node, ast.Lambda):
            names = [ast.Name(one, ast.Load()) for one in sorted(keep[name])]
            never = ast.If(ast.Constant(0), [ast.Expr(one) for one in names], [])
            node.body.append(ast.fix_missing_locations(ast.copy_location(never, node.body[-1])))
    return whole


def _functions_in(node: ast.AST, qualname: str) -> Iterator[tuple[Function, str]]:
    if isinstance(node, Function):
        yield node, qualname
        qualname += ".<locals>"
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions_in(child, f"{qualname}.{child.name}")
        else:
            yield from _functions_in(child, qualname.removesuffix(".<locals>") + ".<locals>")


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are in it, the outer ones first."""
    level = [code]
    while level:
        yield from level
        level = [one for c in level for one in c.co_consts if isinstance(one, CodeType)]


def code_key(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where its lines are: equal keys run alike."""
    return (
        code.co_code,
        tuple(_constant_key(one) for one in code.co_consts),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_exceptiontable,
    )


def _constant_key(value: object) -> object:
    if isinstance(value, CodeType):
        return code_key(value)
    if isinstance(value, tuple | frozenset):
        keys = [_constant_key(one) for one in value]
        return type(value), tuple(keys) if isinstance(value, tuple) else frozenset(keys)
    return type(value), repr(value)


# -------------------------------------------------------------------------------------------------

_PRAGMA = re.compile(r"#\s*pragma:\s*no\s*(mutate|cover)\b")
_NAMES = ("__all__", "__slots__")
_LOGS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "warnings"})
_UNSEEN = frozenset({"annotation", "returns", "type_comment", "format_spec", "msg"})


@dataclass(frozen=True)
class Mutants:
    """The mutants of one file."""

    source: Source
    mutants: tuple[Mutant, ...]
    equivalent: int
    """How many were dropped because they compile to what is there already."""


def mutants_of(
    source: Source, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[Mutant]:
    """The mutants of a file, in the order of its text; only those on `lines`, if any are given.

    >>> source = Source("shop.py", "def free(total):\\n    return total > 100\\n")
    >>> for mutant in mutants_of(source, "relational"):
    ...     print(mutant.after.strip())
    return total < 100
    return total <= 100
    return total >= 100
    return total == 100
    return total != 100
    """
    return list(all_mutants(source, operators, lines).mutants)


def all_mutants(
    source: Source, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> Mutants:
    """The mutants of a file, and how many of them were dropped."""
    chosen = parse_operators(operators if isinstance(operators, str) else ",".join(operators))
    try:
        module = Module(source.text, source.place or source.path)
    except SyntaxError as error:
        raise UserError(f"{source.path}:{error.lineno}: cannot be mutated: {error.msg}") from None
    return _Generator(source, module, chosen, lines).mutants()


class _Generator:
    def __init__(
        self,
        source: Source,
        module: Module,
        operators: frozenset[str],
        lines: Collection[int] | None,
    ) -> None:
        self._source = source
        self._module = module
        self._operators = operators
        self._wanted = None if lines is None else frozenset(lines)
        self._lines = source.text.splitlines()
        self._marked = _marked_lines(source.text)
        self._seen: set[object] = set()
        self._original: dict[Place | int, object] = {}
        self._ordinals: Counter[str] = Counter()
        self._equivalent = 0

    def mutants(self) -> Mutants:
        found = sorted(self._below(self._module.tree, (), None), key=self._position)
        return Mutants(self._source, tuple(found), self._equivalent)

    def _position(self, mutant: Mutant) -> tuple[int, int]:
        node: Any = self._module.spots[mutant.place].node
        return node.lineno, node.col_offset

    def _below(self, node: ast.AST, place: Place, statement: ast.stmt | None) -> Iterator[Mutant]:
        for name, index, child in children(node):
            if name in _UNSEEN or self._is_left_alone(child):
                continue
            below = (*place, (name, index))
            around = child if isinstance(child, ast.stmt) else statement
            spot = self._module.spots.get(below)
            if spot is not None and around is not None and not _is_part_of_text(spot):
                yield from self._here(spot, below, around)
            yield from self._below(child, below, around)

    def _is_left_alone(self, node: ast.AST) -> bool:
        if isinstance(node, ast.expr):
            return "logging" not in self._operators and _is_log_call(node)
        if not isinstance(node, ast.stmt):
            return isinstance(node, ast.ExceptHandler) and node.lineno in self._marked
        if is_docstring(node) or _is_listing(node) or _is_for_others(node):
            return True
        return any(line in self._marked for line in range(node.lineno, header_end(node) + 1))

    def _here(self, spot: Spot, place: Place, statement: ast.stmt) -> Iterator[Mutant]:
        line = spot.node.lineno  # type: ignore[attr-defined]
        if self._wanted is not None and line not in self._wanted:
            return
        if isinstance(spot.node, ast.Expr) and self._is_left_alone(spot.node.value):
            return
        in_default = any(name in ("defaults", "kw_defaults") for name, _ in place)
        for operator, node in changes_of(spot.node, spot.parent, spot.field):
            named = "defaults" if in_default else operator
            if named in self._operators:
                mutant = self._mutant(spot, place, statement, named, node)
                if mutant is not None:
                    yield mutant

    def _mutant(
        self, spot: Spot, place: Place, statement: ast.stmt, operator: str, node: ast.AST
    ) -> Mutant | None:
        change = ast.unparse(node)
        key = self._key(spot, place, change)
        if key in self._seen:
            self._equivalent += 1
            return None
        self._seen.add(key)
        line = spot.node.lineno  # type: ignore[attr-defined]
        before, after = self._shown(spot, change)
        text = "\n".join(self._lines[statement.lineno - 1 : header_end(statement)])
        said = "\0".join(
            (self._source.path, spot.qualname, content_hash(text), operator, before.strip(), change)
        )
        self._ordinals[said] += 1
        digest = hashlib.blake2b(f"{said}\0{self._ordinals[said]}".encode(), digest_size=5)
        return Mutant(
            digest.hexdigest(),
            self._source.path,
            line,
            self._function(spot, place),
            operator,
            before,
            after,
            place,
            change,
            text,
        )

    def _function(self, spot: Spot, place: Place) -> str:
        """The function that a mutant changes; empty if a module or class does what it changes."""
        if spot.outer is not None:
            return spot.qualname
        ends = (end for end in range(len(place)) if place[end] == ("args", -1))
        owners = [self._module.outers.get(place[:end]) for end in ends]
        return owners[-1].qualname if owners and owners[-1] is not None else ""

    def _key(self, spot: Spot, place: Place, change: str) -> object:
        """What a mutant compiles to, in the smallest part of the module that can be compiled."""
        whole = spot.outer if spot.outer is not None else place[0][1]
        if whole not in self._original:
            self._original[whole] = self._code_key(whole)
            self._seen.add(self._original[whole])
        new = replacement(spot, change)
        spot.replace(new)
        try:
            return self._code_key(whole)
        except (SyntaxError, ValueError):
            return self._original[whole]  # what cannot be compiled is no mutant
        finally:
            spot.restore(new)

    def _code_key(self, whole: Place | int) -> object:
        """What an outer function, or a statement of the module, compiles to as the tree is now."""
        if isinstance(whole, int):
            return whole, code_key(statement_code(self._module, whole))
        return whole, code_key(function_code(self._module, self._module.outers[whole]))

    def _shown(self, spot: Spot, change: str) -> tuple[str, str]:
        """The lines of a node, and what becomes of them."""
        node = spot.node
        assert isinstance(node, ast.stmt | ast.expr)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        head = lines[0].encode()[: node.col_offset].decode()
        tail = lines[-1].encode()[node.end_col_offset :].decode()
        if isinstance(spot.parent, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Compare) and (
            not change.isalnum()
        ):
            change = f"({change})" if change[0] in "-+~n" else change
        return "\n".join(lines), f"{head}{change}{tail}"


def _is_part_of_text(spot: Spot) -> bool:
    """Whether a node is a literal piece of an f-string, or a name that is assigned to."""
    return isinstance(spot.parent, ast.JoinedStr) or isinstance(
        getattr(spot.node, "ctx", None), ast.Store | ast.Del
    )


def _is_log_call(node: ast.expr) -> bool:
    if isinstance(node, ast.Await):
        node = node.value
    if not isinstance(node, ast.Call):
        return False
    called: ast.expr = node.func
    if isinstance(called, ast.Name):
        return called.id == "print"
    while isinstance(called, ast.Attribute):
        if isinstance(called.value, ast.Attribute) and called.value.attr in _LOGS:
            return True
        called = called.value
    return isinstance(called, ast.Name) and called.id in _LOGS


def _is_listing(node: ast.stmt) -> bool:
    """Whether a statement lists names: a mutant of it changes nothing that runs."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        return False
    return any(isinstance(one, ast.Name) and one.id in _NAMES for one in targets)


def _is_for_others(node: ast.stmt) -> bool:
    """Whether a statement is for type checkers, or for running the file as a program."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name):
        return test.left.id == "__name__"
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _marked_lines(text: str) -> frozenset[int]:
    if _PRAGMA.search(text) is None:
        return frozenset()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return frozenset(
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and _PRAGMA.search(token.string)
    )


# -------------------------------------------------------------------------------------------------
# Choosing mutants: those of several files, all of them or a sample that a seed determines.


@dataclass(frozen=True)
class Drawn:
    """Mutants that were drawn, and from what."""

    mutants: tuple[Mutant, ...]
    population: int
    """How many there were to draw from."""
    equivalent: int
    """How many were dropped before, as trivially equivalent."""
    sources: tuple[Source, ...]


def draw_mutants(
    sources: Sequence[Source],
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    seed: int = 0,
    *,
    stratified: bool = False,
) -> Drawn:
    """The mutants of files; `lines` are those that count, by path: a file not named has none.

    `sample`: so many of them, the same for the same seed; a mutant's luck does not depend on the
    others. `stratified`: every function has its share.
    """
    found = [
        all_mutants(source, operators, None if lines is None else lines[source.path])
        for source in sources
        if lines is None or source.path in lines
    ]
    mutants = [mutant for one in found for mutant in one.mutants]
    equivalent = sum(one.equivalent for one in found)
    population = len(mutants)
    if sample is not None:
        if sample < 1:
            raise UserError(f"--sample {sample}: a sample has at least one mutant")
        if sample < population:
            chosen = _shares(mutants, sample, seed) if stratified else _luck(mutants, sample, seed)
            mutants = [mutant for mutant in mutants if mutant in chosen]
    return Drawn(tuple(mutants), population, equivalent, tuple(sources))


def _key(mutant: Mutant, seed: int) -> int:
    return mixed(key_of(mutant.id) ^ mixed(seed))


def _luck(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    return set(sorted(mutants, key=lambda mutant: _key(mutant, seed))[:sample])


def _shares(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    """Evenly spaced, in the order of functions: each gets its share, rounded."""
    ordered = sorted(mutants, key=lambda one: (one.path, one.function, _key(one, seed)))
    start = mixed(seed) / 2**64
    return {ordered[int((i + start) * len(ordered) / sample)] for i in range(sample)}
