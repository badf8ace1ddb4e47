"""Faults of earlier campaigns, by how their ids begin, with the place in the program."""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.errors import UserError
from swarmtest.focus.fault_places import place_of_fault
from swarmtest.store import Store


@dataclass(frozen=True)
class KnownFault:
    """A fault that a campaign of some subject found.

    >>> KnownFault("4ee18053", "cart.py::CartMachine", "shop/cart.py", 25).line
    25
    """

    id: str
    subject: str
    path: str = ""
    """The file where it showed, as the store names it; empty if that is not known."""
    line: int = 0


def known_fault(store: Store, start: str, subject: str) -> KnownFault:
    """The only fault of a subject whose id begins so, directed campaigns included."""
    found: dict[str, KnownFault] = {}
    elsewhere: dict[str, str] = {}
    for record in store.campaigns():
        for fault in store.faults(record.id):
            if not fault.id.startswith(start):
                continue
            if record.subject != subject:
                elsewhere[fault.id] = record.subject
                continue
            path, line = place_of_fault(fault.details, store.sources(record.id)) or ("", 0)
            found[fault.id] = KnownFault(fault.id, subject, path, line)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise UserError(f"--fault {start} may be {', '.join(sorted(found))}: say which")
    if elsewhere:
        id, whose = next(iter(elsewhere.items()))
        raise UserError(f"fault {id} is not one of {subject}: swarmtest focus {whose} --fault {id}")
    raise UserError(f"no campaign of {subject} found a fault {start!r}: see `swarmtest faults`")
