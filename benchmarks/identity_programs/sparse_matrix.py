"""A sparse matrix that keeps its entries by row and by column; invariants compare the two."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "zero stays in the columns",
    "swap of a row with itself",
    "transpose keeps the shape",
    "scale by zero",
    "delete shifts too few",
    "add row forgets cancelled ones",
)
INDEX = integers(0, 4)
VALUES = integers(-2, 2)


class Matrix:
    def __init__(self, rows: int, columns: int) -> None:
        self.shape = rows, columns
        self.rows: dict[int, dict[int, int]] = {}
        self.columns: dict[int, set[int]] = {}

    def get(self, row: int, column: int) -> int:
        return self.rows.get(row, {}).get(column, 0)

    def set(self, row: int, column: int, value: int) -> None:
        if not (0 <= row < self.shape[0] and 0 <= column < self.shape[1]):
            raise IndexError(f"({row}, {column}) is outside of {self.shape}")
        if value:
            self.rows.setdefault(row, {})[column] = value
            self.columns.setdefault(column, set()).add(row)
        elif column in self.rows.get(row, {}):
            del self.rows[row][column]
            if not (bug("zero stays in the columns") and column > 2):
                self.columns[column].discard(row)

    def swap(self, one: int, other: int) -> None:
        first = self.rows.pop(one, {})
        if bug("swap of a row with itself"):
            second = self.rows.pop(other, {})
        else:
            second = self.rows.pop(other, {}) if one != other else first
        self.rows[one], self.rows[other] = second, first
        if one == other:
            self.rows[one] = second
        self._index()

    def _index(self) -> None:
        self.columns = {}
        for row, entries in self.rows.items():
            for column in entries:
                self.columns.setdefault(column, set()).add(row)

    def transpose(self) -> None:
        rows: dict[int, dict[int, int]] = {}
        for row, entries in self.rows.items():
            for column, value in entries.items():
                rows.setdefault(column, {})[row] = value
        self.rows = rows
        if not bug("transpose keeps the shape"):
            self.shape = self.shape[1], self.shape[0]
        self._index()

    def scale(self, row: int, factor: int) -> None:
        entries = self.rows.get(row, {})
        for column in list(entries):
            if factor or bug("scale by zero"):
                entries[column] *= factor
            else:
                self.set(row, column, 0)

    def delete_row(self, row: int) -> None:
        self.rows.pop(row, None)
        last = self.shape[0] - 1 if bug("delete shifts too few") else self.shape[0]
        for below in range(row + 1, last):
            if below in self.rows:
                self.rows[below - 1] = self.rows.pop(below)
        self.shape = self.shape[0] - 1, self.shape[1]
        self._index()

    def add_row(self, source: int, target: int) -> None:
        for column, value in list(self.rows.get(source, {}).items()):
            total = self.get(target, column) + value
            if total == 0 and bug("add row forgets cancelled ones"):
                continue
            self.set(target, column, total)


class MatrixMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.matrix = Matrix(5, 5)
        self.model = [[0] * 5 for _ in range(5)]

    @action(row=INDEX, column=INDEX, value=VALUES)
    def set(self, row: int, column: int, value: int) -> None:
        if row < len(self.model) and column < len(self.model[0]):
            self.matrix.set(row, column, value)
            self.model[row][column] = value

    @action(one=INDEX, other=INDEX)
    def swap(self, one: int, other: int) -> None:
        one, other = one % len(self.model), other % len(self.model)
        self.matrix.swap(one, other)
        self.model[one], self.model[other] = self.model[other], self.model[one]

    @action
    def transpose(self) -> None:
        self.matrix.transpose()
        self.model = [list(row) for row in zip(*self.model, strict=True)]

    @action(row=INDEX, factor=VALUES)
    def scale(self, row: int, factor: int) -> None:
        row %= len(self.model)
        self.matrix.scale(row, factor)
        self.model[row] = [factor * value for value in self.model[row]]

    @action(row=INDEX, when=lambda self: len(self.model) > 2)
    def delete_row(self, row: int) -> None:
        row %= len(self.model)
        self.matrix.delete_row(row)
        del self.model[row]

    @action(source=INDEX, target=INDEX)
    def add_row(self, source: int, target: int) -> None:
        source, target = source % len(self.model), target % len(self.model)
        self.matrix.add_row(source, target)
        self.model[target] = [
            a + b for a, b in zip(self.model[source], self.model[target], strict=True)
        ]

    @invariant
    def has_the_shape(self) -> None:
        assert self.matrix.shape == (len(self.model), len(self.model[0]))

    @invariant
    def has_the_entries(self) -> None:
        shown = [
            [self.matrix.get(row, column) for column in range(len(self.model[0]))]
            for row in range(len(self.model))
        ]
        assert shown == self.model

    @invariant
    def stores_no_zero_and_indexes_the_rest(self) -> None:
        by_row = {(r, c) for r, entries in self.matrix.rows.items() for c in entries}
        by_column = {(r, c) for c, rows in self.matrix.columns.items() for r in rows}
        assert all(all(entries.values()) for entries in self.matrix.rows.values()), "a zero"
        assert by_row == by_column
