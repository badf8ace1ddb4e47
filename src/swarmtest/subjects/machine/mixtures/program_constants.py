"""Constants in the source of a program: some faults need exactly one of them.

A condition like ``n == 123456789`` is not met by chance. So generators draw now and then a number
or a text that the program's source mentions. Those in comparisons are drawn more often: a program
behaves differently on the two sides of them.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SMALLEST = 16
"""Smaller numbers are drawn anyway."""
_MOST_BYTES = 300_000
"""The size of all files that are read: reading costs about a second for a million bytes."""
_TOOLS = ("pytest", "_pytest", "hypothesis", "numpy", "swarmtest")
"""Packages that a file with machines uses to test something else."""
_MOST_NUMBERS = 500
_MOST_TEXTS = 300
_LONGEST_TEXT = 40
_LARGEST_SHIFT = 256
_LIBRARY = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib")})


@dataclass(frozen=True)
class ProgramConstants:
    """The constants of a program, each kind apart; numbers with those beside them."""

    numbers: tuple[int, ...] = ()
    compared_numbers: tuple[int, ...] = ()
    """Numbers of the source that stand in a comparison."""
    floats: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    compared_texts: tuple[str, ...] = ()
    binaries: tuple[bytes, ...] = ()


NOTHING = ProgramConstants()


def read(module: str) -> ProgramConstants:
    """Return the constants in the source of a module, and of the modules that it uses."""
    reader = _Reader()
    for _, path in files_of(module, _MOST_BYTES):
        try:
            reader.read(ast.parse(path.read_bytes()))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
    return reader.constants()


class _Reader:
    """Collects the constants of syntax trees; dictionaries keep the order of the source."""

    def __init__(self) -> None:
        self._all: dict[type, dict[Any, None]] = {int: {}, float: {}, str: {}, bytes: {}}
        self._compared: dict[type, dict[Any, None]] = {int: {}, float: {}, str: {}, bytes: {}}

    def read(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            kind = type(node)
            if kind is ast.Constant:
                _keep(node.value, self._all)  # type: ignore[attr-defined]
            elif isinstance(node, ast.Compare):
                for part in (node.left, *node.comparators):
                    self._note(part, self._compared)
            elif isinstance(node, ast.MatchValue):
                self._note(node.value, self._compared)
            elif isinstance(node, ast.UnaryOp | ast.BinOp):
                _keep(value_of(node), self._all)

    def _note(self, part: ast.expr, noted: dict[type, dict[Any, None]]) -> None:
        """Note the value of one side of a comparison; of a collection, those of its elements."""
        if isinstance(part, ast.Tuple | ast.List | ast.Set):
            for element in part.elts:
                _keep(value_of(element), noted)
        else:
            _keep(value_of(part), noted)

    def constants(self) -> ProgramConstants:
        numbers = {n for value in self._all[int] for n in (value - 1, value, value + 1)}
        compared = {n for value in self._compared[int] for n in (value - 1, value, value + 1)}
        return ProgramConstants(
            # The largest are the least likely to be drawn otherwise.
            tuple(sorted(numbers, key=lambda n: (-abs(n), n))[:_MOST_NUMBERS]),
            tuple(sorted(compared, key=lambda n: (-abs(n), n))[:_MOST_NUMBERS]),
            tuple(self._all[float] | self._compared[float])[:_MOST_TEXTS],
            tuple(self._all[str])[:_MOST_TEXTS],
            tuple(self._compared[str])[:_MOST_TEXTS],
            tuple(self._all[bytes] | self._compared[bytes])[:_MOST_TEXTS],
        )


def _keep(value: Any, noted: dict[type, dict[Any, None]]) -> None:
    kind = type(value)
    if kind is int:
        if abs(value) >= _SMALLEST:
            noted[int][value] = None
    elif kind is float or (kind in (str, bytes) and 0 < len(value) <= _LONGEST_TEXT):
        noted[kind][value] = None


def value_of(node: ast.expr) -> Any:
    """Return the value of a constant expression like ``-1``, ``1 << 20`` or ``24 * 60``, or None.

    >>> value_of(ast.parse("2**31 - 1", mode="eval").body)
    2147483647
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = value_of(node.operand)
        return -value if type(value) in (int, float) else None
    if isinstance(node, ast.BinOp):
        operation = _OPERATIONS.get(type(node.op))
        left, right = value_of(node.left), value_of(node.right)
        if operation is not None and type(left) is int and type(right) is int:
            return operation(left, right)
    return None


def _power(base: int, exponent: int) -> int | None:
    small = abs(base) <= _LARGEST_SHIFT and 0 <= exponent <= _LARGEST_SHIFT
    return int(base**exponent) if small else None


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int | None]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.LShift: lambda a, b: a << b if 0 <= b <= _LARGEST_SHIFT else None,
    ast.Pow: _power,
}


def files_of(module: str, most: int) -> Iterator[tuple[types.ModuleType, Path]]:
    """Yield the modules of the program: that of the machine, and those that it uses.

    Of a package of which one module is used, all that are loaded belong to the program. Files that
    would bring the sum of the sizes above `most` are left out.
    """
    own = sys.modules.get(module)
    if own is None:
        return
    names = {module: None}
    for member in list(vars(own).values()):
        name = member.__name__ if isinstance(member, types.ModuleType) else None
        name = name or getattr(member, "__module__", None)
        if isinstance(name, str):
            names[name] = None
    packages = tuple(
        f"{name.partition('.')[0]}." for name in names if name != module and not _is_foreign(name)
    )
    if packages:
        names |= dict.fromkeys(name for name in sorted(sys.modules) if name.startswith(packages))
    for name in names:
        loaded = sys.modules.get(name)
        file = getattr(loaded, "__file__", None) or ""
        if loaded is None or not file.endswith(".py") or (name != module and _is_foreign(name)):
            continue
        if file.startswith(_LIBRARY) and "site-packages" not in file:
            continue
        try:
            size = os.stat(file).st_size
        except OSError:
            continue
        if size <= most:
            most -= size
            yield loaded, Path(file)


def _is_foreign(name: str) -> bool:
    return name.partition(".")[0] in _TOOLS
