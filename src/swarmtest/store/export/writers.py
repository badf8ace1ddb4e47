"""Write a campaign as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from swarmtest.core.configuration import RENORMALISED
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import csv_row, printable
from swarmtest.store.blocks.hits import unpacked
from swarmtest.store.export.columns import Cells
from swarmtest.store.export.lines import Texts, hit_texts, join_lines, join_neighbours
from swarmtest.store.export.table import PLAIN, ExportPart, ExportTable

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK_ROWS = 10_000
_CHUNK_VALUES = 1_000_000
"""The most rows and values of a row group in Parquet."""
_MAY_BE_FORMULA = re.compile(r"[\s=@+-]")
"""How a text begins that may need an apostrophe, which the whole text decides."""
_QUOTED = re.compile(r'[,"\r\n]')
"""What a cell of a CSV has quotes for."""


class _Line:
    """The parts of the lines that are written, from left to right."""

    def __init__(self, size: int) -> None:
        self.parts: list[Texts] = []
        self._same = np.zeros(size, np.int64)

    def text(self, text: str) -> None:
        """Add a text to every line."""
        self.parts.append(Texts([text.encode()], self._same))

    def cells(self, cells: Cells, write: Callable[[Any], str]) -> None:
        """Add a column, each value as a text."""
        self.parts.append(Texts([write(value).encode() for value in cells.values], cells.places))

    def values(self, cells: Cells, write: Callable[[Any], str]) -> None:
        """Add a column likewise; numbers, which every format writes like Python, in one go."""
        values = cells.values
        if {*map(type, values)} <= {int, float} and all(map(math.isfinite, values)):
            texts = "\n".join(map(repr, values)).encode().split(b"\n")
            self.parts.append(Texts(texts, cells.places))
        else:
            self.cells(cells, write)

    def written(self, out: BinaryIO) -> None:
        """Write the lines."""
        for text in join_lines(join_neighbours(self.parts), len(self._same)):
            out.write(text)


# JSON lines.


def write_jsonl(table: ExportTable, out: BinaryIO) -> int:
    """Write one JSON object for each trial; return how many there are."""
    count = 0
    features, settings = table.space.feature_names, table.space.setting_names
    for part in table.parts():
        line = _Line(part.size)
        for place, name in enumerate(PLAIN):
            line.text(f'{", " if place else "{"}"{name}": ')
            line.values(part.plain[name], _json)
        line.text(', "configuration": {')
        _add_items(line, [*features, *settings], [*part.weights, *part.settings])
        line.cells(part.renormalised, lambda is_so: f', "{RENORMALISED}": true' if is_so else "")
        line.text('}, "used": {')
        _add_items(line, features, part.used)
        line.text('}, "propensity": {')
        _add_items(line, features, part.propensities)
        line.text('}, "hits": [')
        names = [_json(name).encode() for name in part.targets]
        line.parts += hit_texts(part.hits, names, b", ")
        line.text('], "reduced": ')
        line.cells(part.reduced, _json)
        line.text("}\n")
        line.written(out)
        count += part.size
    return count


def _add_items(line: _Line, names: Iterable[str], columns: Iterable[Cells]) -> None:
    """Add the items of an object; unknown values, which are the last ones, are left out."""
    for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
        key = f"{', ' if place else ''}{_json(name)}: "
        line.cells(cells, partial(_item, key))


def _item(key: str, value: object) -> str:
    return "" if value is None else key + _json(value)


def _json(value: Any) -> str:
    """Return a value as JSON, with escapes for what a terminal would obey.

    JSON has the same escapes: a reader gets the text as it was.
    """
    return printable(json.dumps(value, ensure_ascii=False))


# CSV.


def write_csv(table: ExportTable, out: BinaryIO) -> int:
    """Write a header, and one line for each trial; return how many there are."""
    count = 0
    out.write(_csv_line(table.columns).encode())
    for part in table.parts():
        line = _Line(part.size)
        cells = part.flat(table.space)
        for place, name in enumerate(table.columns):
            if place:
                line.text(",")
            if name == "hits":
                _add_csv_hits(line, part)
            else:
                line.values(cells[name], _csv_cell)
        line.text("\r\n")
        line.written(out)
        count += part.size
    return count


def _csv_line(values: Iterable[object]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(csv_row(values))
    return text.getvalue()


def _csv_cell(value: object) -> str:
    """Return a value as the first cell of a line with another one: that it is empty is no news."""
    return _csv_line((value, 0))[: -len(",0\r\n")]


def _add_csv_hits(line: _Line, part: ExportPart) -> None:
    """Add the cell with the hits: what `_csv_cell` returns for the names with ``;`` between."""
    names = list(map(printable, part.targets))
    quoted = Cells(
        ["", '"'], _hit_any(part, [_QUOTED.search(name) for name in names]).astype(np.int64)
    )
    line.cells(quoted, str)
    beginnings = _hit_any(part, [_MAY_BE_FORMULA.match(name) for name in part.targets])
    if beginnings.any():
        is_formula = np.zeros(part.size, np.int64)
        places = part.hits.sets()
        for row in np.flatnonzero(beginnings).tolist():
            text = ";".join(part.targets[place] for place in places[row])
            is_formula[row] = csv_row([text]) != [printable(text)]
        line.cells(Cells(["", "'"], is_formula), str)
    line.parts += hit_texts(part.hits, [name.replace('"', '""').encode() for name in names], b";")
    line.cells(quoted, str)


def _hit_any(part: ExportPart, matches: Sequence[object]) -> npt.NDArray[np.bool_]:
    """Return which trials hit a target that has a match."""
    chosen = [place for place, match in enumerate(matches) if match]
    bits = part.hits.class_bits(part.hits.classes[chosen])
    hit: npt.NDArray[np.bool_] = np.any(unpacked(bits, part.size), axis=0)
    return hit


# Parquet.


def write_parquet(table: ExportTable, out: BinaryIO) -> int:
    """Write row groups of equal size; return how many trials there are."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(
            "Parquet needs pyarrow: `pip install 'swarmtest[parquet]'`, or export csv or jsonl"
        ) from None
    columns = table.columns
    kinds = {kind: pa.type_for_alias(kind) for kind in set(columns.values()) - {"hits"}}
    kinds["hits"] = pa.list_(pa.string())
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    size = max(100, min(_CHUNK_ROWS, _CHUNK_VALUES // len(columns)))
    count = 0
    waiting = schema.empty_table()
    with pq.ParquetWriter(out, schema) as writer:
        for part in table.parts():
            waiting = pa.concat_tables([waiting, _arrow_table(part, table, schema)])
            while len(waiting) >= size:
                writer.write_table(waiting.slice(0, size).combine_chunks())
                waiting = waiting.slice(size)
            count += part.size
        if len(waiting):
            writer.write_table(waiting.combine_chunks())
    return count


def _arrow_table(part: ExportPart, table: ExportTable, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    cells = part.flat(table.space)
    arrays = []
    for name, kind in table.columns.items():
        if name == "hits":
            arrays.append(_arrow_hits(part))
            continue
        values = cells[name].values
        if kind == "string" and name.startswith("setting."):
            # A setting whose values have several types has a column of strings.
            values = list(map(str, values))
        arrays.append(pa.array(values, schema.field(name).type).take(pa.array(cells[name].places)))
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_hits(part: ExportPart) -> pa.ListArray:
    import pyarrow as pa

    places = part.hits.sets()
    ends = np.cumsum([0, *map(len, places)])
    names = pa.array(part.targets, pa.string())
    hits = names.take(pa.array(np.concatenate([*places, np.empty(0, np.int64)])))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), hits)
