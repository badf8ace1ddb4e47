"""The options of ``swarmtest focus``: where to point, and what is written."""

from __future__ import annotations

import click


def target_options(command: click.decorators.FC) -> click.decorators.FC:
    """Where to point."""
    options = [
        click.option("--line", multiple=True, metavar="FILE:LINE", help="A line. May be repeated."),
        click.option(
            "--lines",
            multiple=True,
            metavar="FILE:A-B",
            help="All statements from line A to B. May be repeated.",
        ),
        click.option(
            "--function",
            multiple=True,
            metavar="MODULE:NAME",
            help="All statements of a function, like shop.cart:Cart.total or cart.py:Cart.total.",
        ),
        click.option(
            "--diff",
            metavar="REV",
            default="",
            help="What was changed since a git revision (for a branch: since it was left), "
            "committed or not.",
        ),
        click.option("--fault", multiple=True, metavar="ID", help="A fault that was found before."),
        click.option("--mutant", multiple=True, metavar="ID", help="A mutant that was killed."),
        click.option(
            "--target",
            multiple=True,
            metavar="KIND:NAME",
            help="Any other target, like 'event:stack was full'.",
        ),
        click.option(
            "--rare", is_flag=True, help="Lines hit rarely, but often enough for statistics."
        ),
        click.option(
            "--targets-from",
            multiple=True,
            metavar="FILE",
            help="One target per line, or SARIF of a static analyser.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def output_options(command: click.decorators.FC) -> click.decorators.FC:
    """What is written besides the terminal."""
    options = [
        click.option("--junit", metavar="FILE", help="Write JUnit XML."),
        click.option("--sarif", metavar="FILE", help="Write SARIF 2.1.0."),
        click.option("--markdown", metavar="FILE", help="Write a summary in Markdown."),
        click.option(
            "--github",
            is_flag=True,
            help="Print annotations for GitHub Actions, and add to the summary of the step.",
        ),
        click.option("--all", "everything", is_flag=True, help="List every target."),
    ]
    for option in reversed(options):
        command = option(command)
    return command
