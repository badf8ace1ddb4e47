"""Stores and directories that are hostile in one way each.

Used by hostile.py. Tables and columns are read from the store itself, so that a new schema is
attacked as a whole without any change here. Everything random follows a seed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_runs import SWARMTEST

from swarmtest.store import open_store

STORE = "s.db"
MACHINE = """
from swarmtest import Machine, action, integers

class Disk(Machine):
    steps = 20
    def start(self): self.n = 0
    @action(value=integers(0, 9))
    def write(self, value):
        self.n += 1
        if self.n > 6: raise RuntimeError("too large")
    @action
    def sync(self):
        if self.n > 3: self.event("flushed")
        self.n = 0
    @action
    def stat(self):
        assert self.n != 5, "no stat of five"
"""
SPACE = """
[dimensions]
level = { kind = "choice", values = ["low", "high"] }
sellers = { kind = "integer", low = 1, high = 4 }
test = { kind = "test", values = ["sell"] }
[tests.sell]
run = "air.py::sell"
repeat = { runs = 2 }
[coverage]
kinds = "line"
cover = ["air.py"]
"""
SELL = """
def sell(level, sellers):
    assert not (level == "high" and sellers == 3), "oversold"
    return {"sold": sellers * (level == "high")}
"""
RACE = """
import threading

class Counter:
    value = 0
    def add(self):
        value = self.value
        self.value = value + 1

def count():
    counter = Counter()
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert counter.value == 2, counter.value
"""
TASKS = """
import asyncio

class Pages:
    found = ()

async def page(pages, delay):
    known = pages.found
    await asyncio.sleep(delay)
    pages.found = (*known, delay)

async def crawl():
    pages = Pages()
    await asyncio.gather(page(pages, 0.02), page(pages, 0.01))
    assert len(pages.found) == 2, pages.found

def crawled():
    asyncio.run(crawl())
"""
RING = """
class Ring:
    def __init__(self): self.items = []
    def append(self, item):
        assert len(self.items) < 6
        self.items.append(item)
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
"""
WORDS = """
from swarmtest import generator

def check(lines):
    assert sum(map(len, lines)) < 40, lines
    return ["checked"]

@generator(features=["long", "short"], run=check)
def words(rng, features) -> list[str]:
    return [rng.choice("xyz") * (9 if "long" in features else 1) for _ in range(6)]
"""
PROGRAM = """
[build]
command = "cp prog.sh prog"
sources = ["prog.sh"]
output = "prog"
seconds = 20
[generate]
command = "sh {here}/gen.sh {seed} {features}"
[features]
low = { off = "--no-low" }
high = { off = "--no-high" }
[settings]
level = ["one", "two"]
[[steps]]
name = "prog"
run = ["sh", "-c", ": {setting:level}; sh {here}/prog {test}"]
[oracle]
patterns = [{ name = "assertion", regex = 'AssertionError: (?P<what>.*)' }]
"""
GENERATOR = "echo $(( $1 % 10 )) $2 $3\n"
PROGRAM_FILE = """
read number rest < "$1"
if [ "$number" -gt 7 ]; then echo "AssertionError: $number $rest" >&2; exit 3; fi
"""
RULES = """
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

class Rules(RuleBasedStateMachine):
    n = 0
    @rule(x=st.integers(0, 9))
    def add(self, x):
        self.n += x
        assert self.n < 60
"""
USE = "from ring import Ring\nring = Ring()\nfor item in (1, 2): ring.append(item)\n"
LCOV = "TN:\nSF:disk.py\nDA:4,1\nDA:5,0\nend_of_record\n"
TEXTS = {
    "terminal escapes": "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f{}\r\n\x08",
    "formulas": "=cmd|' /C calc'!A0{}",
    "formulas behind a space": " @SUM(1){}\t=1",
    "HTML": "</script></title>'\"><img src=x onerror=owned()>{}<a href='javascript:owned()'>",
    "very long": "{}" + "Ж long " * 700,
    "NUL": "a\0{}\0b",
    "surrogates": "\udcff{}\ud800",
    "bidi": "\u202e{}\u2066\u200f\u2028",
    "markup of our own tables": "[bold red]{}[/] [link=file:///etc/passwd]x[/link] {{7*7}} %(x)s",
}
"""Texts with a place for the text that was there."""
_WORDS = {
    "status", "kind", "seed", "missing", "origin", "format", "fitness", "keep", "combine", "kinds",
    "probes", "memory", "part", "machine", "python", "id", "fault", "criterion",
}  # fmt: skip
"""Columns and keys that hold one of a few words: with another one, a store is refused early."""
VALUES: dict[str, object] = {
    "broken JSON": '{"\x01',
    "a list": "[1]",
    "an object": '{"a": {"b": null}}',
    "deep JSON": "[" * 100_000,
    "deep closed JSON": "[" * 2_000 + "]" * 2_000,
    "a number of 5,000 digits": "1" * 5_000,
    "numbers that are none": '{"dimensions": [NaN, Infinity, 1e999]}',
    "bytes": b"\x07\xff\x00",
    "a huge bitmap": b"\x3b\x30\xff\xff" + b"\xff" * 60,
    "no bytes": b"",
    "a large number": 2**62,
    "a negative number": -7,
    "a fraction": -1.5e300,
    "nothing": None,
    "no text": "",
}


def write_files(place: Path) -> None:
    """Write the programs of an ordinary user."""
    (place / "disk.py").write_text(MACHINE)
    (place / "air.toml").write_text(SPACE)
    (place / "air.py").write_text(SELL)
    (place / "counter.py").write_text(RACE)
    (place / "cov.info").write_text(LCOV)
    (place / "tasks.py").write_text(TASKS)
    (place / "ring.py").write_text(RING)
    (place / "words.py").write_text(WORDS)
    (place / "prog.toml").write_text(PROGRAM)
    (place / "rules.py").write_text(RULES)
    (place / "good.py").write_text(USE)
    (place / "good.c").write_text("int main(void) { return 0; }\n")
    (place / "gen.sh").write_text(GENERATOR)
    (place / "prog.sh").write_text(PROGRAM_FILE)
    for version in ("1.0", "1.1"):
        write_wheel(place, version, RING if version == "1.0" else RING.replace("< 6", "< 4"))


def write_wheel(place: Path, version: str, code: str | bytes) -> None:
    """Write a wheel of a release of a package ``ringware``, as `diff` installs it."""
    info = f"ringware-{version}.dist-info"
    texts = {
        "ringware.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: ringware\nVersion: {version}\n",
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(place / f"ringware-{version}-py3-none-any.whl", "w") as file:
        for name, text in texts.items():
            file.writestr(name, text)


CAMPAIGNS = [
    "run disk.py -s coin -n 200 --coverage line,branch --cover disk.py --keep-tests",
    "run disk.py -s all-on -n 200 --coverage line,branch --cover disk.py --keep-tests",
    "search run air.toml",
    "race counter.py::count -n 30 --control --timeout 60s",
    "import-coverage cov.info",
    "run ring.py::Ring --like list -n 60",
    "run words.py -n 100 --keep-tests",
    "run prog.toml -n 60",
    "race tasks.py::crawled -n 20 --control --timeout 60s",
    "run rules.py -n 20 --keep-tests",
]
"""The campaigns of the store, by number from 1 on."""
DECIDED = [
    "faults --merge FAULT OTHER",
    "faults --mark known --note a,note FAULT",
    "why FAULT",
]
"""What a person decided about the two faults of campaign 1."""


def make_template(place: Path) -> None:
    """Make the directory of an ordinary user: programs, a store, a saved test and a suite."""
    write_files(place)
    for words in CAMPAIGNS:
        workers = [] if words.startswith(("import", "search")) else ["-j", "1", "-q"]
        command = [*SWARMTEST, *words.split(), *workers, "--store", STORE]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
    saved = [*SWARMTEST, "replay", "1#3", "--no-run", "--save", "saved.json", "--store", STORE]
    subprocess.run(saved, cwd=place, check=True, capture_output=True)
    with open_store(str(place / STORE), read_only=True) as campaigns:
        fault, other = (each.id for each in campaigns.faults(1))
        kept = next(iter(campaigns.tests(1))).trial
    (place / "names").write_text(f"{fault} 1#{kept}")
    for words in DECIDED:
        named = [{"FAULT": fault, "OTHER": other}.get(word, word) for word in words.split()]
        command = [*SWARMTEST, *named, "--store", STORE]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
    store = sqlite3.connect(place / STORE)
    store.execute("PRAGMA journal_mode = DELETE")  # one file, so that damage is where it counts
    store.close()


def copy_directory(template: Path, place: Path) -> None:
    """Copy the directory of a user, so that it can be spoilt."""
    shutil.copytree(template, place)


# Columns.


def columns(path: Path) -> list[tuple[str, str]]:
    """Return every table and column of a store, as the store itself lists them."""
    with sqlite3.connect(path) as store:
        tables = [
            name
            for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        ]
        found = [
            (table, row[1])
            for table in sorted(tables)
            for row in store.execute(f'PRAGMA table_info("{table}")')
        ]
    store.close()
    return found


def _sql_text(text: str) -> bytes:
    """Return the bytes that SQLite takes for a text; surrogates too, which are not UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def spoil_texts(
    path: Path, template: str, *, inside: bool, only: tuple[str, str] | None = None
) -> None:
    """Put hostile text into every column that holds text, or into one.

    With `inside`, data in JSON stays readable: only the texts in it become hostile.
    """

    def spoilt(value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return value
        return _sql_text(_inside(value, template) if inside else template.replace("{}", value))

    with sqlite3.connect(path) as store:
        store.execute("PRAGMA ignore_check_constraints = ON")
        store.create_function("spoilt", 1, spoilt, deterministic=True)
        for table, column in [only] if only else columns(path):
            if inside and column in _WORDS:
                continue
            store.execute(
                f'UPDATE OR IGNORE "{table}" SET "{column}" = CAST(spoilt("{column}") AS TEXT) '
                f"WHERE typeof(\"{column}\") = 'text'"
            )
    store.close()


def _inside(text: str, template: str) -> str:
    if text[:1] not in "{[":
        return template.replace("{}", text)
    return json.dumps(_spoilt_data(json.loads(text), template))


def _spoilt_data(data: Any, template: str) -> Any:
    if isinstance(data, dict):
        return {
            key: value if key in _WORDS else _spoilt_data(value, template)
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [_spoilt_data(item, template) for item in data]
    return template.replace("{}", data) if isinstance(data, str) else data


def set_column(path: Path, table: str, column: str, value: object) -> None:
    """Write a value into a column, in every row, as a damaged page might show it."""
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA ignore_check_constraints = ON")
        with contextlib.suppress(sqlite3.Error):  # a key: the file itself would refuse it
            store.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (value,))
    store.close()


# Bytes.


def flip_byte(path: Path, seed: int) -> None:
    """Flip one bit of one byte that is not zero: with odd seeds anywhere, else at the beginning."""
    data = bytearray(path.read_bytes())
    chosen = random.Random(seed)
    places = [at for at, byte in enumerate(data) if byte and (seed % 2 or at < 40_000)]
    data[chosen.choice(places)] ^= 1 << chosen.randrange(8)
    path.write_bytes(data)


def overwrite(path: Path, start: int, data: bytes) -> None:
    """Replace bytes of a file."""
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(data)


def run_sql(path: Path, *statements: str) -> None:
    """Change a store with statements of an attacker."""
    with sqlite3.connect(path) as store:
        for statement in statements:
            store.execute(statement)
    store.close()


def _replaced(path: Path) -> Path:
    path.unlink()
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no bytes at all": lambda path: path.write_bytes(b""),
    "half of the file": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one page": lambda path: os.truncate(path, 16384),
    "less than a header": lambda path: os.truncate(path, 50),
    "all but the last byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "a text file": lambda path: path.write_text("this is no store\n" * 1000),
    "a directory": lambda path: _replaced(path).mkdir(),
    "a header of zeros": lambda path: overwrite(path, 0, bytes(100)),
    "a header of ones": lambda path: overwrite(path, 0, b"\xff" * 100),
    "a wrong magic": lambda path: overwrite(path, 0, b"SQLite format 4\0"),
    "a page size of 1": lambda path: overwrite(path, 16, b"\x00\x03"),
    "another page size": lambda path: overwrite(path, 16, b"\x02\x00"),
    "reserved bytes": lambda path: overwrite(path, 20, b"\xf0"),
    "a format of the future": lambda path: overwrite(path, 18, b"\x09\x09"),
    "an encoding that does not exist": lambda path: overwrite(path, 56, b"\x00\x00\x00\x09"),
    "UTF-16": lambda path: overwrite(path, 56, b"\x00\x00\x00\x02"),
    "a negative user_version": lambda path: run_sql(path, "PRAGMA user_version = -5"),
    "a user_version of 2": lambda path: run_sql(path, "PRAGMA user_version = 2"),
    "a user_version of the future": lambda path: run_sql(path, "PRAGMA user_version = 999"),
    "another application": lambda path: run_sql(path, "PRAGMA application_id = 7"),
    "a damaged schema": lambda path: run_sql(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE x(' WHERE type = 'table'",
    ),
    "a trigger": lambda path: run_sql(
        path,
        "CREATE TRIGGER evil AFTER INSERT ON campaigns BEGIN DELETE FROM campaigns; END",
        "CREATE VIEW look AS SELECT load_extension('evil.so')",
    ),
    "a foreign -wal file": lambda path: path.with_name(path.name + "-wal").write_bytes(
        b"\x37\x7f\x06\x82" + os.urandom(8000)
    ),
    "a hot journal": lambda path: path.with_name(path.name + "-journal").write_bytes(
        b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff" * 4000
    ),
    "a loop of links": lambda path: _replaced(path).symlink_to(path.name),
    "a pipe": lambda path: os.mkfifo(_replaced(path)),
    "a device": lambda path: _replaced(path).symlink_to("/dev/zero"),
}  # fmt: skip
"""What can have happened to the file of a store."""


# Payloads: each creates a file, and `executed` counts these.


def marker(place: Path, name: str) -> str:
    """Return the path of the file that a payload creates."""
    return str(place.parent / "markers" / name)


class _Payload:
    """A pickle that creates a file when it is read."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self._path,)


def evil_program(place: Path, name: str) -> str:
    """Return a program that creates a file when it is imported, and then is a subject."""
    return f"import os; os.makedirs({marker(place, name)!r}, exist_ok=True)\n" + MACHINE


def payload_arguments(place: Path, name: str) -> list[Any]:
    pickled = base64.b64encode(pickle.dumps(_Payload(marker(place, name)))).decode()
    return [{"$pickle": pickled, "repr": "<Cart>"}]


def pickle_tests(place: Path) -> None:
    """Put pickles into every stored test, as an earlier version wrote them."""
    spoil_tests(place, lambda: payload_arguments(place, "pickle"))


def name_functions(place: Path, name: str) -> None:
    """Let every stored test name a function as its argument, such as one that runs commands."""
    spoil_tests(place, lambda: [{"$name": name}])


def spoil_tests(place: Path, arguments: Callable[[], list[Any]]) -> None:
    """Replace the arguments of the steps of all stored tests."""

    def spoilt(text: Any) -> Any:
        if not isinstance(text, str) or '"steps"' not in text:
            return text
        test = json.loads(text)
        for step in test["steps"] if isinstance(test.get("steps"), list) else []:
            if isinstance(step, list) and len(step) > 1 and step[1]:
                step[1] = arguments()
        return json.dumps(test)

    path = place / STORE
    with sqlite3.connect(path) as store:
        store.create_function("spoilt", 1, spoilt)
        for table, column in columns(path):
            if column == "code":
                store.execute(f"UPDATE \"{table}\" SET code = ''")
            else:
                store.execute(
                    f'UPDATE OR IGNORE "{table}" SET "{column}" = spoilt("{column}") '
                    f"WHERE typeof(\"{column}\") = 'text'"
                )
    store.close()
    saved = place / "saved.json"
    saved.write_text(str(spoilt(saved.read_text())))


def name_code(place: Path, column: str, value: str) -> None:
    """Let the store name a file with code; every program of the directory has a payload."""
    for program in ("disk", "air", "counter", "evil"):
        (place / f"{program}.py").write_text(evil_program(place, program))
    (place / "conftest.py").write_text(evil_program(place, "conftest"))
    (place / "sitecustomize.py").write_text(evil_program(place, "sitecustomize"))
    if column:
        set_column(place / STORE, "campaigns", column, value)


def name_everything(place: Path) -> None:
    """Let every text of the campaigns' options name a file with code."""
    name_code(place, "", "")

    def spoilt(text: str) -> str:
        data = json.loads(text)
        for key in ("executor", "engine", "oracle", "strategy", "subject", "base", "plugin"):
            data[key] = "evil.py:Evil"
        return json.dumps(data)

    with sqlite3.connect(place / STORE) as store:
        store.create_function("spoilt", 1, spoilt)
        store.execute("UPDATE campaigns SET options = spoilt(options), subject = 'evil.py::Evil'")
    store.close()
