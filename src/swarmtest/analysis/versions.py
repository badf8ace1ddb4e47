"""Whether campaigns tested the same version of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swarmtest.store import CampaignRecord, Store


class Change(NamedTuple):
    """A file, and two campaigns that tested different versions of it."""

    path: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.path} was changed between campaigns {self.before} and {self.after}"


def changed_between(store: Store, records: Sequence[CampaignRecord]) -> Change | None:
    """The first file that is known to have changed between campaigns.

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
                return Change(path, campaign, record.id)
    return None
