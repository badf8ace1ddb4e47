"""Export a campaign as a table for other tools: one row per trial, in CSV, JSON lines or Parquet.

Trials are read block by block: only some blocks are in memory, whatever the size of the campaign.
`columns` takes a block apart, `table` names the columns, `lines` joins them to text, and `writers`
has the formats. All but this module load numpy.
"""

from __future__ import annotations

from typing import BinaryIO

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.store.interface import Store

FORMATS = ("csv", "jsonl", "parquet")
"""The formats that `export_campaign` writes."""


def export_campaign(store: Store, campaign: int, format: str, out: BinaryIO) -> int:
    """Write the trials of a campaign to a binary file and return how many there were.

    JSON lines nest: ``{"trial": 0, ..., "configuration": {"push": 1}, "used": {"push": 9},
    "propensity": {"push": 0.5}, "hits": ["event:full"], "reduced": null}``. CSV and Parquet are
    flat, with a column ``weight.push`` per feature (``setting.fsync`` for what is not a feature),
    ``used.push`` and ``propensity.push``; a CSV joins hits with ``;``, and no text in it is
    a formula of a spreadsheet. Hits are sorted by name. The reduced test of a fault is in
    ``reduced``; in the flat formats, in ``reduced.size``, ``reduced.test``, ...

    >>> import io
    >>> from swarmtest import Space
    >>> from swarmtest.store import open_store
    >>> from swarmtest.store.records import CampaignRecord, TrialRecord
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
    from swarmtest.store.export import writers
    from swarmtest.store.export.table import ExportTable

    write = {
        "csv": writers.write_csv,
        "jsonl": writers.write_jsonl,
        "parquet": writers.write_parquet,
    }[format]
    try:
        return write(ExportTable(store, campaign), out)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = getattr(out, "name", None)
        where = f"{name}: " if isinstance(name, str) else ""
        why = error.strerror or error
        raise UserError(f"{where}the export could not be written: {why}") from error
