"""Hostile inputs over all commands: none may be executed, crash, hang, or reach a terminal raw.

    python benchmarks/hostile.py [--quick] [--only WORDS] [--log FILE]

An input is one hostile thing and one command that meets it: a store with hostile text in its
columns, pickles, damaged bytes, files of others, surroundings that lack something, subjects whose
import does not end, and tests that attack the program that runs them. Every command is a real
process. A payload creates a file, and `executed` counts those. An escape is what a terminal, a
spreadsheet or a browser would obey. An orphan is a process that a command started and that is alive
after it. `other_ends` counts ends that are neither a result nor a mistake told in one line.

All inputs take hours on a small machine. With `--log`, each outcome is written to a file when it is
known, and a run that was ended goes on there; delete the file when the program has changed.

`--quick` takes some inputs of every group. The last line is one JSON object; the inputs that led to
something are listed above it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import hostile_code as code
import hostile_commands as commands
import hostile_programs as programs
import hostile_stores as stores
from harness import print_figures, print_table, progress
from hostile_commands import (
    CACHING,
    MACHINES,
    ON_TERMINAL,
    READING,
    RUNNING,
    SUBJECT_COMMANDS,
    WORKING,
    words_of,
)
from hostile_runs import (
    PATIENCE,
    SWARMTEST,
    HostileInput,
    Outcome,
    Surroundings,
    attempt,
    escapes_of,
    live_element,
    marked,
)

FIGURES = ("tracebacks", "hangs", "executed", "escapes", "orphans", "other_ends")
NAMES_OF_CODE = [
    ("subject", "evil.py::Disk"), ("subject", "evil:Disk"), ("strategy", "evil.py:Evil"),
    ("strategy", "mixture:evil.py:Evil=1,coin=1"),
]  # fmt: skip
"""Columns of campaigns, and what names a file with code."""


class Inputs:
    """All hostile inputs, group by group."""

    def __init__(self, template: Path) -> None:
        self._template = template
        self._names = (template / "names").read_text().split()
        self._random = random.Random(19)

    def all(self) -> Iterator[HostileInput]:
        """Yield every input of every group."""
        yield from self.texts()
        yield from self.single_columns()
        yield from self.flips()
        yield from self.damage()
        yield from self.payloads()
        yield from self.files()
        yield from self.surroundings()
        yield from self.imports()
        yield from self.poison()
        yield from self.other_poison()
        yield from self.releases()
        yield from self.code()
        yield from self.options()

    def _input(self, group: str, name: str, command: str, **more: Any) -> HostileInput:
        return HostileInput(group, name, words_of(command, *self._names), **more)

    def texts(self) -> Iterator[HostileInput]:
        """Hostile text in every column at once."""
        for kind, text in stores.TEXTS.items():
            for inside in (True, False):
                prepare = partial(_spoil, text=text, inside=inside)
                name = f"{kind} {'inside' if inside else 'instead of'} the text"
                chosen = self._random.sample(READING, 22 if inside else 7)
                for command in [*chosen, *self._random.sample(RUNNING, 6 if inside else 2)]:
                    yield self._input("hostile text", name, command, prepare=prepare)
            for command in ("show", "replay"):
                completing = {"COMP_WORDS": f"swarmtest {command} ", "COMP_CWORD": "2"}
                completing["_SWARMTEST_COMPLETE"] = "zsh_complete"
                completing["SWARMTEST_STORE"] = stores.STORE
                around = Surroundings(env=completing)
                prepare = partial(_spoil, text=text, inside=True)
                yield HostileInput(
                    "completion", f"{kind}: {command}", (), prepare=prepare, surroundings=around
                )
        for command in ON_TERMINAL:
            prepare = partial(_spoil, text=stores.TEXTS["terminal escapes"], inside=True)
            around = Surroundings(terminal=True, env={"TERM": "xterm-256color"})
            yield self._input(
                "hostile text", "on a terminal", command, prepare=prepare, surroundings=around
            )

    def single_columns(self) -> Iterator[HostileInput]:
        """Every column with values of another kind."""
        for table, column in stores.columns(self._template / stores.STORE):
            for kind in self._random.sample(sorted(stores.VALUES), 2):
                prepare = partial(_set, table=table, column=column, value=stores.VALUES[kind])
                command = self._random.choice([*READING, *READING, *RUNNING])
                yield self._input(
                    "one column", f"{table}.{column}: {kind}", command, prepare=prepare
                )

    def flips(self) -> Iterator[HostileInput]:
        """Single bits, anywhere in the file."""
        for seed in range(50):
            for command in self._random.sample([*READING, *RUNNING[:5]], 2):
                prepare = partial(_flip, seed=seed)
                yield self._input("flipped bits", f"seed {seed}", command, prepare=prepare)

    def damage(self) -> Iterator[HostileInput]:
        """Files that are cut, replaced, or have a damaged header."""
        always = ["list", "doctor s.db", "doctor s.db --repair out.db"]
        for name in stores.DAMAGE:
            for command in [*always, *self._random.sample([*READING, *RUNNING], 2)]:
                prepare = partial(_damage, name=name)
                yield self._input("damaged file", name, command, prepare=prepare)

    def payloads(self) -> Iterator[HostileInput]:
        """Pickles, names of functions, and names of files with code."""
        group = "payloads"
        for command in [*READING, "replay FAULT", "reduce FAULT --time 5s", "suite 1 -q"]:
            yield self._input(group, "pickles", command, prepare=stores.pickle_tests)
        for name in ("os:system", "posix:system", "subprocess:Popen", "builtins:exec"):
            prepare = partial(stores.name_functions, name=name)
            for command in ("faults 1", "replay FAULT --no-run", "replay FAULT"):
                yield self._input(group, name, command, prepare=prepare)
        for column, value in NAMES_OF_CODE:
            prepare = partial(stores.name_code, column=column, value=value)
            for command in READING:
                if self._random.random() < 0.4:
                    yield self._input(group, f"{column} {value}", command, prepare=prepare)
        for command in READING:
            yield self._input(
                group, "all options name code", command, prepare=stores.name_everything
            )
        for command in ("replay t.json --no-run", "replay t.json", "reduce t.json --time 5s"):
            yield self._input(
                group, "a saved test with a pickle", command, prepare=programs.pickled_file
            )
        yield self._input(
            group, "a saved test of a hostile subject", "replay t.json --no-run",
            prepare=programs.evil_file,
        )  # fmt: skip

    def files(self) -> Iterator[HostileInput]:
        """Files that somebody else wrote."""
        for name, (file, content, calls) in programs.FILES.items():
            for command in calls:
                prepare = partial(programs.write_file, name=file, content=content)
                yield self._input("files", name, command, prepare=prepare)

    def surroundings(self) -> Iterator[HostileInput]:
        """Full devices, low limits, closed descriptors, odd locales and directories."""
        group = "surroundings"
        chosen = [*READING[:1], *READING[1::3], *RUNNING[::2], "strategies", "check disk.py"]
        around = {
            "stdout is full": Surroundings(stdout="/dev/full"),
            "12 open files": Surroundings(limits={resource.RLIMIT_NOFILE: 12}),
            "no stdin": Surroundings(closed=(0,)),
            "no stdout": Surroundings(closed=(1,)),
            "no stderr": Surroundings(closed=(2,)),
            "no descriptors": Surroundings(closed=(0, 1, 2)),
            "an ASCII locale": Surroundings(
                env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
            ),
            "a locale that is not there": Surroundings(env={"LC_ALL": "xx_YY.KOI8-R"}),
            "no HOME": Surroundings(env={"HOME": None, "XDG_CACHE_HOME": None}),
            "a HOME that is a file": Surroundings(
                env={"HOME": "/dev/null", "XDG_CACHE_HOME": None}
            ),
            "no environment": Surroundings(env={"PATH": None, "HOME": None, "TERM": None}),
            "hostile variables": Surroundings(
                env={"COLUMNS": "-5", "LINES": "x", "TERM": "\x1b]0;x", "SWARMTEST_WORKERS": "many"}
            ),
            "no temporary directory": Surroundings(env={"TMPDIR": "/nonexistent"}),
            "files of 40 KB": Surroundings(limits={resource.RLIMIT_FSIZE: 40_000}),
        }
        for name, what in around.items():
            for command in self._random.sample(chosen, 6):
                yield self._input(group, name, command, surroundings=what)
        for kind in ("a file", "a loop", "world-writable", "full of code", "unwritable"):
            for command in CACHING:
                yield self._input(
                    group, f"the cache is {kind}", command, prepare=programs.cache_of(kind)
                )
        for command in WORKING:
            option = "--workers" if command.startswith("search") else "-j"
            yield self._input(group, "100,000 workers", f"{command} {option} 100000")
            yield self._input(group, "-1 workers", f"{command} {option} -1")

    def imports(self) -> Iterator[HostileInput]:
        """Subjects whose import does what no import should."""
        for name in programs.IMPORTS:
            prepare = partial(_replace_machine, source=programs.hostile_import(name))
            around = Surroundings(env={"SWARMTEST_IMPORT_SECONDS": "5"})
            for command in ["check disk.py", *self._random.sample(SUBJECT_COMMANDS[1:], 3)]:
                yield self._input("imports", name, command, prepare=prepare, surroundings=around)

    def poison(self) -> Iterator[HostileInput]:
        """Tests that attack what runs them."""
        for name in programs.POISON:
            source = programs.poison_machine(name).encode()
            prepare = partial(_replace_machine, source=source)
            run = "run disk.py -n 30 --timeout 2s --no-reduce -q --store new.db"
            trials = 0 if name == "removes its directory" else 30  # the store is there, too
            for workers in (1, 2):
                yield self._input(
                    "poison tests", name, f"{run} -j {workers}", prepare=prepare, trials=trials
                )
            for command in ("replay poison.json", "reduce poison.json --time 5s"):
                if name == "writes escapes" and command.startswith("replay"):
                    continue  # what a program itself prints is shown as it is when it is replayed
                yield self._input("poison tests", name, f"{command} --timeout 2s", prepare=prepare)
            if name == "removes its directory":
                continue  # pytest itself cannot go on without its directory
            yield HostileInput(
                "pytest",
                name,
                ("disk_test.py", "-q", "--swarm-tests", "20", "--swarm-workers", "1"),
                prepare=partial(_pytest_file, source=source),
                program=(sys.executable, "-m", "pytest"),
            )

    def other_poison(self) -> Iterator[HostileInput]:
        """Classes, generated tests, threads, tasks and points of a space that attack."""
        for kind, (file, command) in MACHINES.items():
            for name in self._random.sample(sorted(programs.POISON), 14):
                source = programs.poison_program(file, name).encode()
                prepare = partial(_replace_file, name=file, source=source)
                options = "" if command.startswith(("search", "watch")) else " --timeout 2s -j 1"
                words = f"{command}{options} --store new.db"
                yield self._input(f"poison {kind}", name, words, prepare=prepare)

    def code(self) -> Iterator[HostileInput]:
        """Tests of a store or a file that try to become code where they are written as code."""
        for name, calls in code.INJECTIONS.items():
            prepare = partial(code.inject, name=name)
            for command in calls:
                yield self._input("code in tests", name, command, prepare=prepare)
        for name, calls in code.NAMED.items():
            prepare = partial(code.name_functions, what=name)
            for command in calls:
                yield self._input("named in a store", name, command, prepare=prepare)
        for name, (file, content, calls) in code.VALUES_FILES.items():
            prepare = partial(programs.write_file, name=file, content=content)
            for command in calls:
                yield self._input("values", name, command, prepare=prepare)

    def options(self) -> Iterator[HostileInput]:
        """Every command as it should work, and every option with values that it may not expect."""
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ".", "PIP_CONFIG_FILE": "/dev/null"}
        around = Surroundings(env=env)
        for name, call in commands.CALLS.items():
            yield self._input("options", f"{name}: none", call, surroundings=around, works=True)
        for command in dict.fromkeys([*READING, *RUNNING, *SUBJECT_COMMANDS]):
            works = command not in commands.REFUSED
            yield self._input("ordinary", "nothing hostile", command, works=works)
        fault = self._names[0]
        for name, more in commands.with_options(fault):
            words = commands.with_words(words_of(commands.CALLS[name], *self._names), more)
            yield HostileInput("options", f"{name} {more[0]}", words, surroundings=around)

    def releases(self) -> Iterator[HostileInput]:
        """Releases that attack what compares them, and names that are no releases."""
        group = "releases"
        env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ".", "PIP_CONFIG_FILE": "/dev/null"}
        around = Surroundings(env=env)
        command = (
            "diff ringware==1.0 ringware==1.1 ringware:Ring --api -n 10 -j 1 --timeout 2s --no-why"
            " --no-reduce"
        )
        hostile = {f"import {name}": programs.hostile_release(name) for name in programs.IMPORTS}
        for name in self._random.sample(sorted(programs.POISON), 14):
            hostile[name] = programs.poison_program("ring.py", name).encode()
        for name, source in hostile.items():
            for version in ("1.0", "1.1") if name.startswith("import") else ("1.1",):
                prepare = partial(_replace_wheel, version=version, source=source)
                yield self._input(
                    group, f"{version}: {name}", command, prepare=prepare, surroundings=around
                )
        for name in programs.NO_RELEASES:
            words = ("diff", "--store", "new.db", "--", name, "ringware==1.0", "ringware:Ring")
            yield HostileInput(group, f"named {name!a}", words, surroundings=around)


def _spoil(place: Path, text: str, inside: bool) -> None:
    stores.spoil_texts(place / stores.STORE, text, inside=inside)


def _set(place: Path, table: str, column: str, value: object) -> None:
    stores.set_column(place / stores.STORE, table, column, value)


def _flip(place: Path, seed: int) -> None:
    stores.flip_byte(place / stores.STORE, seed)


def _damage(place: Path, name: str) -> None:
    stores.DAMAGE[name](place / stores.STORE)


def _replace_file(place: Path, name: str, source: bytes) -> None:
    (place / name).write_bytes(source)


def _replace_wheel(place: Path, version: str, source: bytes) -> None:
    stores.write_wheel(place, version, source)


def _replace_machine(place: Path, source: bytes) -> None:
    (place / "disk.py").write_bytes(source)


def _pytest_file(place: Path, source: bytes) -> None:
    (place / "disk_test.py").write_bytes(source)


# The dashboard.

_MOST_PAGES = 60


def dashboard_outcomes(template: Path, kinds: list[str], most: int) -> Iterator[Outcome]:
    """Visit every page about hostile stores; each page is an input."""
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="hostile-") as name:
            place = Path(name) / "place"
            stores.copy_directory(template, place)
            if kind in stores.TEXTS:
                _spoil(place, stores.TEXTS[kind], inside=True)
            elif kind == "payloads":
                stores.name_everything(place)
            else:
                _flip(place, seed=int(kind.split()[-1]))
            yield from _visit(place, kind, most)


def _visit(place: Path, kind: str, most: int) -> Iterator[Outcome]:
    """Serve a store, follow its links, and end the server."""
    markers = place.parent / "markers"
    markers.mkdir()
    mark = f"dashboard-{os.getpid()}-{kind}-"
    server = subprocess.Popen(
        [*SWARMTEST, "dashboard", "--port", "0", "--store", stores.STORE],
        cwd=place,
        env=os.environ | {"HOSTILE_MARK": mark, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    asked = HostileInput("dashboard", kind, ("dashboard",))
    outcome = Outcome(asked)
    assert server.stdout
    found = re.search(r"http://\S+", server.stdout.readline())
    entry = re.search(r"which only you can read: (\S+)", server.stdout.readline())
    if found and entry:
        token = re.search(r"\?token=([\w-]+)", Path(entry[1]).read_text())
        yield from _pages(found[0], token[1] if token else "", kind, most)
        server.send_signal(signal.SIGINT)
    try:
        _, err = server.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        outcome.hang = "it did not end"
        server.kill()
        _, err = server.communicate()
    outcome.said = err
    outcome.traceback = "Traceback" if "Traceback" in err else ""
    outcome.escape = escapes_of(err)
    outcome.executed = ", ".join(path.name for path in markers.iterdir())
    outcome.orphan = ", ".join(command for _, command in marked(mark))
    yield outcome


def _pages(address: str, token: str, kind: str, most: int) -> Iterator[Outcome]:
    import httpx

    waiting, seen = [address], set[str]()
    with httpx.Client(timeout=PATIENCE, follow_redirects=True) as client:
        client.get(address, params={"token": token})
        while waiting and len(seen) < most:
            url = waiting.pop(0)
            seen.add(url)
            outcome = Outcome(HostileInput("dashboard", kind, ("dashboard", urlsplit(url).path)))
            answer = client.get(url)
            if answer.status_code == 500:
                outcome.traceback = "status 500"
            outcome.said = answer.text[:600]
            outcome.escape = escapes_of(answer.text)
            if "html" in answer.headers.get("content-type", ""):
                outcome.escape = outcome.escape or live_element(answer.text)
                for link in re.findall(r'<a [^>]*href="([^"]*)"', answer.text):
                    linked = urldefrag(urljoin(url, unescape(link)))[0]
                    own = urlsplit(linked).netloc == urlsplit(address).netloc
                    waiting += [linked] if own and linked not in {*seen, *waiting} else []
            yield outcome


# The whole run.


class Log:
    """The outcomes of a run in a file, a line each, so that another run can go on."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.known: dict[tuple[str, ...], Outcome] = {}
        lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
        for line in lines:
            group, name, words, problems, said = json.loads(line)
            outcome = Outcome(HostileInput(group, name, tuple(words)), said=said)
            for figure, what in problems.items():
                setattr(outcome, figure.removesuffix("s"), what)
            self.known[_key(outcome.input)] = outcome

    def kept(self, outcome: Outcome) -> Outcome:
        """Write an outcome, and return it."""
        each = outcome.input
        if self._path:
            with open(self._path, "a") as file:
                file.write(
                    json.dumps([each.group, each.name, each.words, outcome.problems, outcome.said])
                    + "\n"
                )
        return outcome

    def attempt(self, each: HostileInput, template: Path) -> Outcome:
        """Try an input unless its outcome is known."""
        return self.known.get(_key(each)) or self.kept(attempt(each, template))


def _key(each: HostileInput) -> tuple[str, ...]:
    return each.group, each.name, *each.words


def tell(outcomes: Iterator[Outcome], total: int) -> list[Outcome]:
    """Collect outcomes, and show progress and whatever must not be."""
    done = []
    for outcome in outcomes:
        done.append(outcome)
        for figure, what in outcome.problems.items():
            if what:
                asked = outcome.input
                progress(f"{figure}: {asked.group}: {asked.name}: {' '.join(asked.words)}: {what}")
                progress(f"    {outcome.said}")
        if len(done) % 50 == 0:
            progress(f"{len(done)} of about {total} inputs")
    return done


def some_of_each(inputs: list[HostileInput], count: int) -> list[HostileInput]:
    """Return some inputs of every group, spread over it."""
    groups: dict[str, list[HostileInput]] = {}
    for each in inputs:
        groups.setdefault(each.group, []).append(each)
    chosen = random.Random(7)
    return [
        each for group in groups.values() for each in chosen.sample(group, min(count, len(group)))
    ]


def main() -> None:
    """Try all inputs and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some inputs of every group")
    parser.add_argument(
        "--only", default="", help="only inputs whose group, name or command has this"
    )
    parser.add_argument("-j", type=int, default=2, help="how many commands run at a time")
    parser.add_argument("--log", default="", metavar="FILE", help="keep outcomes, and go on there")
    options = parser.parse_args()
    log = Log(options.log)
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        template = Path(name)
        progress("making a store")
        stores.make_template(template)
        (template / "poison.json").write_text(programs.POISON_TEST)
        inputs = list(Inputs(template).all())
        if options.only:
            inputs = [
                each for each in inputs
                if options.only in f"{each.group}: {each.name}: {' '.join(each.words)}"
            ]  # fmt: skip
        kinds = [*stores.TEXTS, "payloads", *(f"seed {n}" for n in range(5))]
        most = _MOST_PAGES
        if options.quick:
            inputs, kinds, most = some_of_each(inputs, 1), ["terminal escapes"], 8
        progress(f"{len(inputs)} inputs, and pages of the dashboard")
        with ThreadPoolExecutor(options.j) as pool:
            outcomes = tell(pool.map(partial(log.attempt, template=template), inputs), len(inputs))
        if not options.only or options.only in "dashboard":
            progress("pages of the dashboard")
            visited = [o for o in log.known.values() if o.input.group == "dashboard"]
            complete = {o.input.name for o in visited if o.input.words == ("dashboard",)}
            outcomes += [outcome for outcome in visited if outcome.input.name in complete]
            left = [kind for kind in kinds if kind not in complete]
            pages = map(log.kept, dashboard_outcomes(template, left, most))
            outcomes += tell(pages, len(left) * most)
    groups = list(dict.fromkeys(outcome.input.group for outcome in outcomes))
    rows = [
        [group, len(of), *(sum(bool(each.problems[figure]) for each in of) for figure in FIGURES)]
        for group in groups
        for of in [[outcome for outcome in outcomes if outcome.input.group == group]]
    ]
    totals = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print_table(["", "inputs", *FIGURES], [*rows, ["all", *totals]])
    print_figures(dict(zip(("inputs", *FIGURES), totals, strict=True)))


if __name__ == "__main__":
    main()
