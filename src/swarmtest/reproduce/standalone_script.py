"""Write the test of a machine as a script that runs without swarmtest.

A test derived from a class (`--api`) calls the class and nothing else. The test of a machine calls
the machine, so the machine is copied into the script as a plain class: without its decorators,
pools and options, and with what it uses of its file. The test of a comparison is written for both
sides. What cannot be written like this is refused; and what is written is run before it is shown
(`clean_run`), because a machine may use more of swarmtest than can be seen here.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.machine.code import ArgumentWriter
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.machine.test import MachineTest
from swarmtest.subjects.oracles.compared import Compared
from swarmtest.subjects.oracles.models import model_of
from swarmtest.subjects.oracles.operations import Code, operation_of

_PACKAGE = "swarmtest"
_OPTIONS = frozenset(
    name for name in vars(Machine) if not name.startswith("_") and not callable(vars(Machine)[name])
)
"""Attributes of a machine that only swarmtest reads."""
_OUTCOME = """\
def outcome(call):
    try:
        return "returns", call()
    except Exception as error:
        return "raises", type(error).__name__
"""


def standalone_script(subject: Any, data: Any) -> str:
    """Return the script of a saved test; raise `UserError` if it cannot be without swarmtest."""
    if not isinstance(subject, MachineSubject):
        raise UserError(
            f"{subject.name}: only tests of machines and classes become scripts; "
            "`swarmtest replay -o FILE` writes the others"
        )
    if issubclass(subject.machine, Compared):
        script = _script_of_comparison(subject.machine, MachineTest.from_json(data))
    else:
        script = _with_harness(subject.code(data), subject.machine if subject.harness else None)
    if _PACKAGE in script:
        line = next(line for line in script.splitlines() if _PACKAGE in line)
        raise UserError(f"the test cannot be written without swarmtest: {line.strip()}")
    return _spaced(script)


def _spaced(script: str) -> str:
    """Return a script with one statement on a line, and blank lines around definitions."""
    lines: list[str] = []
    for node in ast.parse(script).body:
        long = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        if long and lines and lines[-1]:
            lines += ["", ""]
        elif not imports and not long and lines and lines[-1].startswith(("import ", "from ")):
            lines.append("")
        lines += ast.unparse(node).splitlines()
        lines += ["", ""] if long else []
    return "\n".join(lines) + "\n"


# Machines: their class without what swarmtest reads.


def _with_harness(code: str, machine: type[Machine] | None) -> str:
    """Return a program with the definitions of a machine's file in place of its import."""
    if machine is None:
        return code
    kept, wanted = [], []
    module = machine.__module__
    names = {module, Path(getattr(sys.modules.get(module), "__file__", "") or "x").stem}
    for node in ast.parse(code).body:
        if isinstance(node, ast.ImportFrom) and node.module in names:
            wanted += [alias.name for alias in node.names]
        else:
            kept.append(ast.unparse(node))
    if not wanted:
        return code
    definitions = plain_definitions(inspect.getsource(sys.modules[module]), wanted)
    first = next(
        (at for at, line in enumerate(kept) if not line.startswith(("import ", "from "))), 0
    )
    return "\n".join([*kept[:first], *definitions, "", *kept[first:]]) + "\n"


def plain_definitions(source: str, wanted: Iterable[str]) -> list[str]:
    """Return the definitions of names in a file, with what they use, without swarmtest.

    >>> source = '''
    ... from swarmtest import Machine, action, integers
    ... SIZE = 3
    ... NUMBERS = integers(0, 9)
    ... class Till(Machine):
    ...     steps = 9
    ...     @action(n=NUMBERS)
    ...     def pay(self, n): assert n < SIZE
    ... '''
    >>> print(chr(10).join(plain_definitions(source, ["Till"])))
    SIZE = 3
    class Till:
    <BLANKLINE>
        def pay(self, n):
            assert n < SIZE
    """
    statements = ast.parse(source).body
    foreign: set[str] = set()
    for node in statements:
        if _imports_swarmtest(node):
            foreign |= _defined(node)
    plain = [_Plain(foreign).visit(node) for node in statements if not _imports_swarmtest(node)]
    by_name: dict[str, list[int]] = {}
    for at, node in enumerate(plain):
        for name in _defined(node):
            by_name.setdefault(name, []).append(at)
    needed: set[int] = set()
    waiting = list(wanted)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for at in by_name.get(name, ()):
            needed.add(at)
            waiting += _used(plain[at])
    return [ast.unparse(plain[at]) for at in sorted(needed)]


def _imports_swarmtest(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in (_PACKAGE, "__future__")
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == _PACKAGE for alias in node.names)
    return False


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module defines."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    stored = (
        ast.Assign,
        ast.AnnAssign,
        ast.AugAssign,
        ast.If,
        ast.Try,
        ast.With,
        ast.For,
        ast.Expr,
    )
    if not isinstance(node, stored):
        return set()
    return {
        part.id if isinstance(part, ast.Name) else part.name
        for part in ast.walk(node)
        if isinstance(part, ast.FunctionDef | ast.ClassDef)
        or (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    }


def _used(node: ast.AST) -> list[str]:
    return [
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    ]


class _Plain(ast.NodeTransformer):
    """Removes from classes what only swarmtest reads."""

    def __init__(self, foreign: set[str]) -> None:
        self._foreign = foreign

    def _is_foreign(self, node: ast.AST) -> bool:
        return any(name in self._foreign for name in _used(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Return the class without bases and attributes of swarmtest."""
        machine = any(self._is_foreign(base) for base in node.bases)
        node.bases = [base for base in node.bases if not self._is_foreign(base)]
        node.decorator_list = [d for d in node.decorator_list if not self._is_foreign(d)]
        body: list[ast.stmt] = []
        for statement in node.body:
            stored = (
                _defined(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ()
            )
            if stored and (self._is_foreign(statement) or (machine and _OPTIONS & set(stored))):
                continue
            body.append(self.visit(statement))
        node.body = body or [ast.Pass()]
        if machine and any(name == "event" for name in _self_attributes(node)):
            node.body.append(ast.parse("def event(self, name): pass").body[0])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return the function without decorators of swarmtest; generators may be used by name."""
        self._remove_decorators(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        """Return the function without decorators of swarmtest."""
        self._remove_decorators(node)
        return node

    def _remove_decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        actions = {"action", "invariant"}
        node.decorator_list = [
            d for d in node.decorator_list if not (self._is_foreign(d) or actions & set(_used(d)))
        ]


def _self_attributes(node: ast.AST) -> list[str]:
    return [
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    ]


# Comparisons: the same calls on both sides.


def _script_of_comparison(machine: type[Compared], test: MachineTest) -> str:
    writer = ArgumentWriter()
    lines = [
        f"tested = {_creation(machine, machine._part('tested'), writer, 'tested')}",
        f"model = {_model_creation(machine, writer)}",
    ]
    steps = [step for step in test.steps if step.action in machine._operations]
    if not steps or steps[-1].action != test.steps[-1].action:
        raise UserError(
            f"the last step, {test.steps[-1].action if test.steps else 'none'}, is a check, which "
            "cannot be written without swarmtest"
        )
    for step in steps[:-1]:
        operation = machine._operations[step.action]
        words = [Code(writer.code(argument)) for argument in step.arguments]
        both = [operation.text(words, "tested"), operation.text(words, "model")]
        if step.raised:
            lines += ["for call in (", *(f"    lambda: {call}," for call in both), "):"]
            lines += ["    outcome(call)"]
        else:
            lines += both
    last = machine._operations[steps[-1].action]
    if last.model_code:
        raise UserError(f"{last.name}: its model follows the result, which needs swarmtest")
    words = [Code(writer.code(argument)) for argument in steps[-1].arguments]
    for name, side in (("actual", "tested"), ("expected", "model")):
        lines += _noted(last.text(words, side), name)
    for code in machine._states.values():
        state = operation_of(f"state: {code}", {})
        lines.append(f"actual += outcome(lambda: {state.text((), 'tested')})")
        lines.append(f"expected += outcome(lambda: {state.text((), 'model')})")
    lines += ['print("actual:  ", *actual)', 'print("expected:", *expected)']
    lines += ["assert actual == expected"]
    imports = _sorted_imports(writer.imports, machine)
    return "\n".join([*imports, "", _OUTCOME, *lines]) + "\n"


def _noted(call: str, name: str) -> list[str]:
    """Return code that keeps what a call returns or raises; a statement returns nothing."""
    try:
        ast.parse(call, mode="eval")
    except SyntaxError:
        side = "tested" if name == "actual" else "model"  # `tested -= ...` would make it local
        head = [f"def run_{name}():", f"    global {side}"]
        return [*head, f"    {call}", f"{name} = outcome(run_{name})"]
    return [f"{name} = outcome(lambda: {call})"]


def _creation(machine: type[Compared], factory: Any, writer: ArgumentWriter, what: str) -> str:
    if isinstance(factory, type):
        return f"{writer.name(factory)}()"
    if (
        what == "tested"
        and inspect.isfunction(factory)
        and not inspect.signature(factory).parameters
    ):
        return f"{writer.name(machine)}.tested()"
    raise UserError(
        f"{machine.__qualname__}: {what} is created by {factory!r}, which cannot be written into a "
        "script"
    )


def _model_creation(machine: type[Compared], writer: ArgumentWriter) -> str:
    like = machine._part("like")
    model = model_of(like) if isinstance(like, str) else None
    return _creation(machine, model.new if model is not None else like, writer, "like")


def _sorted_imports(imports: Iterable[str], machine: type[Machine]) -> Sequence[str]:
    module = machine.__module__
    own = [line for line in imports if line.split()[1] == module]
    others = sorted(line for line in imports if line not in own)
    if not own or _PACKAGE not in inspect.getsource(sys.modules[module]):
        return [*others, *own]
    names = [name.strip(",") for line in own for name in line.split()[3:]]
    return [*others, *plain_definitions(inspect.getsource(sys.modules[module]), names)]
