"""Export a campaign as a table for other tools: one row per trial, in CSV, JSON lines or Parquet.

Trials are streamed: only a chunk of rows is in memory, whatever the size of the campaign.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, TypeAlias

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import csv_row, printable
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import unpack_hits
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord, TrialRecord, unpack_counts, unpack_floats

_Row: TypeAlias = dict[str, Any]
_CHUNK_ROWS = 10_000
_CHUNK_VALUES = 1_000_000

_PLAIN = {
    "campaign": "int64",
    "trial": "int64",
    "seed": "int64",
    "verdict": "string",
    "fault": "string",
    "signature": "string",
    "fault_state": "string",
    "steps": "int64",
    "skipped": "int64",
    "cpu_ms": "float64",
    "wall_ms": "float64",
    "origin": "string",
}
"""The columns that every campaign has, with their types in Parquet."""
_REDUCED = {"before": "int64", "size": "int64", "runs": "int64", "complete": "bool"}
_REDUCED |= {"test": "string"}
"""The columns about a fault's reduced test, in the row of the trial with the original test."""


def export_campaign(store: Store, campaign: int, format: str, out: BinaryIO) -> int:
    """Write the trials of a campaign to a binary file and return how many there were.

    JSON lines nest: ``{"trial": 0, ..., "configuration": {"push": 1}, "used": {"push": 9},
    "propensity": {"push": 0.5}, "hits": ["event:full"], "reduced": null}``. CSV and Parquet are
    flat, with a column ``weight.push`` per feature (``setting.fsync`` for what is not a feature),
    ``used.push`` and ``propensity.push``; a CSV joins hits with ``;``, and no text in it is
    a formula of a spreadsheet. Hits are sorted by name. The reduced test of a fault is in
    ``reduced``; in the flat formats, in ``reduced.size``, ``reduced.test``, ...

    >>> from swarmtest.store.records import CampaignRecord
    >>> from swarmtest.store import open_store
    >>> store = open_store(":memory:")
    >>> campaign = store.add_campaign(CampaignRecord("s.py", "coin", 7, Space(["push"]).to_json()))
    >>> store.record(campaign, [TrialRecord(0, b"\\0\\1", used=b"\\1\\x09", steps=9)])
    >>> text = io.BytesIO()
    >>> export_campaign(store, campaign, "csv", text)
    1
    >>> print(text.getvalue().decode().splitlines()[1])
    1,0,0,passed,,,,9,0,0.0,0.0,,1,9,,,,,,,
    >>> store.close()
    """
    if format not in FORMATS:
        raise UserError(f"unknown export format {format!r}{did_you_mean(format, FORMATS)}")
    if not store.campaign(campaign).space["dimensions"]:
        raise UserError(
            f"campaign {campaign} is coverage that another tool measured, without configurations: "
            f"`swarmtest coverage {campaign} -o FILE` writes it"
        )
    table = _Table(store, campaign)
    try:
        return FORMATS[format](table, out)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"the export could not be written: {error.strerror or error}") from error


class _Table:
    """A campaign's trials as readable rows."""

    def __init__(self, store: Store, campaign: int) -> None:
        self._store = store
        self._campaign = campaign
        self._signatures: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._targets: dict[int, str] = {}
        self._reductions = {r.trial: r for r in store.reductions(campaign) if r.test}
        self.space = Space.from_json(store.campaign(campaign).space)

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the flat form with their types in Parquet."""
        names = self.space.feature_names
        columns = _PLAIN | {f"weight.{name}": "float64" for name in names}
        for setting in self.space.settings:
            columns[f"setting.{setting.name}"] = _type_of(setting.values)
        columns |= {f"used.{name}": "int64" for name in names}
        columns |= {f"propensity.{name}": "float64" for name in names}
        columns |= {"hits": "hits"}
        return columns | {f"reduced.{name}": kind for name, kind in _REDUCED.items()}

    def chunks(self) -> Iterator[list[_Row]]:
        """Yield chunks of rows in the nested form."""
        size = max(100, min(_CHUNK_ROWS, _CHUNK_VALUES // len(self.columns)))
        trials = self._store.trials(self._campaign)
        while chunk := list(islice(trials, size)):
            self._learn(chunk)
            yield list(map(self._row, chunk))

    def flat(self, row: _Row) -> _Row:
        """Return a nested row as one value per column, in the order of `columns`."""
        features, settings = self.space.feature_names, self.space.setting_names
        flat = {name: row[name] for name in _PLAIN}
        flat |= {f"weight.{name}": row["configuration"][name] for name in features}
        flat |= {f"setting.{name}": row["configuration"][name] for name in settings}
        for part in ("used", "propensity"):
            flat |= {f"{part}.{name}": row[part].get(name) for name in features}
        flat["hits"] = row["hits"]
        reduced = row["reduced"] or dict.fromkeys(_REDUCED)
        flat |= {f"reduced.{name}": reduced[name] for name in _REDUCED}
        if row["reduced"]:
            flat["reduced.test"] = json.dumps(reduced["test"])
        return flat

    def _row(self, trial: TrialRecord) -> _Row:
        names = self.space.feature_names
        # Single precision has about seven digits; more would print 0.1 as 0.10000000149.
        propensities = [float(f"{p:.7g}") for p in unpack_floats(trial.propensities)]
        if len(propensities) == 1:
            propensities *= len(names)
        return {
            "campaign": self._campaign,
            "trial": trial.trial,
            "seed": trial.seed,
            "verdict": Verdict(trial.verdict).label,
            "fault": trial.fault,
            "signature": self._signatures.get(trial.fault or ""),
            "fault_state": self._states.get(trial.fault or ""),
            "steps": trial.steps,
            "skipped": trial.skipped,
            "cpu_ms": trial.cpu_ns / 1e6,
            "wall_ms": trial.wall_ns / 1e6,
            "origin": trial.origin,
            "configuration": Configuration.from_bytes(self.space, trial.configuration).to_json(),
            "used": dict(zip(names, unpack_counts(trial.used), strict=False)),
            "propensity": dict(zip(names, propensities, strict=False)),
            "hits": self._hits(trial),
            "reduced": _reduced(self._reductions.get(trial.trial)),
        }

    def _hits(self, trial: TrialRecord) -> list[str]:
        """Return the targets that a trial hit, in an order that does not depend on the store."""
        ids = unpack_hits(trial.hits) if trial.hits else ()
        return sorted(self._targets[id] for id in ids)

    def _learn(self, trials: list[TrialRecord]) -> None:
        """Look up the faults and targets that these trials refer to and earlier ones did not."""
        if {t.fault for t in trials if t.fault} - self._signatures.keys():
            faults = self._store.faults(self._campaign)
            self._signatures = {fault.id: fault.signature for fault in faults}
            lives = fault_lives(self._store, self._store.campaign(self._campaign).subject)
            self._states = {life.fault: life.state for life in lives.values()}
        hits = {id for t in trials if t.hits for id in unpack_hits(t.hits)}
        new = hits - self._targets.keys()
        if new:
            names = {id: str(target) for id, target in self._store.targets(new).items()}
            self._targets |= dict.fromkeys(new, "unknown:target") | names


def _reduced(reduction: ReductionRecord | None) -> _Row | None:
    if reduction is None or reduction.test is None:
        return None
    values = {name: getattr(reduction, name) for name in _REDUCED}
    return values | {"test": json.loads(reduction.test)}


def _type_of(values: Iterable[Any]) -> str:
    """Return the Parquet type for the values that a setting may have."""
    if isinstance(values, range):
        return "int64"
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64"
    return "float64" if kinds <= {int, float} else "string"


def _write_jsonl(table: _Table, out: BinaryIO) -> int:
    count = 0
    for chunk in table.chunks():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in chunk]
        # JSON has the same escapes: a reader gets the text as it was.
        out.write(printable("".join(lines)).encode())
        count += len(chunk)
    return count


def _write_csv(table: _Table, out: BinaryIO) -> int:
    count = 0
    rows: list[list[Any]] = [list(table.columns)]
    for chunk in table.chunks():
        flat = map(table.flat, chunk)
        rows += [[*(row | {"hits": ";".join(row["hits"])}).values()] for row in flat]
        out.write(_as_csv(rows))
        count += len(chunk)
        rows = []
    out.write(_as_csv(rows))
    return count


def _as_csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(map(csv_row, rows))
    return text.getvalue().encode()


def _write_parquet(table: _Table, out: BinaryIO) -> int:
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
    # A setting whose values have several types has a column of strings.
    mixed = [n for n, kind in columns.items() if kind == "string" and n.startswith("setting.")]
    count = 0
    with pq.ParquetWriter(out, schema) as writer:
        for chunk in table.chunks():
            rows = list(map(table.flat, chunk))
            for name in mixed:
                for row in rows:
                    row[name] = str(row[name])
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


FORMATS: dict[str, Callable[[_Table, BinaryIO], int]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
"""The functions that write each format, by its name."""
