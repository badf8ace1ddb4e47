"""Functions that a user names: ``shop.cart:Cart.add``, ``shop/cart.py::Cart.add``.

The module is found, not imported: neither it nor the packages above it run.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from swarmtest.errors import UserError, did_you_mean
from swarmtest.focus.c_lines import CStatements
from swarmtest.focus.found import Found
from swarmtest.focus.named_places import find_file, located, read_statements, wanted_at
from swarmtest.focus.python_lines import PythonStatements
from swarmtest.instrument.scope import project_root


def from_function(text: str, why: str = "") -> Found:
    """All statements of a function's body, or of all functions of a class."""
    why = why or f"--function {text}"
    where, name = _split(text.strip().removesuffix("()"))
    if not where or not name:
        raise UserError(f"{why}: write MODULE:FUNCTION or FILE:FUNCTION, as in cart.py:Cart.add")
    is_file = "/" in where or where.endswith(".py") or located(where) is not None
    place = find_file(where, why) if is_file else _module_file(where, why)
    statements = read_statements(place)
    if not isinstance(statements, PythonStatements | CStatements):
        raise UserError(
            f"{why}: functions are found in Python and C files only; name lines of {place.name} "
            f"instead: --lines {where}:FIRST-LAST"
        )
    lines = statements.of_function(name)
    if not lines and name.replace(".<locals>", "") in statements.functions:
        raise UserError(f"{why}: {name} has no statement that could be executed")
    if not lines:
        known = _nearest_names(name, statements.functions)
        raise UserError(f"{why}: {place.name} has no function {name!r}{known}")
    return Found(tuple(wanted_at(place, line, statements, why) for line in lines))


def _split(text: str) -> tuple[str, str]:
    """The file or module, and the function. Only before a function of C++ may ``::`` mean more.

    >>> _split("cart.cc:Cart::add"), _split("cart.py::Cart.add")
    (('cart.cc', 'Cart::add'), ('cart.py', 'Cart.add'))
    """
    where, _, name = text.partition(":")
    return where, name.removeprefix(":")


def _nearest_names(name: str, functions: list[str]) -> str:
    """Of names that end alike (``add`` for ``Cart.add``), or are spelt alike."""
    same_end = [one for one in functions if _last_part(one) == _last_part(name)]
    if same_end:
        return f"; did you mean {same_end[0]!r}?"
    hint = did_you_mean(name, functions)
    return hint if hint.startswith("; did") or len(functions) <= 12 else ""


def _last_part(name: str) -> str:
    return name.replace("::", ".").rpartition(".")[2]


def _module_file(name: str, why: str) -> Path:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{why}: {name!r} is neither a module's name nor a file")
    spec = _find(name)
    if spec is None:
        raise UserError(f"{why}: there is no module {name!r}; name its file: PATH.py:FUNCTION")
    if spec.origin is None or not spec.origin.endswith((".py", ".pyw")):
        what = "a package without a file of its own" if spec.origin is None else "compiled"
        raise UserError(f"{why}: {name} is {what}: its functions cannot be found")
    return Path(spec.origin).resolve()


def _find(name: str) -> ModuleSpec | None:
    """Where a module is: in the project, or where Python would look."""
    here = [str(Path.cwd()), str(project_root()), str(project_root() / "src")]
    top, *rest = name.split(".")
    for found in (PathFinder.find_spec(top, here), PathFinder.find_spec(top, sys.path)):
        spec = _below(found, rest)
        if spec is not None:
            return spec
    return _below(_found_by_others(top), rest)


def _below(spec: ModuleSpec | None, parts: list[str]) -> ModuleSpec | None:
    """The module of that name in a package; each package is found in the one above it."""
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        # By the last part of its name: with the whole name, packages above it would be imported.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    return spec


def _found_by_others(top: str) -> ModuleSpec | None:
    """Editable installs have finders of their own. A name without dots needs no import."""
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
