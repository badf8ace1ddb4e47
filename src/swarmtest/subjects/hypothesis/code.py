"""Print a test of a state machine as Python code that runs by itself, much as Hypothesis does.

The arguments are recorded while the test runs (`taken_down`) and printed later (`text_of`).
"""

from __future__ import annotations

import ast
import builtins
import marshal
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.subjects.hypothesis.declaration import invariants_of
from swarmtest.subjects.hypothesis.internals import RepresentationPrinter, VarReference
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject


_DATA = "data(...)"
"""How Hypothesis prints the result of `st.data()`."""
_LIBRARY = {
    "Counter": "collections",
    "Decimal": "decimal",
    "Fraction": "fractions",
    "IPv4Address": "ipaddress",
    "IPv4Network": "ipaddress",
    "IPv6Address": "ipaddress",
    "IPv6Network": "ipaddress",
    "OrderedDict": "collections",
    "PosixPath": "pathlib",
    "Random": "random",
    "UUID": "uuid",
    "ZoneInfo": "zoneinfo",
    "defaultdict": "collections",
    "deque": "collections",
    "inf": "math",
    "nan": "math",
}
"""The modules of the names in the `repr` of values from Python's library."""
_DRAWS = '''
def draws(*values):
    """What the rule drew from st.data()."""
    left = iter(values)
    return SimpleNamespace(draw=lambda strategy, label=None: next(left))

'''


def code_of(subject: RuleBasedSubject, test: RuleTest, *, after_step: str = "") -> str:
    """Return a program that does what the test does, without generator and preconditions.

    `after_step` is a line to write where invariants are checked: after every step from the last
    initialize rule on. Without it, only the violated invariant is checked, at the end.
    """
    cls = subject.machine
    _refuse_unknown(subject, test)
    wanted = {name for step in test.steps for name in _names_in(step)}
    calls = [_call(step, wanted, _has_targets(subject, step)) for step in test.steps]
    if after_step:
        begun = sum(step.rule in subject.initializers for step in test.steps)
        calls = [
            line
            for number, call in enumerate(calls, 1)
            for line in ((call, after_step) if number >= begun else (call,))
        ]
    checks = [f"state.{test.violated}()"] if test.violated and not after_step else []
    body = [f"state = {cls.__qualname__}()", *calls, *checks, "state.teardown()"]
    texts = [text for step in test.steps for text in (*step.texts.values(), *step.drawn)]
    imports = _imports(cls.__module__, cls.__qualname__.partition(".")[0], texts)
    helper = ""
    if any(_DATA in step.texts.values() for step in test.steps):
        imports.insert(0, "from types import SimpleNamespace")
        helper = _DRAWS
    return "\n".join([*_warning(texts), *imports]) + "\n" + helper + "\n" + "\n".join(body) + "\n"


def _refuse_unknown(subject: RuleBasedSubject, test: RuleTest) -> None:
    """Refuse names that the machine does not have: whatever stands there becomes code."""
    rules = {rule.name for rule in subject.rules} | set(subject.initializers)
    for step in test.steps:
        if step.rule not in rules or not all(map(str.isidentifier, step.texts)):
            raise UserError(f"{subject.name}: a saved test has a step that is none: {step.rule!r}")
    checked = {invariant.function.__name__ for invariant in invariants_of(subject.machine)}
    if test.violated and test.violated not in checked:
        raise UserError(f"{subject.name} has no invariant {test.violated!r}")


def _warning(texts: Iterable[str]) -> list[str]:
    """Return a comment if an argument is not code, because an object may print as anything."""
    for text in texts:
        if text != _DATA and _parsed(text) is None:
            shown = " ".join(text.split())
            return [f"# This shows the test, but does not run: {shown} is not code."]
    return []


def _has_targets(subject: RuleBasedSubject, step: RuleStep) -> bool:
    driven = (*subject.rules, *subject.initializers.values())
    return any(rule.rule.targets for rule in driven if rule.name == step.rule)


def _names_in(step: RuleStep) -> Iterable[str]:
    for text in (*step.texts.values(), *step.drawn):
        yield from re.findall(r"\bv\d+(?:_\d+)?\b", text)


def _call(step: RuleStep, wanted: set[str], has_targets: bool) -> str:
    arguments = {
        key: f"draws({', '.join(step.drawn)})" if text == _DATA else text
        for key, text in step.texts.items()
    }
    call = f"state.{step.rule}({', '.join(f'{key}={text}' for key, text in arguments.items())})"
    own = f"v{step.label}"
    if not has_targets:
        return call
    if step.gives is None:
        return f"{own} = {call}" if own in wanted else call
    names = [f"{own}_{at}" for at in range(1, step.gives + 1)]
    if not wanted & set(names):
        return call
    return f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call}"


def _imports(module: str, machine: str, texts: Iterable[str]) -> list[str]:
    """Return import lines for the machine and for the names in the arguments."""
    defined = vars(sys.modules[module]) if module in sys.modules else {}
    names, lines = {machine}, []
    for name in sorted({name for text in texts for name in _free_names(text)}):
        if name == "datetime":  # `repr` means the module, whatever the name is in the user's module
            lines.append("import datetime")
        elif name in defined and not hasattr(builtins, name):
            names.add(name)
        elif name in _LIBRARY:
            lines.append(f"from {_LIBRARY[name]} import {name}")
    if all(part.isidentifier() for part in module.split(".")):
        return [*lines, f"from {module} import {', '.join(sorted(names))}"]
    loaded = f"importlib.import_module({module!r})"
    return ["import importlib", *lines, *(f"{name} = {loaded}.{name}" for name in sorted(names))]


def _free_names(text: str) -> set[str]:
    tree = _parsed(text)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def _parsed(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return None


# Arguments as code, recorded before the rule can change them.
#
# Printing a value takes longer than drawing it, and most tests pass and are never shown. So a value
# of built-in types is only copied (`marshal` does that in C), and printed when it is needed.

_ATOMS = (int, str, bool, float, type(None), bytes)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class CopiedValue(NamedTuple):
    """A value of built-in types, as `marshal` wrote it."""

    data: bytes


class PrintedValue(NamedTuple):
    """A value that had to be printed immediately, because it cannot be copied."""

    text: str


def taken_down(value: Any, context: Any, made: Mapping[str, Any] | None) -> Any:
    """Record a value so that it can be printed later.

    `made` has the values of bundles that may be part of it, by name; None: it has no such parts.
    """
    if isinstance(value, VarReference):
        return PrintedValue(value.name)
    if made is None:
        if type(value) in _ATOMS:
            return value
        try:
            return CopiedValue(marshal.dumps(value))
        except ValueError:
            pass
    return PrintedValue(_pretty(value, context, made or {}))


def text_of(taken: Any) -> str:
    """Return the code of a value that `taken_down` recorded."""
    if isinstance(taken, PrintedValue):
        return taken.text
    value = marshal.loads(taken.data) if isinstance(taken, CopiedValue) else taken
    return _pretty(value, None, {})


def _pretty(value: Any, context: Any, bundle_values: Mapping[str, Any]) -> str:
    """Print a value as Hypothesis does, with names in place of values from bundles."""
    printer = RepresentationPrinter(context=context)
    for name, bundle_value in bundle_values.items():
        if type(bundle_value) not in _ATOMS:

            def print_name(_obj: Any, p: Any, _cycle: bool, name: str = name) -> Any:
                return p.text(name)

            printer.singleton_pprinters.setdefault(id(bundle_value), print_name)
    if isinstance(value, list) and value and all(isinstance(v, VarReference) for v in value):
        return f"[{', '.join(reference.name for reference in value)}]"
    try:
        printer.pretty(value)
        return _ADDRESS.sub("", printer.getvalue())
    except Exception as error:
        return f"<{type(value).__name__} that cannot be printed: {type(error).__name__}>"
