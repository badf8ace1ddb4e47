"""``swarmtest strategies``: the strategies and their parameters."""

from __future__ import annotations

import click

from swarmtest.strategies.strategy import describe_strategies


@click.command()
def strategies() -> None:
    """List the strategies, with their parameters and what they are for."""
    for name, parameters, doc in describe_strategies():
        click.echo(f"{name}")
        click.echo(f"    {doc}")
        for parameter in parameters:
            click.echo(f"    {parameter}")
    click.echo("\nYour own: MODULE:CLASS or FILE.py:CLASS with a method ask(space, trial, rng).")
