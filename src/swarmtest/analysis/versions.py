"""Whether campaigns tested the same version of a program."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.store import CampaignRecord, Store


def changed_between(store: Store, records: Sequence[CampaignRecord]) -> str:
    """Which file was changed between which campaigns, in words; empty if none is known to be.

    Known are the file of the machine, and every file whose coverage was watched.
    """
    seen: dict[str, tuple[str, int]] = {}
    for record in records:
        versions = {source.path: source.id for source in store.sources(record.id)}
        if record.options.get("machine"):
            versions[record.subject.partition("::")[0]] = record.options["machine"]
        for path, version in versions.items():
            known, campaign = seen.setdefault(path, (version, record.id))
            if known != version:
                return f"{path} was changed between campaigns {campaign} and {record.id}"
    return ""
