"""An exploration for other tools: points along one line, and tables (CSV, Parquet, gnuplot).

The line is the paper's figure 4: points are ordered by the dimension that explains most of the
measure, then by the next, and so on, like the digits of a number. What matters shows as large
hills, what does not as noise on them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.search.exploration import Exploration
from swarmtest.search.space import digits_of
from swarmtest.search.value_statistics import correlations


@dataclass(frozen=True)
class CollapsedSpace:
    """The points of an exploration along one line, with a measure of each."""

    measure: str
    dimensions: tuple[str, ...]
    """The dimensions, from the one that changes slowest to the one that changes fastest."""
    points: tuple[Configuration, ...]
    values: tuple[float, ...]

    def blocks(self, depth: int = 1) -> list[tuple[int, tuple[object, ...]]]:
        """Return where the values of the first `depth` dimensions change, and those values."""
        blocks: list[tuple[int, tuple[object, ...]]] = []
        for number, point in enumerate(self.points):
            label = tuple(point[name] for name in self.dimensions[:depth])
            if not blocks or blocks[-1][1] != label:
                blocks.append((number, label))
        return blocks


def collapsed(exploration: Exploration, measure: str, by: Sequence[str] = ()) -> CollapsedSpace:
    """Return an exploration along one line; `by` names the dimensions that change slowest.

    >>> from swarmtest import Choice, Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(n, kind): return {"sold": n + 100 * (kind == "b")}
    >>> dimensions = [Integer("n", 1, 5), Choice("kind", ["a", "b"]), Test("test", ["sell"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"sell": sell}), store=store).run()
    ...     line = collapsed(Exploration.load(store, outcome.campaign), "sold")
    >>> line.dimensions, line.values[4:6], line.blocks()
    (('kind', 'n'), (5.0, 101.0), [(0, ('a',)), (5, ('b',))])
    """
    varied = [correlation.dimension for correlation in correlations(exploration, [measure])]
    for name in by:
        if name not in varied:
            raise UserError(f"no dimension {name!r} varies here{did_you_mean(name, varied)}")
    names = [*by, *(name for name in varied if name not in by)]
    positions = [[d.name for d in exploration.space.dimensions].index(name) for name in names]
    values = exploration.values(measure)
    order = sorted(
        range(len(values)),
        key=lambda number: [
            digits_of(exploration.points[number])[position] for position in positions
        ],
    )
    points = tuple(exploration.points[number] for number in order)
    return CollapsedSpace(measure, tuple(names), points, tuple(values[number] for number in order))


def export_exploration(
    exploration: Exploration, format: str, out: BinaryIO, measure: str = ""
) -> int:
    """Write an exploration to a binary file and return the number of rows.

    ``csv`` and ``parquet`` have a row per run: its trial and visit, the point, how it ended, how
    long it took, and what it reached and measured. ``gnuplot`` has a row per point, in the order of
    `collapsed`, with an empty line where the most important dimension changes.

    >>> from swarmtest import Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> space = SearchSpace([Integer("n", 1, 3), Test("test", ["f"])], {"f": lambda n: {"x": n}})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     exploration = Exploration.load(store, outcome.campaign)
    >>> text = io.BytesIO()
    >>> export_exploration(exploration, "csv", text)
    3
    >>> text.getvalue().decode().splitlines()[0]
    'trial,visit,n,test,status,fault,seconds,cpu_seconds,hits,x'
    """
    if format not in FORMATS:
        raise UserError(f"unknown export format {format!r}{did_you_mean(format, FORMATS)}")
    return FORMATS[format](exploration, out, measure)


def rows(exploration: Exploration) -> Iterator[dict[str, Any]]:
    """Yield a row per run, in the order in which they ran."""
    own = own_measures(exploration)
    all_runs = ((point, run) for point, runs in exploration.runs.items() for run in runs)
    for point, run in sorted(all_runs, key=lambda pair: (pair[1].visit, pair[1].trial)):
        yield {
            "trial": run.trial,
            "visit": run.visit,
            **point.to_json(),
            "status": run.status,
            "fault": run.fault.signature if run.fault else None,
            "seconds": run.seconds,
            "cpu_seconds": run.cpu_seconds,
            "hits": len(run.hits),
            **{name: run.measures.get(name) for name in own},
        }


def own_measures(exploration: Exploration) -> list[str]:
    """Return the measures that the tests themselves reported."""
    known = ("failed", "seconds", "hits", "runs")
    return [n for n in exploration.measures if n not in known and not n.startswith("hits.")]


def _write_csv(exploration: Exploration, out: BinaryIO, measure: str) -> int:
    text = io.StringIO(newline="")
    count = 0
    writer = None
    for row in rows(exploration):
        if writer is None:
            writer = csv.DictWriter(text, list(row))
            writer.writeheader()
        writer.writerow(row)
        count += 1
    out.write(text.getvalue().encode("utf-8", "backslashreplace"))
    return count


def _write_parquet(exploration: Exploration, out: BinaryIO, measure: str) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(
            "Parquet needs pyarrow: `pip install 'swarmtest[parquet]'`, or export csv"
        ) from None
    table = list(rows(exploration))
    for name in exploration.space.setting_names:
        kinds = {type(row[name]) for row in table}
        if len(kinds) > 1:  # a Parquet column must have one type
            for row in table:
                row[name] = str(row[name])
    pq.write_table(pa.Table.from_pylist(table), out)
    return len(table)


def _write_gnuplot(exploration: Exploration, out: BinaryIO, measure: str) -> int:
    names = [measure] if measure else exploration.measures
    line = collapsed(exploration, names[0])
    places = {point: number for number, point in enumerate(exploration.points)}
    columns = {name: exploration.values(name) for name in names}
    first = len(line.dimensions) + 2
    lines = [
        f"# {exploration.name}: {len(line.points)} points",
        f"# plot 'FILE' using 1:{first} with lines",
        "# place " + " ".join([*map(_word, line.dimensions), *map(_word, names)]),
    ]
    starts = {number for number, _ in line.blocks()} - {0}
    for number, point in enumerate(line.points):
        if number in starts:
            lines.append("")
        values = [_word(point[name]) for name in line.dimensions]
        numbers = [f"{columns[name][places[point]]:.9g}" for name in names]
        lines.append(" ".join([str(number), *values, *numbers]))
    out.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    return len(line.points)


def _word(value: object) -> str:
    """Return a value as one column: numbers unchanged, texts in quotes, flags as 0 and 1."""
    if isinstance(value, bool):
        return str(int(value))
    return (
        str(value) if isinstance(value, int | float) else '"' + str(value).replace('"', "'") + '"'
    )


FORMATS: dict[str, Callable[[Exploration, BinaryIO, str], int]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "gnuplot": _write_gnuplot,
}
"""The formats by name."""
