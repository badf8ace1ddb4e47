"""Options and arguments that commands share, and what their values mean.

Every command imports this module, so it imports nothing that runs tests; `run_options` does.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from swarmtest.core.errors import UserError
from swarmtest.core.trust import trust
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui import completion

Command = TypeVar("Command", bound=Callable[..., Any])


STORE_IN_USE = "swarmtest.store"
"""The key of ``click.Context.meta`` under which the name of a command's store is kept."""


def _remember_store(context: click.Context, _parameter: object, name: str | None) -> str | None:
    context.meta[STORE_IN_USE] = name
    return name


def store_option(command: Command) -> Command:
    """Add the option ``--store`` to a command."""
    return click.option(
        "--store",
        callback=_remember_store,
        shell_complete=completion.files,
        metavar="FILE",
        envvar="SWARMTEST_STORE",
        help="Where campaigns are stored: a file, or postgresql://USER@HOST/DATABASE.  "
        "[default: .swarmtest/swarmtest.db]",
    )(command)


def trust_option(command: Command) -> Command:
    """Add the option ``--trust`` to a command that shows or runs stored tests."""

    def set_trust(context: click.Context, parameter: click.Parameter, trusted: bool) -> None:
        trust(trusted)

    return click.option(
        "--trust",
        is_flag=True,
        expose_value=False,
        callback=set_trust,
        help="Unpickle arguments that earlier versions stored. A pickle can run any code: use this "
        "only for stores that you, or people you trust, have written.",
    )(command)


LATEST = 0
"""Stands for the newest campaign of a store; the numbers of campaigns begin with 1."""


def campaign_number(word: str | int) -> int:
    """Return the number of a campaign; `LATEST` for the word ``latest``."""
    if word == "latest":
        return LATEST
    if isinstance(word, str) and re.fullmatch(r"[0-9]+-[0-9]+", word):
        raise click.BadParameter(f"{word} names several campaigns, and this command takes one.")
    try:
        return int(word)
    except ValueError:
        raise click.BadParameter(f"{word!r} is not a valid integer, nor 'latest'.") from None


def campaign_argument(command: Command) -> Command:
    """Add the argument ``[CAMPAIGN]`` to a command: a number, or ``latest``."""
    return click.argument(
        "campaign", type=campaign_number, required=False, shell_complete=completion.campaigns
    )(command)


def campaign_numbers(word: str) -> list[int]:
    """Return the campaigns that ``7``, ``3-9`` or ``latest`` names; none for anything else.

    >>> campaign_numbers("3-5"), campaign_numbers("stack.py")
    ([3, 4, 5], [])
    """
    if word == "latest":
        return [LATEST]
    match = re.fullmatch(r"([0-9]{1,99})(?:-([0-9]{1,99}))?", word)
    if not match:
        return []
    low, high = int(match[1]), int(match[2] or match[1])
    if not low <= high <= low + 10_000:
        raise UserError(f"{word}: a range goes from low to high, like 3-9, over 10,000 at most")
    return [*range(low, high + 1)]


def all_campaign_numbers(
    context: click.Context, parameter: click.Parameter, words: tuple[str, ...]
) -> list[int]:
    """Return the campaigns that several words name: a callback of an argument or option."""
    for word in words:
        if not campaign_numbers(word):
            raise UserError(f"{word!r}: name campaigns like 7, 3-9, or latest")
    return [number for word in words for number in campaign_numbers(word)]


def campaigns_argument(command: Command) -> Command:
    """Add the argument ``[CAMPAIGN]...``: numbers, ranges like ``3-9``, and ``latest``."""
    return click.argument(
        "campaigns",
        nargs=-1,
        metavar="[CAMPAIGN]...",
        callback=all_campaign_numbers,
        shell_complete=completion.campaigns,
    )(command)


def confidence_option(command: Command) -> Command:
    """Add the option ``--confidence`` to a command."""
    return click.option(
        "--confidence",
        type=float,
        default=0.95,
        show_default=True,
        metavar="C",
        help="Confidence level of the intervals; 1 - C is the accepted share of false discoveries.",
    )(command)


def existing_store(store: str | None, *, write: bool = False) -> Store:
    """Open a store that must exist; read-only, unless `write` is set."""
    return open_store(store, must_exist=True, read_only=not write)


def damage_in(name: str | None) -> str:
    """Return what is damaged in a store, in one line; empty if nothing is."""
    from swarmtest.store.checks import find_damage

    try:
        with existing_store(name) as store:
            damage = next(find_damage(store), None)
    except UserError:
        return ""
    if damage is None:
        return ""
    return (
        f"store {store.url} is damaged: {damage}: `swarmtest doctor {store.url}` says what is lost"
    )


def screen_width() -> int:
    """Return the columns of the terminal; 0, which means no limit, for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def refuse_imported(record: CampaignRecord, done: str) -> None:
    """Raise `UserError` if a campaign was imported: its tests cannot be run again."""
    file = record.imported_from
    if file:
        raise UserError(
            f"campaign {record.id} is coverage of another tool, read from {file}: "
            f"there are no tests to be {done}"
        )


def refuse_running(record: CampaignRecord, done: str) -> None:
    """Raise `UserError` if a process of this machine runs a campaign now."""
    from swarmtest.campaign.liveness import running_process

    process = running_process(record)
    if process:
        raise UserError(
            f"campaign {record.id} is running (process {process}), so it cannot be {done}: wait "
            f"until it has ended, or end it with Ctrl-C or `kill {process}`"
        )


def latest_campaign(store: Store, campaign: int | None) -> int:
    """Return the named campaign if it exists, or the newest if none is named."""
    if campaign is not None and campaign != LATEST:
        return store.campaign(campaign).id
    campaigns = store.campaigns()
    if not campaigns:
        raise UserError(f"{store.url} holds no campaign yet: `swarmtest run` makes one")
    return campaigns[-1].id


def named_campaigns(store: Store, campaigns: list[int]) -> list[int]:
    """Return the named campaigns, each once; the newest if none is named."""
    return [*dict.fromkeys(latest_campaign(store, number) for number in campaigns or [LATEST])]
