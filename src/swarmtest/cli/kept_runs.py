"""Runs of a comparison that a store has already: need not be run again."""

from __future__ import annotations

import json
from pathlib import Path

from swarmtest.campaign import Campaign
from swarmtest.store import CampaignRecord, Store
from swarmtest.targets import Source


def kept_run(store: Store, campaign: Campaign) -> CampaignRecord | None:
    """The campaign in the store that is this one, if any; a finished one rather than another.

    The same subject, features, strategy, seed, budget, options, Python, version of the machine and,
    where code was watched, of the program.
    """
    wanted = campaign._record()
    options = json.loads(json.dumps(wanted.options))
    same = [
        record
        for record in store.campaigns()
        if record.options == options
        and all(getattr(record, name) == getattr(wanted, name) for name in _SAME)
        and record.status in ("finished", "interrupted")
        and all(map(_is_unchanged, store.sources(record.id)))
    ]
    return max(same, key=lambda record: (record.status == "finished", record.id), default=None)


_SAME = ("subject", "space", "strategy", "seed")


def _is_unchanged(source: Source) -> bool:
    try:
        return Source(source.path, Path(source.place).read_text()).id == source.id
    except (OSError, UnicodeDecodeError):
        return False
