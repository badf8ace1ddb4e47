"""An export written trial by trial, to compare exports by blocks with."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from swarmtest.core.configuration import Configuration
from swarmtest.core.formatting import csv_row, printable
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import unpack_hits
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import TrialRecord, unpack_counts, unpack_floats

_REDUCED = ("before", "size", "runs", "complete", "test")


def export_by_trials(store: Store, campaign: int, format: str) -> bytes:
    """Return what `export_campaign` writes."""
    space = Space.from_json(store.campaign(campaign).space)
    rows = list(_rows(store, campaign, space))
    if format == "jsonl":
        return printable("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)).encode()
    flat = [_flat(row, space) for row in rows]
    return _csv(flat) if format == "csv" else _parquet(flat)


def _rows(store: Store, campaign: int, space: Space) -> Iterator[dict[str, Any]]:
    signatures = {fault.id: fault.signature for fault in store.faults(campaign)}
    lives = fault_lives(store, store.campaign(campaign).subject)
    states = {life.fault: life.state for life in lives.values()}
    names = {id: str(target) for id, target in store.targets().items()}
    reductions = {each.trial: each for each in store.reductions(campaign) if each.test}
    for trial in store.trials(campaign):
        reduction = reductions.get(trial.trial)
        reduced = None
        if reduction is not None:
            reduced = {name: getattr(reduction, name) for name in _REDUCED}
            reduced["test"] = json.loads(reduced["test"])
        hits = unpack_hits(trial.hits) if trial.hits else []
        yield {
            "campaign": campaign,
            "trial": trial.trial,
            "seed": trial.seed,
            "verdict": Verdict(trial.verdict).label,
            "fault": trial.fault,
            "signature": signatures.get(trial.fault or ""),
            "fault_state": states.get(trial.fault or ""),
            "steps": trial.steps,
            "skipped": trial.skipped,
            "cpu_ms": trial.cpu_ns / 1e6,
            "wall_ms": trial.wall_ns / 1e6,
            "origin": trial.origin,
            "configuration": Configuration.from_bytes(space, trial.configuration).to_json(),
            "used": dict(zip(space.feature_names, unpack_counts(trial.used), strict=False)),
            "propensity": _propensities(trial, space),
            "hits": sorted(names.get(id, "unknown:target") for id in hits),
            "reduced": reduced,
        }


def _propensities(trial: TrialRecord, space: Space) -> dict[str, float]:
    values = [float(f"{p:.7g}") for p in unpack_floats(trial.propensities)]
    if len(values) == 1:
        values *= len(space.feature_names)
    return dict(zip(space.feature_names, values, strict=False))


def _flat(row: dict[str, Any], space: Space) -> dict[str, Any]:
    features, settings = space.feature_names, space.setting_names
    flat = {name: row[name] for name in list(row)[:12]}
    flat |= {f"weight.{name}": row["configuration"][name] for name in features}
    flat |= {f"setting.{name}": row["configuration"][name] for name in settings}
    for part in ("used", "propensity"):
        flat |= {f"{part}.{name}": row[part].get(name) for name in features}
    reduced = row["reduced"] or dict.fromkeys(_REDUCED)
    flat["hits"] = row["hits"]
    flat |= {f"reduced.{name}": reduced[name] for name in _REDUCED}
    if row["reduced"]:
        flat["reduced.test"] = json.dumps(reduced["test"])
    return flat


def _csv(flat: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(csv_row(flat[0]))
    writer.writerows(csv_row((row | {"hits": ";".join(row["hits"])}).values()) for row in flat)
    return text.getvalue().encode()


def _parquet(flat: list[dict[str, Any]]) -> bytes:
    kinds = {"cpu_ms": pa.float64(), "wall_ms": pa.float64(), "hits": pa.list_(pa.string())}
    kinds |= {"reduced.complete": pa.bool_(), "setting.fsync": pa.bool_()}
    whole = {"campaign", "trial", "seed", "steps", "skipped"}
    whole |= {f"reduced.{name}" for name in ("before", "size", "runs")}
    fields = []
    for name in flat[0]:
        kind = kinds.get(name, pa.int64() if name in whole else pa.string())
        if name.startswith(("weight.", "propensity.")):
            kind = pa.float64()
        if name.startswith("used."):
            kind = pa.int64()
        fields.append((name, kind))
    schema = pa.schema(fields)
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema) as writer:
        for start in range(0, len(flat), 10_000):
            writer.write_table(pa.Table.from_pylist(flat[start : start + 10_000], schema))
    return out.getvalue()
