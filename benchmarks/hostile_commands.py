"""The commands that meet hostile inputs, and every option with values of a careless user.

Used by hostile.py. Commands and options are read from the command line itself, so that a new one is
tried without any change here; only a new command needs an entry in `CALLS`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import click
from hostile_stores import STORE

from swarmtest.ui import cli

READING = [
    "list", "show 1", "show 3", "show 4", "show 5", "faults 1", "faults 1 --json", "faults 4",
    "roles 1", "roles 1 --json", "roles 1 --kind line -o out.csv", "roles 1 --kind event --summary",
    "triage 1", "triage 1 --json", "coverage 1", "coverage 1 --targets", "coverage 1 --json",
    "coverage 5", "growth 1", "growth 1 --json", "compare 1 2", "compare 1 2 --json",
    "report 1 -o out.html", "report 1 2 -o out.html", "report 3 -o out.html",
    "report 4 -o out.html", "report 1 --figures figures -o out.html", "export 1",
    "export 1 -o out.csv", "export 1 -f jsonl", "export 3 -o out.csv", "export 1 -o out.parquet",
    "replay KEPT --no-run", "replay FAULT --no-run",
    "copy s.db out.db", "doctor s.db", "doctor s.db --repair out.db", "delete 1 --yes",
    "search correlate 3", "search roles 3", "search best-sequence 3", "search replay 3 --points 3",
    "search plot 3 -o out.svg", "search export 3", "search export 3 -o out.csv",
    "list --subject disk --since 7d", "list --status finished --json", "show latest --json",
    "show 6", "show 9", "faults --all", "faults --all --json", "faults 1 FAULT", "faults 6",
    "faults 8 --json", "faults 9", "faults --mark open --note again FAULT",
    "faults --split FAULT", "faults --undo FAULT", "report 6 -o out.html",
    "faults 7 --inputs inputs", "faults 8 --inputs inputs",
    "report 7 --figures figures -o out.html", "report 8 -o out.html", "report 9 -o out.html",
    "export 7 -o out.csv", "export 8 -f jsonl", "roles 8 --summary", "roles 7 -o out.csv",
    "triage 6", "growth 7 8", "compare 1 2 --baseline coin", "coverage 5 --targets",
    "coverage 1 -o out.lcov",
    "coverage 1 -o out.xml", "coverage 1 -o out.json", "coverage 1 --show disk.py",
    "delete 4-9 --yes",
]  # fmt: skip
"""Commands that only show what is in a store."""
RUNNING = [
    "replay FAULT", "replay 1#5", "replay 4#1", "replay 1#5 --no-run --save out.py",
    "reduce FAULT --time 5s", "suite 1 --no-reduce -q", "why FAULT", "why FAULT --all",
    "why FAULT --json", "why FAULT --again --runs 50",
    "suite 1 -o out_test.py --no-reduce -q", "resume 1 --tests 210", "resume 2 --tests 210 --json",
    "resume 3", "focus disk.py --fault FAULT -n 30 -q",
    "mutate disk.py --campaign 1 --sample 3 -n 5",
    "run disk.py -n 20 --avoid known -q", "plan disk.py --ways 2", "run disk.py -n 20 -q --json",
    "race --after FAULT counter.py::count -n 5", "import-coverage cov.info", "search run air.toml",
    "replay --faults disk.py", "replay 6#5", "replay 7#3", "replay 8#2", "replay 9#1",
    "replay 9#1 --save out.py", "replay 6#5 --save out.json", "suite 7 -o out_test.py -q",
    "resume 8 --tests 70 -q", "resume 9 --tests 30 -q", "triage 6 --json",
    "run ring.py::Ring --like list -n 20 -q --tolerate known", "run words.py -n 20 -q",
    "run prog.toml -n 20 -q --avoid known", "race tasks.py::crawled -n 5 --control --save out.mmd",
    "watch disk.py --on-save --time 3s --slice 1s -j 1", "init --api ring.py::Ring",
    "reproduce FAULT", "reproduce FAULT --script", "run ring:Ring --api -n 20 -q",
    "learn ring -o out.values -- PYTHON good.py", "suite 10 --no-reduce -q", "replay 10#3",
]  # fmt: skip
"""Commands that run the programs of the user, with what the store says."""
SUBJECT_COMMANDS = [
    "check disk.py", "features disk.py", "run disk.py -n 5 -q", "plan disk.py --ways 2",
    "focus disk.py --fault FAULT -n 20 -q", "replay FAULT", "reduce FAULT --time 5s",
    "resume 1 --tests 205 -q", "suite 1 --no-reduce -q",
    "mutate disk.py --campaign 1 -n 5 --sample 3",
    "compare disk.py --strategies coin,all-on --repeat 1 -n 5", "run disk.py -n 5 -q -j 0",
    "run disk.py -n 5 -q --coverage line --cover disk.py", "race disk.py -n 3",
    "run disk:Disk --api -n 5 -q", "check disk:Disk --api", "init --api disk:Disk",
    "run disk:Disk --like list -n 5 -q", "why FAULT --again --runs 20", "replay --faults disk.py",
    "watch disk.py --on-save --time 2s --slice 1s -j 1", "reproduce FAULT",
]  # fmt: skip
REFUSED = [
    "race disk.py -n 3",  # it starts no thread
    "race --after FAULT counter.py::count -n 5",  # a fault of another program
    "growth 7 8",  # campaigns of different programs
    "run prog.toml -n 20 -q --avoid known",  # its faults are too few for roles
]
"""Commands that are refused although nothing is hostile."""
ON_TERMINAL = [
    "list", "show 1", "faults 1", "roles 1", "coverage 1 --targets", "replay FAULT", "suite 1 -q",
    "run disk.py -n 20", "why FAULT", "why FAULT --all", "faults --all", "faults 9",
    "reproduce FAULT",
    "watch disk.py --on-save --time 2s --slice 1s -j 1", "race tasks.py::crawled -n 5 --control",
]  # fmt: skip
CACHING = [
    "run disk.py -n 20 -q --coverage line --cover disk.py",
    "mutate disk.py --campaign 1 -n 5 --sample 3",
    "race counter.py::count -n 5 --coverage pair", "list",
]  # fmt: skip
WORKING = [
    "run disk.py -n 20 -q", "reduce FAULT", "mutate disk.py --campaign 1", "resume 1 -n 300",
    "race counter.py::count", "search run air.toml",
]  # fmt: skip
"""Commands with a number of workers."""
WITHOUT_STORE = {"copy", "doctor", "plan", "check", "features", "strategies", "init", "cc", "learn"}
MACHINES = {
    "compared": ("ring.py", "run ring.py::Ring --like list -n 20"),
    "generated": ("words.py", "run words.py -n 30"),
    "in a task": ("tasks.py", "race tasks.py::crawled -n 5 --control"),
    "in a thread": ("counter.py", "race counter.py::count -n 5"),
    "in a search": ("air.py", "search run air.toml"),
    "watched": ("disk.py", "watch disk.py --on-save --time 3s --slice 1s -j 1"),
}
"""What else runs poison than machines: the file of it, and the command."""


def words_of(command: str, fault: str, kept: str) -> tuple[str, ...]:
    """Return the words of a command on the store; `kept` is a trial whose test is stored."""
    meant = {"FAULT": fault, "KEPT": kept, "PYTHON": sys.executable}
    words = [meant.get(word, word) for word in command.split()]
    chosen = words[0] in WITHOUT_STORE or "--store" in words
    return (*words, *([] if chosen else ["--store", STORE]))


# Options.

CALLS = {
    "init": "init",
    "check": "check disk.py",
    "features": "features disk.py",
    "learn": "learn ring -o out.values -- PYTHON good.py",
    "run": "run disk.py -n 5 -q --time 20s",
    "resume": "resume 1 --tests 205 -q --time 20s",
    "watch": "watch disk.py --on-save --time 1s --slice 1s -j 1",
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
    "search compare": "search compare 3 --repeats 2",
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
    "compare": "compare disk.py --strategies coin,all-on --repeat 2 -n 5",
    "mutate": "mutate disk.py --campaign 1 -n 5 --sample 2",
    "cc": "cc gcc -fsyntax-only good.c",
    "export": "export 1",
    "import-coverage": "import-coverage cov.info",
    "copy": "copy s.db out.db",
}
"""A cheap call of each command; campaigns have a budget of tests and one of time."""
WITHOUT = {"dashboard"}
"""Commands that are tried elsewhere, since they do not end."""
VALUES = (
    "", " ", "0", "-1", "1e999", "nan", "1", "9" * 30, "0.5", "5s", "-5s", "100%", "all", "none",
    "\x1b]0;owned\x07", "\udcff", "\u202ex", "a\nb", "[", "{}", "%s", "=1+1", "a,,b", "x:y=z:",
    "::",
    "disk.py", "disk.py:5", "disk.py::Disk", "s.db", "no/such/file", "no/such/", "/dev/full", ".",
    "FAULT", "1", "#", "1#3", "os:abort", "builtins:exec", "../../etc/passwd", "-", "x" * 5000,
)  # fmt: skip


def with_options(fault: str, seed: int = 19) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield commands with the words of an option: every flag, and every other with some value."""
    chosen = random.Random(seed)
    for name, command in _leaves(cli.group, ""):
        for option in command.params:
            if not isinstance(option, click.Option) or "--help" in option.opts:
                continue
            if option.is_flag:
                yield from ((name, (flag,)) for flag in [*option.opts, *option.secondary_opts])
            else:
                value = chosen.choice(VALUES)
                yield name, (option.opts[-1], fault if value == "FAULT" else value)


def with_words(words: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command with more words, in front of what it hands to another command."""
    at = words.index("--") if "--" in words else len(words)
    return (*words[:at], *more, *words[at:])


def _leaves(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name} ")
        elif f"{before}{name}" not in WITHOUT:
            yield f"{before}{name}", command
