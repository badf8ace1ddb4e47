"""``swarmtest doctor``: what is damaged in a store, and saving the rest."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any

import click

from swarmtest.campaign.liveness import GONE, status_in
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.store import DEFAULT_PATH, open_store
from swarmtest.store.checks import Damage, SavedCampaign, find_damage, save_readable
from swarmtest.store.interface import Store, is_postgres
from swarmtest.store.sqlite.file import DamagedFile
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import existing_store
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import json_text

_SHOWN = 10
"""Lines per campaign; the rest is counted."""


@click.command(cls=HelpfulCommand)
@click.argument("store", required=False, envvar="SWARMTEST_STORE")
@click.option(
    "--repair",
    metavar="FILE",
    help="Save everything that can be read into this new store; STORE is not changed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the damage as one JSON object.")
def doctor(store: str | None, repair: str | None, as_json: bool) -> int:
    """Check a store for damage, and save what can be read.

    STORE is a file, or postgresql://USER@HOST/DATABASE; by default, .swarmtest/swarmtest.db. The
    database is checked, everything in it is read and decoded, and every reference is followed.

    \b
    swarmtest doctor shared.db
    swarmtest doctor shared.db --repair saved.db

    Exit status: 0 the store is sound, 1 it is damaged.
    """
    if repair is not None:
        _refuse_existing(repair)
    try:
        opened = existing_store(store)
    except UserError as error:
        return _check_first_page(store or DEFAULT_PATH, repair, error, as_json)
    with opened:
        damage = list(find_damage(opened))
        if as_json:
            saved = _saved(opened, repair) if repair is not None else None
            click.echo(_json(opened.url, damage, saved))
            return int(bool(damage))
        _tell(opened.url, damage, repaired=repair is not None)
        if not damage:
            _tell_soundness(opened)
        if repair is not None:
            _repair(opened, repair)
    return int(bool(damage))


def _check_first_page(name: str, repair: str | None, error: UserError, as_json: bool) -> int:
    """Check a store that cannot be opened; raise the `error` if its first page is not to blame."""
    if is_postgres(name):
        raise error
    from swarmtest.store.sqlite.header import mended_copy

    with mended_copy(name.removeprefix("sqlite:///")) as copy:
        if copy is None:
            if not isinstance(error, DamagedFile):
                raise error
            raise UserError(
                f"store {name} is damaged or not a store, and nothing in it can be read: restore a "
                f"backup, try `sqlite3 {name} .recover`, or move it away"
            )
        with open_store(copy.path) as opened:
            header = [Damage("the header of the file", problem) for problem in copy.problems]
            damage = [*header, *find_damage(opened)]
            if as_json:
                saved = _saved(opened, repair) if repair is not None else None
                click.echo(_json(name, damage, saved))
                return 1
            _tell(name, damage, repaired=repair is not None)
            if repair is not None:
                _repair(opened, repair)
    return 1


def _json(store: str, damage: list[Damage], saved: list[SavedCampaign] | None) -> str:
    """Return what was found, and what was saved in a new store, for programs."""
    data: dict[str, Any] = {"store": store, "damage": [str(each) for each in damage]}
    if saved is not None:
        data["saved"] = [each._asdict() for each in saved]
    return json_text(data)


def _saved(damaged: Store, name: str) -> list[SavedCampaign]:
    """Save what can be read of a store in a new one."""
    with open_store(name) as new:
        return list(save_readable(damaged, new))


def _refuse_existing(name: str) -> None:
    if not is_postgres(name) and os.path.exists(name.removeprefix("sqlite:///")):
        raise UserError(f"--repair {name} exists already: name a new file")


def _tell(url: str, damage: list[Damage], *, repaired: bool) -> None:
    for _, found in groupby(damage, lambda each: each.campaign):
        lines = [str(each) for each in found]
        for line in lines[:_SHOWN]:
            click.echo(line)
        if len(lines) > _SHOWN:
            click.echo(f"... and {len(lines) - _SHOWN:,} more of this kind")
    if damage:
        name = "" if url == DEFAULT_PATH else f" {url}"
        how = f": `swarmtest doctor{name} --repair FILE` saves what can be read"
        click.echo(f"{url} is damaged{'' if repaired else how}")


def _tell_soundness(store: Store) -> None:
    campaigns = store.campaigns()
    trials = sum(store.summary(record.id)["trials"] for record in campaigns)
    click.echo(f"{store.url} is sound: {plural(len(campaigns), 'campaign')}, {trials:,} trials")
    for record in campaigns:
        if status_in(store, record) == GONE:
            click.echo(
                f"campaign {record.id} was stopped, its process is gone: "
                f"`{command_text(f'resume {record.id}', store.url)}` continues it"
            )


def _repair(damaged: Store, name: str) -> None:
    with open_store(name) as new:
        for saved in save_readable(damaged, new):
            if not saved.number:
                click.echo(f"campaign {saved.campaign} is lost: {saved.why}")
                continue
            lost = f", {plural(saved.lost, 'trial')} lost" if saved.lost else ""
            click.echo(
                f"campaign {saved.campaign} -> {saved.number}: {saved.trials:,} trials saved{lost}"
            )
        click.echo(f"saved in {new.url}")
