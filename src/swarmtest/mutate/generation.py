"""Generate the mutants of Python files, draw samples of them, and compile them.

Not mutated are docstrings, annotations, ``__all__`` and ``__slots__``, code that only type checkers
or ``python file.py`` run, messages of assertions, and lines marked ``# pragma: no mutate`` or
``# pragma: no cover``, with everything nested in them.

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
from swarmtest.mutate.mutant import (
    Function,
    Module,
    Mutant,
    NodeSpot,
    OuterFunction,
    Place,
    children,
)
from swarmtest.mutate.operators import changes_of, parse_operators

_PRAGMA = re.compile(r"#\s*pragma:\s*no\s*(mutate|cover)\b")
_LISTS_OF_NAMES = ("__all__", "__slots__")
_LOGS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "warnings"})
_FIELDS_LEFT_ALONE = frozenset({"annotation", "returns", "type_comment", "format_spec", "msg"})


@dataclass(frozen=True)
class Mutants:
    """The mutants of one file, and how many were dropped."""

    source: Source
    mutants: tuple[Mutant, ...]
    equivalent: int
    """How many were dropped because they compile to the original's or another mutant's code."""


def mutants_of(
    source: Source, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[Mutant]:
    """Return the mutants of a file, in the order of its text; with `lines`, only those on them.

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
    """Return the mutants of a file and the number of those that were dropped."""
    chosen = parse_operators(operators if isinstance(operators, str) else ",".join(operators))
    try:
        module = Module(source.text, source.place or source.path)
    except SyntaxError as error:
        raise UserError(f"{source.path}:{error.lineno}: cannot be mutated: {error.msg}") from None
    return _Generator(source, module, chosen, lines).mutants()


class _Generator:
    """Generates the mutants of one file."""

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
        mutants = sorted(self._below(self._module.tree, (), None), key=self._position)
        return Mutants(self._source, tuple(mutants), self._equivalent)

    def _position(self, mutant: Mutant) -> tuple[int, int]:
        node: Any = self._module.spots[mutant.place].node
        return node.lineno, node.col_offset

    def _below(self, node: ast.AST, place: Place, statement: ast.stmt | None) -> Iterator[Mutant]:
        """Yield the mutants of all nodes below one; `statement` is the statement around it."""
        for name, index, child in children(node):
            if name in _FIELDS_LEFT_ALONE or self._is_left_alone(child):
                continue
            below = (*place, (name, index))
            around = child if isinstance(child, ast.stmt) else statement
            spot = self._module.spots.get(below)
            if spot is not None and around is not None and not _is_part_of_text(spot):
                yield from self._at(spot, below, around)
            yield from self._below(child, below, around)

    def _is_left_alone(self, node: ast.AST) -> bool:
        if isinstance(node, ast.expr):
            return "logging" not in self._operators and _is_log_call(node)
        if not isinstance(node, ast.stmt):
            return isinstance(node, ast.ExceptHandler) and node.lineno in self._marked
        if is_docstring(node) or _lists_names(node) or _is_for_checkers_or_scripts(node):
            return True
        return any(line in self._marked for line in range(node.lineno, header_end(node) + 1))

    def _at(self, spot: NodeSpot, place: Place, statement: ast.stmt) -> Iterator[Mutant]:
        """Yield the mutants that replace one node."""
        line = spot.node.lineno  # type: ignore[attr-defined]
        if self._wanted is not None and line not in self._wanted:
            return
        if isinstance(spot.node, ast.Expr) and self._is_left_alone(spot.node.value):
            return
        in_default = any(name in ("defaults", "kw_defaults") for name, _ in place)
        for operator, node in changes_of(spot.node, spot.parent, spot.field):
            name = "defaults" if in_default else operator
            if name in self._operators:
                mutant = self._mutant(spot, place, statement, name, node)
                if mutant is not None:
                    yield mutant

    def _mutant(
        self, spot: NodeSpot, place: Place, statement: ast.stmt, operator: str, node: ast.AST
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
        identity = "\0".join(
            (self._source.path, spot.qualname, content_hash(text), operator, before.strip(), change)
        )
        # The same change may be possible twice in a statement, so occurrences are numbered.
        self._ordinals[identity] += 1
        digest = hashlib.blake2b(f"{identity}\0{self._ordinals[identity]}".encode(), digest_size=5)
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

    def _function(self, spot: NodeSpot, place: Place) -> str:
        """Return the function that a mutant changes; empty for code of a module or class body.

        A mutant of a default argument belongs to the function that has the default.
        """
        if spot.outer is not None:
            return spot.qualname
        ends = (end for end in range(len(place)) if place[end] == ("args", -1))
        owners = [self._module.outers.get(place[:end]) for end in ends]
        return owners[-1].qualname if owners and owners[-1] is not None else ""

    def _key(self, spot: NodeSpot, place: Place, change: str) -> object:
        """Return a key of a mutant's code: of the smallest part that can be compiled."""
        whole = spot.outer if spot.outer is not None else place[0][1]
        if whole not in self._original:
            self._original[whole] = self._code_key(whole)
            self._seen.add(self._original[whole])
        new = replacement(spot, change)
        spot.replace(new)
        try:
            return self._code_key(whole)
        except (SyntaxError, ValueError):
            return self._original[whole]  # drop a change that does not compile, as if equivalent
        finally:
            spot.restore(new)

    def _code_key(self, whole: Place | int) -> object:
        """Return a key of the code of an outer function, or of a statement of the module."""
        if isinstance(whole, int):
            return whole, code_key(statement_code(self._module, whole))
        return whole, code_key(function_code(self._module, self._module.outers[whole]))

    def _shown(self, spot: NodeSpot, change: str) -> tuple[str, str]:
        """Return the lines of a node, before and after the change."""
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


def _is_part_of_text(spot: NodeSpot) -> bool:
    """Return whether a node is a literal piece of an f-string, or a name that is assigned to."""
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


def _lists_names(node: ast.stmt) -> bool:
    """Return whether a statement sets ``__all__`` or ``__slots__``, which no test would notice."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        return False
    return any(isinstance(target, ast.Name) and target.id in _LISTS_OF_NAMES for target in targets)


def _is_for_checkers_or_scripts(node: ast.stmt) -> bool:
    """Return whether a statement is for type checkers, or for running the file as a program."""
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


# Drawing mutants of several files: all of them, or a sample that the seed determines.


@dataclass(frozen=True)
class DrawnMutants:
    """Mutants that were drawn, and the population that they were drawn from."""

    mutants: tuple[Mutant, ...]
    population: int
    """The number of mutants that they were drawn from."""
    equivalent: int
    """The number of mutants that were dropped before, as trivially equivalent."""
    sources: tuple[Source, ...]


def draw_mutants(
    sources: Sequence[Source],
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    seed: int = 0,
    *,
    stratified: bool = False,
) -> DrawnMutants:
    """Draw the mutants of files.

    `lines` restricts them to these lines, by path; a file that is not named there has none.
    `sample` is the number of mutants to draw; the same seed draws the same mutants, and the rank
    of a mutant does not depend on the others. With `stratified` every function gets its share.
    """
    by_file = [
        all_mutants(source, operators, None if lines is None else lines[source.path])
        for source in sources
        if lines is None or source.path in lines
    ]
    mutants = [mutant for of_file in by_file for mutant in of_file.mutants]
    equivalent = sum(of_file.equivalent for of_file in by_file)
    population = len(mutants)
    if sample is not None:
        if sample < 1:
            raise UserError(f"--sample {sample}: a sample has at least one mutant")
        if sample < population:
            draw = _stratified_sample if stratified else _simple_sample
            chosen = draw(mutants, sample, seed)
            mutants = [mutant for mutant in mutants if mutant in chosen]
    return DrawnMutants(tuple(mutants), population, equivalent, tuple(sources))


def _rank(mutant: Mutant, seed: int) -> int:
    return mixed(key_of(mutant.id) ^ mixed(seed))


def _simple_sample(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    return set(sorted(mutants, key=lambda mutant: _rank(mutant, seed))[:sample])


def _stratified_sample(mutants: list[Mutant], sample: int, seed: int) -> set[Mutant]:
    """Draw evenly spaced mutants in the order of functions: each gets its share, rounded."""
    ordered = sorted(
        mutants, key=lambda mutant: (mutant.path, mutant.function, _rank(mutant, seed))
    )
    start = mixed(seed) / 2**64
    return {ordered[int((i + start) * len(ordered) / sample)] for i in range(sample)}


# Compiling the part of a module that a mutant changes, and comparing code objects.
#
# A function is compiled inside its classes, without their other content, because the classes decide
# what ``super()`` and names with two underscores mean. The free variables of a function must be the
# same in a mutant, or its code could not be given to a function that already exists. So a variable
# that no longer occurs is mentioned in code that never runs.


def replacement(spot: NodeSpot, change: str) -> ast.AST:
    """Parse `change` into a node, with the line numbers of the node that it replaces."""
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
    """Compile the whole module from the current tree."""
    return _compile(module.tree.body, module.filename)


def statement_code(module: Module, index: int) -> CodeType:
    """Compile one statement of the module from the current tree."""
    return _compile([*module.futures, module.tree.body[index]], module.filename)


def function_code(
    module: Module, outer: OuterFunction, keep: dict[str, set[str]] | None = None
) -> CodeType:
    """Compile an outer function from the current tree.

    `keep` has, for functions in it by qualified name, variables that have to stay free.
    """
    node: Function = outer.node
    if keep:
        node = _mentioning(outer, keep)
    body: ast.stmt = node if not isinstance(node, ast.Lambda) else _expression(node)
    for name in reversed(outer.classes):
        body = _class(name, body)
    code = _compile([*module.futures, body], module.filename)
    return next(
        nested
        for nested in nested_codes(code)
        if nested.co_name == outer.name and nested.co_firstlineno == outer.line
    )


def _compile(body: list[ast.stmt], filename: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mutants often contain code that deserves a warning
        code: CodeType = compile(ast.Module(body, []), filename, "exec", dont_inherit=True)
        return code


def _expression(node: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(node), node)


def _class(name: str, body: ast.stmt) -> ast.stmt:
    shell = ast.parse(f"class {name}: pass").body[0]
    assert isinstance(shell, ast.ClassDef)
    shell.body = [body]
    return shell


def _mentioning(outer: OuterFunction, keep: dict[str, set[str]]) -> Function:
    """Return a copy of a function that mentions the variables to keep in code that never runs."""
    whole = copy.deepcopy(outer.node)
    for node, name in _functions_in(whole, outer.qualname):
        if keep.get(name) and not isinstance(node, ast.Lambda):
            names = [ast.Name(variable, ast.Load()) for variable in sorted(keep[name])]
            never = ast.If(ast.Constant(0), [ast.Expr(variable) for variable in names], [])
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
    """Yield a code object and all that are nested in it, the outer ones first."""
    level = [code]
    while level:
        yield from level
        level = [
            inner for outer in level for inner in outer.co_consts if isinstance(inner, CodeType)
        ]


def code_key(code: CodeType) -> tuple[Any, ...]:
    """Return a key of what a code object does, without line numbers; equal keys run alike."""
    return (
        code.co_code,
        tuple(_constant_key(constant) for constant in code.co_consts),
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
        keys = [_constant_key(item) for item in value]
        return type(value), tuple(keys) if isinstance(value, tuple) else frozenset(keys)
    return type(value), repr(value)
