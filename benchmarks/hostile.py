"""Hostile inputs over all commands: none may be executed, crash, hang, or reach a terminal raw.

    python benchmarks/hostile.py [--quick] [--only WORDS]

An input is one hostile thing and one command that meets it: a store with hostile text in its
columns, pickles, damaged bytes, files of others, surroundings that lack something, subjects whose
import does not end, and tests that attack the program that runs them. Every command is a real
process. A payload creates a file, and `executed` counts those. An escape is what a terminal, a
spreadsheet or a browser would obey. An orphan is a process that a command started and that is alive
after it. `other_ends` counts ends that are neither a result nor a mistake told in one line.

`--quick` takes some inputs of every group. The last line is one JSON object; the inputs that led to
something are listed above it.
"""

from __future__ import annotations

import argparse
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

import hostile_programs as programs
import hostile_stores as stores
from harness import print_figures, print_table, progress
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
    "report 7 --figures figures -o out.html", "report 8 -o out.html", "report 9 -o out.html",
    "export 7 -o out.csv", "export 8 -f jsonl", "roles 8 --summary", "roles 7 -o out.csv",
    "triage 6", "growth 7 8", "compare 6 --json", "coverage 9 --targets", "coverage 1 -o out.lcov",
    "coverage 1 -o out.xml", "coverage 1 -o out.json", "coverage 1 --show disk.py",
    "delete 4-9 --yes",
]  # fmt: skip
"""Commands that only show what is in a store."""
RUNNING = [
    "replay FAULT", "replay 1#5", "replay 4#1", "replay 1#5 --no-run --save out.py",
    "reduce FAULT --time 5s", "suite 1 --no-reduce -q", "why FAULT", "why FAULT --all",
    "why FAULT --json", "why FAULT --again --runs 50",
    "suite 1 -o out_test.py --no-reduce -q", "resume 1 --tests 210", "resume 2 --tests 210 --json",
    "resume 3", "focus disk.py --fault FAULT -n 30 -q", "mutate 1 --sample 3 disk.py -n 5",
    "run disk.py -n 20 --avoid known -q", "plan disk.py --ways 2", "run disk.py -n 20 -q --json",
    "race --after FAULT counter.py::count -n 5", "import-coverage cov.info", "search run air.toml",
    "replay --faults disk.py", "replay 6#5", "replay 7#3", "replay 8#2", "replay 9#1",
    "replay 9#1 --save out.py", "replay 6#5 --save out.json", "suite 7 -o out_test.py -q",
    "resume 8 --tests 70 -q", "resume 9 --tests 30 -q", "triage 6 --json",
    "run ring.py::Ring --like list -n 20 -q --tolerate known", "run words.py -n 20 -q",
    "run prog.toml -n 20 -q --avoid known", "race tasks.py::crawled -n 5 --control --save out.mmd",
    "watch disk.py --on-save --time 3s --slice 1s -j 1", "init --api ring.py::Ring",
]  # fmt: skip
"""Commands that run the programs of the user, with what the store says."""
SUBJECT_COMMANDS = [
    "check disk.py", "features disk.py", "run disk.py -n 5 -q", "plan disk.py --ways 2",
    "focus disk.py --fault FAULT -n 20 -q", "replay FAULT", "reduce FAULT --time 5s",
    "resume 1 --tests 205 -q", "suite 1 --no-reduce -q", "mutate disk.py -n 5 --sample 3",
    "compare disk.py -s coin -s all-on -n 5", "run disk.py -n 5 -q -j 0",
    "run disk.py -n 5 -q --coverage line --cover disk.py", "race disk.py -n 3",
    "run disk:Disk --api -n 5 -q", "check disk:Disk --api", "init --api disk:Disk",
    "run disk:Disk --like list -n 5 -q", "why FAULT --again --runs 20", "replay --faults disk.py",
    "watch disk.py --on-save --time 2s --slice 1s -j 1",
]  # fmt: skip
ON_TERMINAL = [
    "list", "show 1", "faults 1", "roles 1", "coverage 1 --targets", "replay FAULT", "suite 1 -q",
    "run disk.py -n 20", "why FAULT", "why FAULT --all", "faults --all", "faults 9",
    "watch disk.py --on-save --time 2s --slice 1s -j 1", "race tasks.py::crawled -n 5 --control",
]  # fmt: skip
NAMES_OF_CODE = [
    ("subject", "evil.py::Disk"), ("subject", "evil:Disk"), ("strategy", "evil.py:Evil"),
    ("strategy", "mixture:evil.py:Evil=1,coin=1"),
]  # fmt: skip
"""Columns of campaigns, and what names a file with code."""
CACHING = [
    "run disk.py -n 20 -q --coverage line --cover disk.py", "mutate disk.py -n 5 --sample 3",
    "race counter.py::count -n 5 --coverage pair", "list",
]  # fmt: skip
WORKING = [
    "run disk.py -n 20 -q", "reduce FAULT", "mutate disk.py", "resume 1 -n 300",
    "race counter.py::count", "search run air.toml",
]  # fmt: skip
"""Commands with a number of workers."""
WITHOUT_STORE = {"copy", "doctor", "plan", "check", "features", "strategies", "init", "cc"}
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
    words = [{"FAULT": fault, "KEPT": kept}.get(word, word) for word in command.split()]
    chosen = words[0] in WITHOUT_STORE or "--store" in words
    return (*words, *([] if chosen else ["--store", stores.STORE]))


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
        for name, (file, content, commands) in programs.FILES.items():
            for command in commands:
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
    options = parser.parse_args()
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
            inputs, kinds, most = some_of_each(inputs, 2), ["terminal escapes"], 8
        progress(f"{len(inputs)} inputs, and pages of the dashboard")
        with ThreadPoolExecutor(options.j) as pool:
            outcomes = tell(pool.map(partial(attempt, template=template), inputs), len(inputs))
        if not options.only or options.only in "dashboard":
            progress("pages of the dashboard")
            outcomes += tell(dashboard_outcomes(template, kinds, most), len(kinds) * most)
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
