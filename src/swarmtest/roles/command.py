"""``swarmtest roles``: triggers and suppressors of targets."""

from __future__ import annotations

import csv
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from swarmtest.campaign.reduced_faults import explanation_texts
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import csv_row, plural
from swarmtest.core.targets import Target
from swarmtest.roles.roles import RoleTable, feature_shares
from swarmtest.roles.study import Study
from swarmtest.roles.views import share_table, study_lines, table_rows
from swarmtest.store.interface import Store
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_numbers,
    confidence_option,
    existing_store,
    named_campaigns,
    screen_width,
    store_option,
)
from swarmtest.ui.terminal.tables import screen_table
from swarmtest.ui.terminal.text import json_text, one_line

_SHOWN = 40
_EXPLAINED = 98
"""Columns of a paragraph where the width of the screen is not known."""


@click.command(cls=HelpfulCommand)
@click.argument(
    "what",
    nargs=-1,
    metavar="[CAMPAIGN]... [TARGET]...",
    shell_complete=completion.campaigns_or_faults,
)
@click.option(
    "--kind", metavar="KIND", help="Show all targets of a kind: fault, line, branch, event, ..."
)
@click.option(
    "--summary",
    is_flag=True,
    help="For each feature, the share of targets that it triggers or suppresses.",
)
@click.option("--raw", is_flag=True, help="With --summary: do not correct for many comparisons.")
@click.option(
    "--all", "everything", is_flag=True, help="Show irrelevant features too, and list all targets."
)
@click.option("-o", "--output", metavar="FILE", help="Write every interval as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@confidence_option
@store_option
def roles(what: tuple[str, ...], store: str | None, confidence: float, **options: Any) -> None:
    """Show which features make a fault, a line or an event more likely, and which less.

    CAMPAIGN is a number; the default is the newest campaign. Several campaigns of the same subject
    are analysed together. TARGET is a fault's id (or its beginning), or KIND:NAME as `swarmtest
    coverage --targets` prints it; the default is every fault.

    \b
    swarmtest roles                          every fault of the newest campaign
    swarmtest roles 3 4 85a1337e             one fault, from two campaigns
    swarmtest roles line:shop/cart.py:17     a line
    swarmtest roles "event:stack was full"   an event that the machine reported
    swarmtest roles --kind line              all lines, with their triggers and suppressors
    swarmtest roles --kind line --summary    by feature, as in table 2 of the swarm paper

    A feature is a trigger if Wilson's interval for the share of hitting tests that contain it lies
    above the share that chance alone gives, and a suppressor if it lies below.
    """
    _check(options)
    opened = existing_store(store)
    known = {record.id for record in opened.campaigns()}
    # A fault's id may be all digits; a number that is no campaign is perhaps one.
    numbers = {word: campaign_numbers(word) for word in what}
    faults = {w for w, n in numbers.items() if w.isdecimal() and len(w) > 2 and n[0] not in known}
    campaigns = [n for word, ids in numbers.items() if word not in faults for n in ids]
    study = Study(opened, named_campaigns(opened, campaigns), confidence)
    named = [study.find(word) for word in what if word in faults or not numbers[word]]
    if options["kind"] or options["summary"] or options["output"]:
        study.require_variation()
        if named:
            raise UserError(
                "--kind, --summary and -o are about all targets of a kind: do not name a target"
            )
        _report_kind(study, options)
    else:
        _report_targets(study, named, options, opened)
    for note in study.notes:
        click.echo(f"note: {note}", err=True)


def _check(options: dict[str, Any]) -> None:
    """Raise an error for options that cannot be combined."""
    if options["raw"] and not options["summary"]:
        raise UserError("--raw needs --summary")
    asked = [f"--{key}" for key in ("output", "summary") if options[key]]
    if options["output"] and (options["as_json"] or len(asked) > 1):
        raise UserError(
            "-o writes every interval as CSV: do not combine it with --json or --summary"
        )


def _experiment_lines(text: str) -> list[str]:
    """Return what experiments on the reduced test showed, beside what statistics show."""
    if not text:
        return []
    width = (screen_width() or _EXPLAINED) - 4
    wrapped = (part for line in text.splitlines() for part in wrap(one_line(line), width))
    return ["  by experiment on its reduced test", *(f"    {part}" for part in wrapped)]


def _report_targets(
    study: Study, named: list[Target], options: dict[str, Any], store: Store
) -> None:
    targets = named or list(study.faults)
    if not targets:
        where = f"campaign {', '.join(map(str, study.evidence.campaigns))} found no fault"
        kinds = ", ".join(study.kinds())
        if not kinds:
            raise UserError(f"{where}, and nothing else was watched: run it with --coverage line")
        raise UserError(f"{where}: name a target, or a kind with --kind (there are: {kinds})")
    explained = explanation_texts(store, study.evidence.campaigns)
    for number, target in enumerate(targets):
        text = explained.get(target.name, "") if target.kind == "fault" else ""
        if options["as_json"]:
            click.echo(json_text({**_plain(study, target), "by_experiment": text}))
        else:
            lines = study_lines(study, target, options["everything"], screen_width())
            lines += _experiment_lines(text)
            click.echo("\n" * bool(number) + "\n".join(lines))


def _plain(study: Study, target: Target) -> dict[str, Any]:
    return {
        "target": str(target),
        "detail": target.detail,
        "hits": len(study.hits(target)),
        "tests": study.evidence.n,
        "confidence": study.confidence,
        "notes": study.notes,
        "roles": [role.to_json() for role in study.roles(target)],
        "effects": [effect.to_json() for effect in study.effects(target)],
        "amounts": [amount.to_json() for amount in study.amounts(target)],
        "pairs": [pair.to_json() for pair in study.pairs(target)],
        "settings": [setting.to_json() for setting in study.settings(target)],
    }


def _report_kind(study: Study, options: dict[str, Any]) -> None:
    kind = options["kind"] or "fault"
    if kind not in study.kinds():
        raise UserError(f"no test hit a target of kind {kind!r}{did_you_mean(kind, study.kinds())}")
    role_table = study.table(kind)
    if options["output"]:
        _write_csv(role_table, Path(options["output"]))
        click.echo(f"{options['output']}: {plural(len(role_table.targets), kind)}")
    elif options["summary"]:
        shares = feature_shares(role_table, corrected=not options["raw"])
        if options["as_json"]:
            click.echo(json_text([vars(share) for share in shares]))
        else:
            click.echo(share_table(shares, kind, screen_width()))
    elif options["as_json"]:
        for target, roles in role_table:
            plain = [role.to_json() for role in roles]
            data = {"target": str(target), "roles": plain}
            click.echo(json_text(data))
    else:
        rows = table_rows(role_table, 0 if options["everything"] else _SHOWN)
        head = ("target", "tests", "triggers", "suppressors")
        click.echo(screen_table(head, rows, " r", screen_width(), [3, 2]))
        hidden = len(role_table.targets) - len(rows)
        if hidden:
            click.echo(f"... and {hidden:,} more, which more tests hit: --all lists them")


def _write_csv(role_table: RoleTable, path: Path) -> None:
    try:
        file = path.open("w", newline="")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    with file:
        writer = csv.writer(file)
        columns = ("role", "share", "low", "high", "base", "hits", "p_value", "adjusted")
        writer.writerow(("target", "tests", "feature", *columns))
        for (target, roles), tests in zip(role_table, role_table.hits.tolist(), strict=True):
            for role in roles:
                values = [getattr(role, column) for column in columns]
                writer.writerow(csv_row((str(target), tests, role.feature, *values)))
