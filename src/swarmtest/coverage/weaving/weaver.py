"""Weave probes into a module's syntax tree: few of them, but exact results.

The rule that saves most probes: the statements of a suite that were begun are always its first few.
So a suite needs one probe, before its last statement. From it follow all statements of the suite
and the headers around it (`implications`). A suite needs no probe if its last statement always
begins another suite (``if``/``else``, ``try``, ``with``). What remains is a suite that was left in
the middle:

- by an exception: the function (and each ``try`` or ``with`` body, where an exception may be
  swallowed) has a handler that records the line of the exception, and raises it again. Since
  Python 3.11 a handler costs nothing until there is an exception.
- by a ``yield`` or ``await`` that is never resumed: such a statement has its own probe.
- because it is still running: a line on which another thread waits when the test ends is seen only
  when that thread continues. This is the price of the rule; ``docs/coverage.md`` says so.

Module and class bodies run once and must not get new names, so there every statement has a probe.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from types import CodeType

from swarmtest.coverage.kinds import ON_PATHS, WITH_PROBES
from swarmtest.coverage.weaving import snippets
from swarmtest.coverage.weaving.blocks import Outline, number_ways
from swarmtest.coverage.weaving.implications import ProbedFunction, ProbePlan, TargetNames
from swarmtest.coverage.weaving.snippets import watch_predicates
from swarmtest.coverage.weaving.syntax import (
    JUMPS,
    FunctionNode,
    cannot_raise,
    catches_all,
    enters_its_body,
    first_line,
    is_compound,
    is_constant,
    is_docstring,
    is_endless,
    is_future_import,
    is_irrefutable,
    looks_at_locals,
    may_suspend,
    suspends,
)


def weave(
    text: str, filename: str, file: str, kinds: tuple[str, ...]
) -> tuple[CodeType, ProbePlan]:
    """Return the code of a module with probes, and the plan that says what they mean.

    `file` is the key with which the code gets its cells (`swarmtest.coverage.file_probes`).
    """
    tree, plan = woven_tree(text, filename, file, kinds)
    return compile(tree, filename, "exec", dont_inherit=True), plan


def woven_tree(
    text: str, filename: str, file: str, kinds: tuple[str, ...]
) -> tuple[ast.Module, ProbePlan]:
    """Return the same as a syntax tree, for callers that weave in more."""
    tree = ast.parse(text, filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compiling the woven tree gives the same warnings
        plain = compile(tree, filename, "exec", dont_inherit=True)
    weaver = _Weaver(text, tree, plain, kinds)
    weaver.module(tree, file)
    return tree, weaver.plan


@dataclass
class CodeScope:
    """The module, class or function that contains a statement, and what is recorded in it."""

    function: int
    direct: bool
    """Whether every statement has a probe, as in module and class bodies."""
    name: str = ""
    """The prefix of the qualified names of what is defined here."""
    outline: Outline | None = None
    added: dict[str, int] | None = None
    """What symbols add to the number of a way; None if paths are recorded as strings."""
    predicate: bool = False
    """Whether the states of predicates are recorded."""
    unproven: bool = False
    """Whether an exception in the current region may hide that a statement was begun."""

    def within(self, name: str) -> str:
        """Return the qualified name of something defined here."""
        return f"{self.name}.{name}" if self.name else name

    def symbol(self, node: ast.stmt, way: int) -> str:
        """Return the symbol of a branch of a decision in paths; empty if it has none."""
        return self.outline.symbols.get((id(node), way), "") if self.outline else ""

    def step(self, symbol: str) -> ast.stmt:
        """Return the statement that records that a branch was taken."""
        if self.added is None:
            return snippets.step_path(symbol)
        return snippets.step_way(self.added[symbol])


class _Weaver:
    """Weaves one module. Methods for suites return the woven statements and the last one's fact."""

    def __init__(
        self, text: str, tree: ast.Module, plain: CodeType, kinds: tuple[str, ...]
    ) -> None:
        self.plan = ProbePlan(kinds=kinds)
        self._names = TargetNames(self.plan, text, tree, plain)
        self._branch = "branch" in kinds
        self._probes = bool(WITH_PROBES & set(kinds))
        self._predicate = "predicate" in kinds
        self._path = bool(ON_PATHS & set(kinds))

    def module(self, tree: ast.Module, file: str) -> None:
        """Weave a whole module, in place."""
        self.plan.functions.append(ProbedFunction("", 1))
        scope = CodeScope(0, direct=True)
        head, rest = _split_head(tree.body)
        entry = self.plan.fact()
        for node in head:
            if is_future_import(node):
                entry = self.plan.fact(entry)
                self._names.statement(entry, [node], 0, spanned=False, leader=False)
        start = snippets.prologue(file)
        probes = [] if rest or not self._probes else [snippets.probe(self.plan.probe(entry))]
        woven = self._suite(rest, entry, scope)[0] if rest else []
        first = (rest or head or [ast.Pass(lineno=1, col_offset=0)])[0]
        tree.body = [*head, *snippets.located([start, *probes], first), *woven]
        ast.fix_missing_locations(tree)

    # Suites

    def _suite(
        self, body: list[ast.stmt], entry: int, scope: CodeScope, symbol: str = ""
    ) -> tuple[list[ast.stmt], int]:
        """Weave a suite.

        `entry` is the fact that the suite was entered, and `symbol` the symbol for that in paths.
        """
        woven: list[ast.stmt] = []
        if symbol:
            woven += snippets.located([scope.step(symbol)], body[0])
        fact, leader = entry, True
        for i, node in enumerate(body):
            fact = self.plan.fact(fact)
            self._names.statement(fact, body[i:], scope.function, not scope.direct, leader)
            before: list[ast.stmt] = []
            last = node is body[-1] or isinstance(node, JUMPS)
            own_probe = scope.direct or suspends(node) or self._shares_a_line(node, scope)
            if self._probes and (own_probe or (last and not self._begins_a_suite(node))):
                before.append(snippets.probe(self.plan.probe(fact)))
            elif self._probes and not cannot_raise(node):
                scope.unproven = True
            if scope.predicate:
                before.append(snippets.note_state(fact))
            woven += [*snippets.located(before, node), self._statement(node, fact, scope)]
            leader = is_compound(node)
        return woven, fact

    def _shares_a_line(self, node: ast.stmt, scope: CodeScope) -> bool:
        """Return whether a statement begins on the line on which another ends.

        The line of an exception cannot tell two such statements apart.
        """
        spans = self.plan.functions[scope.function].spans
        return len(spans) > 1 and spans[-2][1] >= first_line(node)

    def _region(
        self, body: list[ast.stmt], entry: int, scope: CodeScope, symbol: str = ""
    ) -> tuple[list[ast.stmt], int]:
        """Weave a suite whose exceptions may be swallowed by the code around it."""
        outer, scope.unproven = scope.unproven, False
        woven, fact = self._suite(body, entry, scope, symbol)
        woven = self._watched(woven, scope, body[0])
        scope.unproven = outer
        return woven, fact

    def _watched(self, woven: list[ast.stmt], scope: CodeScope, place: ast.stmt) -> list[ast.stmt]:
        """Return a suite with a handler that records exceptions, if they must be recorded."""
        on_path = scope.outline is not None
        if not scope.unproven and not on_path:
            return woven
        spelt = on_path and scope.added is None
        notes: list[ast.stmt] = []
        if scope.unproven or spelt:
            notes = snippets.note_raised(scope.function, scope.unproven, spelt)
        if scope.added is not None:
            notes += snippets.note_cut_way(scope.function)
        return snippets.located([snippets.watched(woven, notes)], place)

    def _begins_a_suite(self, node: ast.stmt) -> bool:
        """Return whether a statement that is begun always reaches a probe below it."""
        if isinstance(node, ast.If):
            return not is_constant(node.test) and (bool(node.orelse) or self._branch)
        if isinstance(node, ast.While):
            return is_endless(node) or (self._branch and not is_constant(node.test))
        if isinstance(node, ast.For):
            return self._branch
        if isinstance(node, ast.With):
            return enters_its_body(node)
        return isinstance(node, ast.Try | ast.TryStar | ast.Match)

    # Statements

    def _statement(self, node: ast.stmt, fact: int, scope: CodeScope) -> ast.stmt:
        """Weave what is below a statement, in place."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, scope)
            case ast.ClassDef():
                inner = CodeScope(scope.function, direct=True, name=scope.within(node.name))
                node.body = self._with_docstring(node.body, fact, inner)
            case ast.If():
                self._if(node, fact, scope)
            case ast.While() | ast.For() | ast.AsyncFor():
                self._loop(node, fact, scope)
            case ast.With() | ast.AsyncWith():
                entered, symbol = self.plan.fact(fact), scope.symbol(node, 0)
                node.body = self._region(node.body, entered, scope, symbol)[0]
            case ast.Try() | ast.TryStar():
                return self._try(node, fact, scope)
            case ast.Match():
                self._match(node, fact, scope)
        return node

    def _with_docstring(self, body: list[ast.stmt], entry: int, scope: CodeScope) -> list[ast.stmt]:
        if not is_docstring(body[0]):
            return self._suite(body, entry, scope)[0]
        return body[:1] + (self._suite(body[1:], entry, scope)[0] if body[1:] else [])

    def _function(self, node: FunctionNode, outer: CodeScope) -> None:
        number = len(self.plan.functions)
        function = ProbedFunction(outer.within(node.name), first_line(node))
        self.plan.functions.append(function)
        # A function that looks at its locals must not see ours.
        may_add_locals = not looks_at_locals(node)
        outline = Outline(node) if self._path and may_add_locals else None
        added = None
        if outline is not None:
            function.outline = outline.to_plain()
            added = self._number_ways(function)
        predicate = self._predicate and may_add_locals
        if predicate:
            function.predicates = watch_predicates(node)
        scope = CodeScope(number, False, f"{function.name}.<locals>", outline, added, predicate)
        head = node.body[:1] if is_docstring(node.body[0]) else []
        rest = node.body[len(head) :]
        if not rest:
            return
        woven = self._watched(self._suite(rest, self.plan.fact(), scope)[0], scope, rest[0])
        if added is not None:
            woven = snippets.located(snippets.counted(woven, function.first_way), rest[0])
        elif outline is not None:
            woven = snippets.located(snippets.traced(woven, number), rest[0])
        if predicate:
            start = snippets.start_state(len(function.predicates))
            woven = [*snippets.located([start], rest[0]), *woven]
        node.body = [*head, *woven]

    def _number_ways(self, function: ProbedFunction) -> dict[str, int] | None:
        counted = number_ways(function.outline)
        if counted is None:
            return None
        function.first_way = self.plan.ways
        self.plan.ways += counted[0]
        return counted[1]

    def _if(self, node: ast.If, fact: int, scope: CodeScope) -> None:
        then, other = self.plan.fact(fact), self.plan.fact(fact)
        out = self._names.into(node, node.orelse) if node.orelse else self._names.arcs.after(node)
        if not is_constant(node.test):
            self._names.decision(
                node, scope.function, [(then, self._names.into(node, node.body)), (other, out)]
            )
        node.body = self._suite(node.body, then, scope, scope.symbol(node, 0))[0]
        node.orelse = self._otherwise(node, other, scope)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, fact: int, scope: CodeScope) -> None:
        again, done = self.plan.fact(fact), self.plan.fact(fact)
        out = self._names.into(node, node.orelse) if node.orelse else self._names.arcs.after(node)
        decides = not (isinstance(node, ast.While) and is_constant(node.test))
        if decides:
            self._names.decision(
                node, scope.function, [(again, self._names.into(node, node.body)), (done, out)]
            )
        node.body = self._suite(node.body, again, scope, scope.symbol(node, 0))[0]
        if decides or node.orelse:
            node.orelse = self._otherwise(node, done, scope)

    def _otherwise(
        self, node: ast.If | ast.While | ast.For | ast.AsyncFor, fact: int, scope: CodeScope
    ) -> list[ast.stmt]:
        """Return the ``else`` of a statement; for branch coverage, one with a probe if absent."""
        if node.orelse:
            return self._suite(node.orelse, fact, scope, scope.symbol(node, 1))[0]
        return self._only_probe(fact, node) if self._branch else []

    def _only_probe(self, fact: int, place: ast.AST) -> list[ast.stmt]:
        return snippets.located([snippets.probe(self.plan.probe(fact))], place)

    def _try(self, node: ast.Try | ast.TryStar, fact: int, scope: CodeScope) -> ast.stmt:
        entered = self.plan.fact(fact)
        outer, scope.unproven = scope.unproven, False
        node.body, completed = self._region(node.body, entered, scope)
        if node.handlers:
            scope.unproven = self._probes and not scope.direct  # a clause itself may raise
            self._handlers(node, entered, scope)
        if node.orelse:
            node.orelse = self._suite(node.orelse, self.plan.fact(completed), scope)[0]
        if not node.finalbody:
            scope.unproven |= outer
            return node
        body = node.body
        if node.handlers:
            # An exception that leaves a clause may be swallowed by ``finally``: record it before.
            inner = type(node)(node.body, node.handlers, node.orelse, [])
            body = self._watched(snippets.located([inner], node), scope, node)
        scope.unproven = outer
        final = self._suite(node.finalbody, self.plan.fact(entered), scope)[0]
        return snippets.located([ast.Try(body, [], [], final)], node)[0]

    def _handlers(self, node: ast.Try | ast.TryStar, entered: int, scope: CodeScope) -> None:
        """Weave the clauses: each is tested after those before it; of a group, all are tested."""
        tested = entered
        facts = []
        for handler in node.handlers:
            tested = self.plan.fact(tested)
            facts.append(tested)
            self._names.clause(tested, handler, scope.function, not scope.direct)
        for i, handler in enumerate(node.handlers):
            caught = facts[i] if isinstance(node, ast.Try) else tested
            handler.body = self._suite(handler.body, caught, scope, scope.symbol(node, i))[0]
        if not self._probes:
            return
        probing = snippets.handler([snippets.probe(self.plan.probe(tested))], named=False)
        if isinstance(node, ast.TryStar):
            node.body = snippets.located([ast.Try(node.body, [probing], [], [])], node)
        elif not catches_all(node.handlers[-1]):
            # An exception that no clause catches has been tested against all of them.
            node.handlers += snippets.located([probing], node)

    def _match(self, node: ast.Match, fact: int, scope: CodeScope) -> None:
        passed = fact
        for i, case in enumerate(node.cases):
            tested = self.plan.fact(passed)
            spanned = not scope.direct
            self._names.clause(tested, case.pattern, scope.function, spanned, case.guard)
            if case.guard is not None and self._probes and may_suspend(case.guard):
                case.guard = snippets.probed(self.plan.probe(tested), case.guard)
                snippets.located([case.guard], case.pattern)
            matched, passed = self.plan.fact(tested), self.plan.fact(tested)
            ways = [(matched, self._names.into(case.pattern, case.body))]
            if i + 1 < len(node.cases):
                ways.append((passed, self._names.arcs.line(node.cases[i + 1].pattern)))
            elif not is_irrefutable(case):
                ways.append((passed, self._names.arcs.after(node)))
            self._names.decision(case.pattern, scope.function, ways)
            case.body = self._suite(case.body, matched, scope, scope.symbol(node, i))[0]
        if self._probes and not is_irrefutable(node.cases[-1]):
            body = self._only_probe(passed, node)
            rest = ast.match_case(ast.copy_location(ast.MatchAs(None, None), node), None, body)
            node.cases.append(rest)


def _split_head(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Split a module into what must stay at the top and the rest."""
    count = 0
    while count < len(body) and (
        is_future_import(body[count]) or (count == 0 and is_docstring(body[count]))
    ):
        count += 1
    return body[:count], body[count:]
