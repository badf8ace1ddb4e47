"""Every option of every command with values that are hostile, or that a careless user may give.

Used by hostile.py. Commands and options are read from the command line itself, so that a new one is
tried without any change here; only a new command needs an entry in `CALLS`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import click

from swarmtest.ui import cli

CALLS = {
    "init": "init",
    "check": "check disk.py",
    "features": "features disk.py",
    "learn": "learn ring -- true",
    "run": "run disk.py -n 5 -q --time 20s",
    "resume": "resume 1 --tests 205 -q --time 20s",
    "watch": "watch disk.py --time 1s --slice 1s -j 1",
    "race": "race counter.py::count -n 3 -q --time 20s",
    "list": "list",
    "show": "show 1",
    "faults": "faults 1",
    "coverage": "coverage 1",
    "growth": "growth 1",
    "report": "report 1 -o out.html",
    "why": "why FAULT --again --runs 20 --cpu-time 2s",
    "roles": "roles 1",
    "triage": "triage 1",
    "replay": "replay FAULT",
    "reproduce": "reproduce FAULT",
    "reduce": "reduce FAULT --time 2s",
    "focus": "focus disk.py --fault FAULT -n 10 -q --time 20s",
    "search best-sequence": "search best-sequence 3",
    "search compare": "search compare air.toml -e random -e hill -n 2 --repeats 2",
    "search correlate": "search correlate 3",
    "search export": "search export 3",
    "search plot": "search plot 3 -o out.svg",
    "search replay": "search replay 3 --points 2",
    "search roles": "search roles 3",
    "search run": "search run air.toml --points 2 --time 20s",
    "plan": "plan disk.py --ways 2",
    "strategies": "strategies",
    "suite": "suite 1 --no-reduce -q",
    "doctor": "doctor s.db",
    "delete": "delete 2 --yes",
    "diff": "diff ringware==1.0 ringware==1.1 ringware:Ring --api -n 5 -j 1 --no-why --no-reduce",
    "compare": "compare disk.py -s coin -s all-on -n 5 --time 20s",
    "mutate": "mutate disk.py -n 5 --sample 2",
    "cc": "cc true",
    "export": "export 1",
    "import-coverage": "import-coverage cov.info",
    "copy": "copy s.db out.db",
}
"""A cheap call of each command; campaigns have a budget of tests and one of time."""
WITHOUT = {"dashboard"}
"""Commands that are tried elsewhere, since they do not end."""
VALUES = (
    "", " ", "0", "-1", "1e999", "nan", "1", "9" * 30, "0.5", "5s", "-5s", "100%", "all", "none",
    "\x1b]0;owned\x07", "\udcff", "\u202ex", "a\nb", "[", "{}", "%s", "=1+1", "a,,b", "x:y=z:", "::",
    "disk.py", "disk.py:5", "disk.py::Disk", "s.db", "no/such/file", "no/such/", "/dev/full", ".",
    "FAULT", "1", "#", "1#3", "os:abort", "builtins:exec", "../../etc/passwd", "-", "x" * 5000,
)  # fmt: skip


def calls(each: int, seed: int = 19) -> Iterator[tuple[str, str, str]]:
    """Yield, for each option with a value, some values: the command, the option, and the value."""
    chosen = random.Random(seed)
    for name, command in _leaves(cli.group, ""):
        for parameter in command.params:
            if not isinstance(parameter, click.Option) or parameter.is_flag or parameter.hidden:
                continue
            for value in chosen.sample(VALUES, each):
                yield name, parameter.opts[-1], value


def flags() -> Iterator[tuple[str, str]]:
    """Yield each flag of each command: the command and the flag."""
    for name, command in _leaves(cli.group, ""):
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.is_flag:
                yield from ((name, flag) for flag in [*parameter.opts, *parameter.secondary_opts])


def _leaves(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name} ")
        elif f"{before}{name}" not in WITHOUT:
            yield f"{before}{name}", command
