"""``swarmtest diff``: run the same tests with two releases of a package."""

from __future__ import annotations

from typing import Any

import click

from swarmtest.ui.commands.run import run
from swarmtest.ui.help import HelpfulCommand

_LEFT_OUT = ("path", "avoid", "tolerate", "kinds", "cover", "probes")
"""What `run` takes and this does not."""


def _diff(old: str, new: str, harness: str, **options: Any) -> int:
    """Run the same tests with two releases of a package, and report what differs.

    \b
    swarmtest diff shop==1.2 shop==1.3 shop.cart:Cart --api   any class
    swarmtest diff shop==1.2 shop==1.3 machine.py             your machine

    OLD and NEW are releases as pip names them. Both are installed into a cache, beside each other,
    and run in processes of their own. Tests are made with the old release. At each step, what the
    action returns or raises has to be the same, and the contents of the object under test; in a
    machine, what its method `observe` returns.

    Exit status: 0 no difference, 1 differences, 2 something to fix, 130 interrupted.
    """
    usual: dict[str, Any] = {"avoid": (), "tolerate": (), "kinds": None, "cover": ()}
    assert run.callback is not None
    status: int = run.callback(
        path=f"diff {old} {new} {harness}", **(usual | {"probes": "auto"} | options)
    )
    return status


diff = HelpfulCommand(
    "diff",
    callback=_diff,
    help=_diff.__doc__,
    params=[
        click.Argument(["old"], metavar="OLD"),
        click.Argument(["new"], metavar="NEW"),
        click.Argument(["harness"], metavar="HARNESS"),
        *(parameter for parameter in run.params if parameter.name not in _LEFT_OUT),
    ],
)
