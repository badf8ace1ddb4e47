"""A test of a state machine as Python code that runs by itself, much as Hypothesis prints it."""

from __future__ import annotations

import ast
import builtins
import marshal
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from swarmtest.subjects.hypothesis.internals import RepresentationPrinter, VarReference
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject


# -------------------------------------------------------------------------------------------------
# Arguments as code, for people, taken down before the rule can change them.
#
# Printing a value takes longer than drawing it, and most tests pass and are never shown. So a
# value
# of built-in types is only copied (`marshal` does that in C), and printed when somebody asks.

_ATOMS = (int, str, bool, float, type(None), bytes)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Copied(NamedTuple):
    """A value of built-in types, as `marshal` wrote it."""

    data: bytes


class Printed(NamedTuple):
    """A value that had to be printed at once."""

    text: str


def taken_down(value: Any, context: Any, made: Mapping[str, Any] | None) -> Any:
    """What is needed to print a value later; `made`: values of bundles that may be part of it."""
    if isinstance(value, VarReference):
        return Printed(value.name)
    if made is None:
        if type(value) in _ATOMS:
            return value
        try:
            return Copied(marshal.dumps(value))
        except ValueError:
            pass
    return Printed(_pretty(value, context, made or {}))


def text_of(taken: Any) -> str:
    """The code of a value that was taken down."""
    if isinstance(taken, Printed):
        return taken.text
    value = marshal.loads(taken.data) if isinstance(taken, Copied) else taken
    return _pretty(value, None, {})


def _pretty(value: Any, context: Any, made: Mapping[str, Any]) -> str:
    printer = RepresentationPrinter(context=context)
    for name, known in made.items():
        if type(known) not in _ATOMS:

            def print_name(_obj: Any, p: Any, _cycle: bool, name: str = name) -> Any:
                return p.text(name)

            printer.singleton_pprinters.setdefault(id(known), print_name)
    if isinstance(value, list) and value and all(isinstance(v, VarReference) for v in value):
        return f"[{', '.join(reference.name for reference in value)}]"
    try:
        printer.pretty(value)
        return _ADDRESS.sub("", printer.getvalue())
    except Exception as error:
        return f"<{type(value).__name__} that cannot be printed: {type(error).__name__}>"


# -------------------------------------------------------------------------------------------------

_DATA = "data(...)"
"""How Hypothesis prints what `st.data()` gives."""
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
"""Where the names are from that Python prints values of its library with."""
_DRAWS = '''
def draws(*values):
    """What the rule drew from st.data()."""
    left = iter(values)
    return SimpleNamespace(draw=lambda strategy, label=None: next(left))

'''


def code_of(subject: RuleBasedSubject, test: RuleTest, *, after_step: str = "") -> str:
    """The program that does what the test does: no generator, no preconditions, no engine.

    `after_step`: what to write where invariants are checked: after every step, but not before
    the last initialize rule; without, only the one is that was violated.
    """
    cls = subject.machine
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


def _warning(texts: Iterable[str]) -> list[str]:
    """A comment for what Python could not run: an object prints as it likes."""
    for text in texts:
        if text != _DATA and _parsed(text) is None:
            shown = " ".join(text.split())
            return [f"# This shows the test, but does not run: {shown} is not code."]
    return []


def _has_targets(subject: RuleBasedSubject, step: RuleStep) -> bool:
    driven = (*subject.rules, *subject.initializers.values())
    return any(known.rule.targets for known in driven if known.name == step.rule)


def _names_in(step: RuleStep) -> Iterable[str]:
    for text in (*step.texts.values(), *step.drawn):
        yield from re.findall(r"\bv\d+(?:_\d+)?\b", text)


def _call(step: RuleStep, wanted: set[str], has_targets: bool) -> str:
    given = {
        key: f"draws({', '.join(step.drawn)})" if text == _DATA else text
        for key, text in step.texts.items()
    }
    call = f"state.{step.rule}({', '.join(f'{key}={text}' for key, text in given.items())})"
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
    """Import lines for the machine and what the arguments name."""
    known = vars(sys.modules[module]) if module in sys.modules else {}
    names, lines = {machine}, []
    for name in sorted({name for text in texts for name in _free_names(text)}):
        if name == "datetime":  # a module where it is printed, whatever it is in the user's
            lines.append("import datetime")
        elif name in known and not hasattr(builtins, name):
            names.add(name)
        elif name in _LIBRARY:
            lines.append(f"from {_LIBRARY[name]} import {name}")
    if all(part.isidentifier() for part in module.split(".")):
        return [*lines, f"from {module} import {', '.join(sorted(names))}"]
    found = f"importlib.import_module({module!r})"
    return ["import importlib", *lines, *(f"{name} = {found}.{name}" for name in sorted(names))]


def _free_names(text: str) -> set[str]:
    tree = _parsed(text)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def _parsed(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return None
