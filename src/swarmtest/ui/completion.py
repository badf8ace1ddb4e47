"""What a shell completes: files, campaigns, faults and strategies.

The names of commands and options are completed by click. A shell asks for each press of Tab, so
what is not needed is not imported, and an error must not print anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from swarmtest.core.formatting import is_plain_id, printable_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from swarmtest.store.interface import Store

_MOST_SHOWN = 50


def files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def campaigns(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the number of a campaign, the newest first, and ``latest``."""
    from click.shell_completion import CompletionItem

    found = [CompletionItem("latest", help="the newest campaign")]
    records = _read(context, lambda store: store.campaigns()[::-1][:_MOST_SHOWN])
    # A line break would begin another completion, and an escape is obeyed by the terminal.
    found += [CompletionItem(str(r.id), help=printable_line(r.subject)) for r in records]
    return [item for item in found if item.value.startswith(incomplete)]


def faults(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the id of a fault, or the name of a file with a test."""
    from click.shell_completion import CompletionItem

    ids = {fault for _, fault in _read(context, lambda store: store.fault_ids())}
    # What is completed is typed into the shell: `$(reboot)` is the id of no fault.
    plain = sorted(filter(is_plain_id, ids))
    found = [CompletionItem(id) for id in plain if id.startswith(incomplete)]
    return found or files(context, parameter, incomplete)


def campaigns_or_faults(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the number of a campaign or the id of a fault."""
    found = campaigns(context, parameter, incomplete) + faults(context, parameter, incomplete)
    return [item for item in found if item.type == "plain"]


def strategies(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a strategy."""
    from click.shell_completion import CompletionItem

    from swarmtest.strategies.strategy import describe_strategies

    described = ((name, doc) for name, _, doc in describe_strategies())
    return [CompletionItem(n, help=doc) for n, doc in described if n.startswith(incomplete)]


def _read(context: click.Context, read: Callable[[Store], Iterable[Any]]) -> list[Any]:
    """Return what is read from the store that the command line names, if it can be read."""
    from swarmtest.store import open_store

    try:
        with open_store(context.params.get("store"), must_exist=True, read_only=True) as store:
            return list(read(store))
    except Exception:  # a damaged store raises many things, and here nothing may be printed
        return []
