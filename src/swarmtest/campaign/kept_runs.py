"""Runs of a comparison that a store has already: need not be run again."""

from __future__ import annotations

import json

from swarmtest.campaign.campaign import Campaign
from swarmtest.instrument.versions import is_as_it_was
from swarmtest.store import CampaignRecord, Store


def kept_run(store: Store, campaign: Campaign) -> CampaignRecord | None:
    """The campaign in the store that is this one, if any; a finished one rather than another.

    The same subject, features, strategy, seed, budget, options, Python, version of the machine and,
    where code was watched, of the program.
    """
    wanted = campaign.record()
    options = json.loads(json.dumps(wanted.options))
    same = [
        record
        for record in store.campaigns()
        if record.options == options
        and all(getattr(record, name) == getattr(wanted, name) for name in _SAME)
        and record.status in ("finished", "interrupted")
        and all(map(is_as_it_was, store.sources(record.id)))
    ]
    return max(same, key=lambda record: (record.status == "finished", record.id), default=None)


_SAME = ("subject", "space", "strategy", "seed")
