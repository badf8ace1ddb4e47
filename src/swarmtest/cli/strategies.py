"""``swarmtest strategies``: the strategies and their parameters."""

from __future__ import annotations

import click

from swarmtest.strategies.strategy import describe_strategies


@click.command()
def strategies() -> None:
    """List the strategies, with their parameters and what they are for."""
    for name, parameters, doc in describe_strategies():
        click.echo(f"{name}{':' if parameters else ''}{','.join(parameters)}")
        click.echo(f"    {doc}")
    click.echo("\nParameters are shown at their defaults: --strategy coin:p=0.3,n=100")
    click.echo("A mixture gives each of several its share: mixture:default=0.1,coin(p=0.3)=0.9")
    click.echo("\nYour own: MODULE:CLASS or FILE.py:CLASS with a method ask(space, trial, rng).")
