"""``swarmtest faults --merge``, ``--split`` and ``--undo``: which recorded faults are one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.store.fault_groups import PERSON, FaultDecision, groups_of
from swarmtest.store.interface import Store


def merge(store: Store, names: Sequence[str]) -> None:
    """Show two faults as one from now on: the second under the name of the first."""
    known = _recorded(store)
    first, second = (_find(name, known, store.url) for name in names)
    groups = groups_of(store.fault_decisions())
    into, other = groups.get(first, first), groups.get(second, second)
    if into == other:
        raise UserError(f"{first} and {second} are one fault already")
    members = [other, *(fault for fault, shown in groups.items() if shown == other)]
    now = time.time()
    new = [FaultDecision(each, into, PERSON, "merged by hand", now) for each in members]
    # A decision that the fault stands on its own would make a circle with these.
    own = FaultDecision(into, into, PERSON, "merged by hand", now)
    store.decide_faults([own, *new])
    click.echo(f"{', '.join(members)}: shown as {into} from now on; --undo {other} takes it back")


def split(store: Store, name: str) -> None:
    """Show the recorded faults behind a fault apart."""
    known = _recorded(store)
    groups = groups_of(store.fault_decisions())
    named = _find(name, known, store.url)
    shown = groups.get(named, named)
    members = [shown, *(fault for fault, group in groups.items() if group == shown)]
    if len(members) == 1:
        raise UserError(
            f"fault {shown} is one identity: its failures have the same kind, type, place and "
            "message, so nothing tells them apart"
        )
    now = time.time()
    store.decide_faults(
        [FaultDecision(each, each, PERSON, "split by hand", now) for each in members]
    )
    click.echo(f"shown apart from now on: {', '.join(members)}; --undo {shown} takes it back")


def undo(store: Store, name: str) -> None:
    """Forget what people decided about a fault and about those that were merged into it."""
    known = _recorded(store)
    named = _find(name, known, store.url)
    decisions = [each for each in store.fault_decisions() if each.decided_by == PERSON]
    wanted = {each.decided for each in decisions if named in (each.fault, each.same_as)}
    # What was decided at once is taken back at once.
    forgotten = [each for each in decisions if each.decided in wanted]
    if not forgotten:
        raise UserError(f"nobody has decided anything about fault {named}")
    store.decide_faults([], forget=forgotten)
    click.echo(f"taken back: {', '.join(sorted({each.fault for each in forgotten}))}")


def _recorded(store: Store) -> dict[str, str]:
    """Return the signatures of all recorded faults by id."""
    return {
        fault.id: fault.signature
        for number in store.campaign_numbers()
        for fault in store.recorded.faults(number)
    }


def _find(name: str, known: dict[str, str], url: str) -> str:
    found = [fault for fault in known if fault.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{name} may be {', '.join(sorted(found))}: say which")
    raise UserError(f"{url} has no fault {name!r}{did_you_mean(name, list(known))}")
