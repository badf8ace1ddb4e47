"""What a shell completes: files, campaigns, faults and strategies.

The names of commands and options are completed by click. A shell asks for each press of Tab, so
what is not needed is not imported, and an error must not print anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from swarmtest.core.errors import UserError

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
    for store in _stores(context):
        records = store.campaigns()[::-1][:_MOST_SHOWN]
        found += [CompletionItem(str(record.id), help=record.subject) for record in records]
    return [item for item in found if item.value.startswith(incomplete)]


def faults(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the id of a fault, or the name of a file with a test."""
    from click.shell_completion import CompletionItem

    ids = {fault for store in _stores(context) for _, fault in store.fault_ids()}
    found = [CompletionItem(id) for id in sorted(ids) if id.startswith(incomplete)]
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


def _stores(context: click.Context) -> Iterator[Store]:
    """Yield the store that the command line names, if it can be opened."""
    from swarmtest.store import open_store

    try:
        with open_store(context.params.get("store"), must_exist=True, read_only=True) as store:
            yield store
    except (UserError, OSError):
        return
