"""``swarmtest why``: explain a fault by experiments on its reduced test.

The work is done by `explain_fault`; the command parses its options and prints the result.
"""

from __future__ import annotations

import textwrap
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.store.interface import Store
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import existing_store, screen_width, store_option, trust_option
from swarmtest.ui.run_options import own_memory_option, timeout_option
from swarmtest.ui.terminal.text import json_text, kind_and_signature
from swarmtest.why.explanation import Explanation, explanations_of
from swarmtest.why.fault_explanations import FoundFault, explain_fault, find_fault
from swarmtest.why.variant_runs import VariantBudget
from swarmtest.why.views import (
    confirmation_line,
    experiment_lines,
    explanation_lines,
    test_lines,
)

_DEFAULT = VariantBudget()
_WIDTH = 100


@click.command(cls=HelpfulCommand)
@click.argument("fault", shell_complete=completion.faults)
@click.option(
    "--runs",
    type=int,
    default=_DEFAULT.runs,
    show_default=True,
    metavar="N",
    help="Run at most N variants of the test.",
)
@click.option(
    "--cpu-time",
    "cpu",
    default=f"{_DEFAULT.cpu_seconds:g}s",
    show_default=True,
    metavar="TIME",
    help="Use at most this CPU time for the variants.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of what is drawn at random."
)
@click.option("--all", "everything", is_flag=True, help="Print every experiment with its runs.")
@click.option("--no-confirm", is_flag=True, help="Do not generate tests from the explanation.")
@click.option(
    "--again", is_flag=True, help="Make the experiments again, even if the store has their result."
)
@timeout_option
@own_memory_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@trust_option
@store_option
def why(fault: str, **options: Any) -> None:
    """Explain a fault from one failing test: what it needs, in which order, and what prevents it.

    \b
    swarmtest why 4ee18053           from its reduced test
    swarmtest why 4ee18053 --all     with every experiment

    FAULT is the id of a fault, or the beginning of one. Its reduced test is changed in many small
    ways: steps are reordered, replaced and inserted, and values are changed. The changes that make
    the fault disappear explain it. Then tests are generated from the explanation, to see how often
    these show the fault.

    The result is kept in the store; the same command then prints it without running anything.
    """
    store = existing_store(options["store"], write=True)
    where = find_fault(store, fault)
    explanation = None if _asks_for_more(options) else _stored(store, where)
    if explanation is None:
        explanation = explain_fault(
            store,
            where.fault.id,
            budget=VariantBudget(options["runs"], parse_seconds(options["cpu"])),
            seed=options["seed"],
            timeout=options["timeout"],
            confirming=not options["no_confirm"],
        )
        # Read again, it says which other faults have the same rule.
        explanation = explanations_of(store, where.campaign).get(where.fault.id, explanation)
    if options["as_json"]:
        click.echo(json_text(explanation.to_json()))
        return
    click.echo("\n".join(_lines(where, explanation, options["everything"])))


def _asks_for_more(options: dict[str, Any]) -> bool:
    """Return whether the options ask for experiments that the stored ones do not include."""
    other = (
        options["runs"] != _DEFAULT.runs or parse_seconds(options["cpu"]) != _DEFAULT.cpu_seconds
    )
    return bool(options["again"] or options["seed"] or other)


def _stored(store: Store, where: FoundFault) -> Explanation | None:
    """Return the stored explanation, unless it is of a run that did not confirm it."""
    found = explanations_of(store, where.campaign).get(where.fault.id)
    if found is None or not found.is_complete:
        return None
    # No tests are generated from schedules and derivations, so these are never confirmed.
    is_done = found.is_schedule or found.is_derivation or found.confirmation is not None
    return found if is_done else None


def _lines(where: FoundFault, explanation: Explanation, everything: bool) -> list[str]:
    width = min(screen_width() or _WIDTH, _WIDTH)
    fault = where.fault
    lines = [
        f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}",
        "",
        *(f"  {line}" for line in test_lines(explanation)),
        "",
        *explanation_lines(explanation, width),
    ]
    if explanation.confirmation is not None:
        lines += textwrap.wrap(confirmation_line(explanation), width, subsequent_indent="  ")
    lines += [f"note: {note}" for note in explanation.notes]
    if everything:
        lines += ["", *experiment_lines(explanation)]
    return lines
