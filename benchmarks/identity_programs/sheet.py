"""A sheet of cells with formulas. Errors have names and numbers in them, and recursion may be."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "copy shares the formula",
    "delete keeps the dependants",
    "sum skips the last row",
    "swap of a cell with itself",
    "cycles are not seen",
    "fill to the end",
)
ROWS = integers(0, 4)
COLUMNS = integers(0, 2)
Cell = tuple[int, int]
NAMES = "abc"


class FormulaError(Exception):
    """A formula that has no value."""


def name(cell: Cell) -> str:
    return f"{NAMES[cell[1]]}{cell[0]}"


class Sheet:
    """A cell holds a number, or a list of cells whose values are added."""

    def __init__(self) -> None:
        self.cells: dict[Cell, int | list[Cell]] = {}

    def put(self, cell: Cell, number: int) -> None:
        self.cells[cell] = number

    def put_sum(self, cell: Cell, parts: list[Cell]) -> None:
        if not bug("cycles are not seen") and any(self._leads(part, cell) for part in parts):
            raise FormulaError(f"{name(cell)} depends on itself")
        self.cells[cell] = parts

    def _leads(self, start: Cell, goal: Cell) -> bool:
        content = self.cells.get(start)
        further = content if isinstance(content, list) else []
        return start == goal or any(self._leads(part, goal) for part in further)

    def value(self, cell: Cell) -> int:
        content = self.cells[cell]
        if isinstance(content, int):
            return content
        return sum(self._part(part, cell) for part in content)

    def _part(self, part: Cell, of: Cell) -> int:
        if part not in self.cells:
            raise FormulaError(f"{name(of)} needs {name(part)}, which is empty")
        return self.value(part)

    def delete(self, cell: Cell) -> None:
        self.cells.pop(cell, None)
        if bug("delete keeps the dependants"):
            return
        for other, content in list(self.cells.items()):
            if isinstance(content, list) and cell in content:
                self.delete(other)

    def column_sum(self, column: int) -> int:
        rows = [row for row, c in self.cells if c == column]
        if bug("sum skips the last row") and len(rows) > 2:
            rows.remove(max(rows))
        return sum(self.value((row, column)) for row in rows)

    def copy(self, cell: Cell, to: Cell) -> None:
        content = self.cells[cell]
        if isinstance(content, list) and not bug("copy shares the formula"):
            content = list(content)
        self.cells[to] = content

    def extend_sum(self, cell: Cell, part: Cell) -> None:
        content = self.cells[cell]
        assert isinstance(content, list), f"{name(cell)} is no formula: {content!r}"
        if self._leads(part, cell):
            raise FormulaError(f"{name(cell)} depends on itself")
        content.append(part)

    def swap(self, one: Cell, other: Cell) -> None:
        first, second = self.cells.pop(one), self.cells.get(other, 0)
        if one == other and not bug("swap of a cell with itself"):
            second = first
        self.cells[one], self.cells[other] = second, first
        if one == other and bug("swap of a cell with itself"):
            self.cells[one] = second

    def fill(self, cell: Cell, count: int) -> None:
        numbers = [self.value(cell) + k for k in range(count)]
        for k in range(count + bug("fill to the end") * (count == 3)):
            self.cells[cell[0] + k, cell[1]] = numbers[k]


class SheetMachine(Machine):
    steps = 25

    def start(self) -> None:
        self.sheet = Sheet()
        self.model: dict[Cell, int | list[Cell]] = {}

    def _value(self, cell: Cell) -> int:
        content = self.model[cell]
        if isinstance(content, int):
            return content
        return sum(map(self._value, content))

    def _leads(self, start: Cell, goal: Cell) -> bool:
        content = self.model.get(start)
        further = content if isinstance(content, list) else []
        return start == goal or any(self._leads(part, goal) for part in further)

    def _some(self, at: int) -> Cell:
        return sorted(self.model)[at % len(self.model)]

    @action(row=ROWS, column=COLUMNS, number=integers(0, 99))
    def put(self, row: int, column: int, number: int) -> None:
        self.sheet.put((row, column), number)
        self.model[row, column] = number

    @action(row=ROWS, column=COLUMNS, one=ROWS, other=ROWS, when=lambda self: self.model)
    def put_sum(self, row: int, column: int, one: int, other: int) -> None:
        cell, parts = (row, column), [self._some(one), self._some(other)]
        try:
            self.sheet.put_sum(cell, parts)
        except FormulaError:
            assert any(self._leads(part, cell) for part in parts)
        else:
            self.sheet.value(cell)
            self.model[cell] = list(parts)

    @action(at=ROWS, row=ROWS, column=COLUMNS, when=lambda self: self.model)
    def extend_sum(self, at: int, row: int, column: int) -> None:
        cell, part = self._some(at), self._some(row)
        content = self.model[cell]
        if isinstance(content, list) and not self._leads(part, cell):
            self.sheet.extend_sum(cell, part)
            content.append(part)

    @action(at=ROWS, when=lambda self: self.model)
    def delete(self, at: int) -> None:
        cell = self._some(at)
        self.sheet.delete(cell)
        gone = {other for other in self.model if self._leads(other, cell)}
        self.model = {other: c for other, c in self.model.items() if other not in gone}

    @action(column=COLUMNS)
    def column_sum(self, column: int) -> None:
        wanted = sum(self._value(cell) for cell in self.model if cell[1] == column)
        assert self.sheet.column_sum(column) == wanted

    @action(at=ROWS, row=ROWS, when=lambda self: self.model)
    def copy(self, at: int, row: int) -> None:
        cell = self._some(at)
        if self.model.get((row, 2), 0) == 0 and not self._leads(cell, (row, 2)):
            self.sheet.copy(cell, (row, 2))
            content = self.model[cell]
            self.model[row, 2] = list(content) if isinstance(content, list) else content

    @action(one=ROWS, other=ROWS, when=lambda self: self.model)
    def swap(self, one: int, other: int) -> None:
        first, second = self._some(one), self._some(other)
        if isinstance(self.model[first], int) and isinstance(self.model[second], int):
            self.sheet.swap(first, second)
            self.model[first], self.model[second] = self.model[second], self.model[first]

    @action(at=ROWS, count=integers(1, 4), when=lambda self: self.model)
    def fill(self, at: int, count: int) -> None:
        cell = self._some(at)
        if any(isinstance(self.model.get((cell[0] + k, cell[1])), list) for k in range(count)):
            return
        self.sheet.fill(cell, count)
        for k, number in enumerate([self._value(cell) + k for k in range(count)]):
            self.model[cell[0] + k, cell[1]] = number

    @invariant
    def has_the_same_values(self) -> None:
        found = {cell: self.sheet.value(cell) for cell in self.sheet.cells}
        assert found == {cell: self._value(cell) for cell in self.model}
