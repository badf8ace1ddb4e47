"""A machine's test is a value: it prints as code that runs, saves as JSON, replays, and can lose
steps."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarmtest import (
    Machine,
    Pool,
    Verdict,
    action,
    consumes,
    integers,
    invariant,
    lists,
    sampled_from,
    tuples,
)
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects import MachineSubject, MachineTest

HEAD = """
import enum
import math
from collections import namedtuple
from dataclasses import dataclass
from swarmtest import *
"""
PROGRAMS = {
    "exception": """
        class M(Machine):
            @action(value=integers(0, 9))
            def go(self, value):
                if value == 3: raise OverflowError(value)
            @action
            def rest(self): ...
    """,
    "invariant": """
        class M(Machine):
            def start(self): self.n = 0
            @action(by=integers(1, 3))
            def grow(self, by): self.n += by
            @invariant
            def small(self): assert self.n < 20, "too large"
    """,
    "invariant that returns False": """
        class M(Machine):
            def start(self): self.n = 0
            @action
            def grow(self): self.n += 1
            @invariant
            def small(self): return self.n < 20
    """,
    "expected exceptions": """
        class Refused(Exception): ...
        class M(Machine):
            def start(self): self.n = 0
            @action(raises=(Refused, KeyError))
            def grow(self):
                self.n += 1
                if self.n % 3 == 0: raise Refused
                if self.n % 5 == 0: raise KeyError
                if self.n > 30: raise ZeroDivisionError
    """,
    "a subclass of an expected exception": """
        class M(Machine):
            def start(self): self.n = 0
            @action(raises=LookupError)
            def grow(self):
                self.n += 1
                if self.n % 3 == 0: raise KeyError
                if self.n > 30: raise ZeroDivisionError
    """,
    "an exception of another module": """
        import json
        class M(Machine):
            def start(self): self.n = 0
            @action(raises=json.JSONDecodeError)
            def grow(self):
                self.n += 1
                if self.n > 30: raise ZeroDivisionError
                json.loads("{")
    """,
    "an exception inside a class": """
        class Outer:
            class Refused(Exception): ...
        class M(Machine):
            def start(self): self.n = 0
            @action(raises=Outer.Refused)
            def grow(self):
                self.n += 1
                if self.n > 30: raise ZeroDivisionError
                raise Outer.Refused
    """,
    "pools": """
        class M(Machine):
            files = Pool()
            @action(into=files)
            def open(self): return [0]
            @action(file=files, raises=ValueError)
            def write(self, file):
                file[0] += 1
                if file[0] == 2: raise ValueError
                if file[0] == 4: raise OSError("disk full")
            @action(one=consumes(files), other=consumes(files))
            def join(self, one, other): ...
    """,
    "settings": """
        class M(Machine):
            dimensions = [Choice("level", ("low", "high")), Integer("size", 1, 5), Flag("sync")]
            def start(self): self.level, self.size = self.settings["level"], self.settings["size"]
            @action
            def go(self): raise OSError(self.level, self.size, self.settings["sync"])
    """,
    "stop fails": """
        class M(Machine):
            def start(self): self.n = 0
            @action
            def go(self): self.n += 1
            def stop(self): raise TimeoutError(self.n)
    """,
    "keyword-only and positional-only": """
        class M(Machine):
            @action(a=integers(1, 1), b=integers(2, 2), c=integers(3, 3))
            def go(self, a, /, b, *, c):
                assert (a, b, c) == (1, 2, 3)
                raise OSError
    """,
    "nested machine": """
        class Outer:
            class M(Machine):
                @action
                def go(self): raise OSError
    """,
}
ARGUMENTS = {
    "bytes": "lambda rng: b'a\\x00\\xff'",
    "tuple": "lambda rng: (1, ('a', None), ())",
    "set": "lambda rng: {1, 'a', (2, 3)}",
    "empty set": "lambda rng: set()",
    "frozenset": "lambda rng: frozenset([1, 2])",
    "dict": "lambda rng: {1: 'a', (1, 2): {'$x': [1.5]}}",
    "string": "lambda rng: 'a\\n\\'\"\\u2028\\x00é'",
    "surrogate": "lambda rng: '\\ud800'",
    "nan": "lambda rng: math.nan",
    "infinity": "lambda rng: -math.inf",
    "nan in a list": "lambda rng: [math.nan, math.inf]",
    "large integer": "lambda rng: 10 ** 40",
    "complex": "lambda rng: 1 + 2j",
    "enum": "lambda rng: Colour.RED",
    "enum in a list": "lambda rng: [Colour.RED]",
    "integer enum": "lambda rng: Number.ONE",
    "dataclass": "lambda rng: Point(1, 'a')",
    "named tuple": "lambda rng: Pair(1, 2)",
    "plain object": "lambda rng: Plain(3)",
    "class": "lambda rng: Plain",
    "function": "lambda rng: helper",
    "bytearray": "lambda rng: bytearray(b'ab')",
    "range": "lambda rng: range(3)",
    "string subclass": "lambda rng: Text('abc')",
}
TYPES = """
class Colour(enum.Enum):
    RED = 1
class Number(enum.IntEnum):
    ONE = 1
@dataclass
class Point:
    x: int
    y: str
Pair = namedtuple("Pair", "a b")
class Text(str): ...
class Plain:
    def __init__(self, n): self.n = n
    def __eq__(self, other): return type(other) is Plain and other.n == self.n
def helper(): ...
def same(a, b):
    if isinstance(a, float) and math.isnan(a): return isinstance(b, float) and math.isnan(b)
    if isinstance(a, list): return len(a) == len(b) and all(map(same, a, b))
    return a == b and type(a) is type(b)
"""


def write_program(place, name, code):
    (place / f"{name}.py").write_text(HEAD + textwrap.dedent(code))
    return f"{place}/{name}.py"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A machine from source code, in a module of its own."""
    name = f"program_{tmp_path.name}"

    def make(code):
        monkeypatch.syspath_prepend(str(tmp_path))
        return MachineSubject(load_object(write_program(tmp_path, name, code) + ":M", "machine"))

    yield make
    sys.modules.pop(name, None)


DRIVER = """
import json, runpy, sys
for name in sys.argv[1:]:
    try:
        runpy.run_path(name, run_name="__main__")
        print(json.dumps([name, "", ""]))
    except BaseException as error:
        print(json.dumps([name, type(error).__name__, ascii(error)]))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Every program with its first failing test, and how the printed code ended by itself."""
    place = tmp_path_factory.mktemp("programs")
    sys.path.insert(0, str(place))
    codes = {f"program {name}": code for name, code in PROGRAMS.items()}
    codes |= {f"argument {kind}": machine_with(kind) for kind in ARGUMENTS}
    found, files = {}, {}
    for number, (name, code) in enumerate(codes.items()):
        path = write_program(place, f"value_program_{number}", code)
        member = "Outer.M" if "nested machine" in name else "M"
        subject = MachineSubject(load_object(f"{path}:{member}", "machine"))
        result = first_failure(subject)
        printed = subject.code(result.test)
        files[f"printed_{number}.py"] = name
        (place / f"printed_{number}.py").write_text(printed, errors="surrogatepass")
        found[name] = [subject, result, printed]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *files], cwd=place, capture_output=True, timeout=60
    )
    for line in done.stdout.decode().splitlines():
        file, kind, text = json.loads(line)
        found[files[file]] += [kind, text]
    sys.path.remove(str(place))
    return found


def first_failure(subject):
    for seed in range(200):
        result = subject.execute(subject.space.default(), seed)
        if result.fault:
            return result
    raise AssertionError("no test fails")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_printed_code_runs_by_itself_and_fails_alike(program, programs):
    _, result, printed, kind, text = programs[f"program {program}"]
    expected = result.fault.signature.split()[0].rstrip(":")
    if result.fault.kind == "invariant":
        expected = "AssertionError"
    assert kind == expected, (text, printed)


def test_the_printed_code_needs_no_other_program_to_run_it(programs, tmp_path):
    subject, _, printed, *_ = programs["program exception"]
    (tmp_path / "printed.py").write_text(printed)
    done = subprocess.run(
        [sys.executable, "printed.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(inspect.getfile(subject.machine)).parent),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("OverflowError")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_saved_test_replays_to_the_same_fault(program, programs):
    subject, result, *_ = programs[f"program {program}"]
    again = subject.replay(json.loads(json.dumps(result.test)))
    assert again.fault == result.fault
    assert (again.steps, again.skipped, again.used) == (result.steps, 0, result.used)


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_argument_of_this_kind_comes_back_when_replayed(kind, programs):
    subject, result, *_ = programs[f"argument {kind}"]
    assert result.fault.signature.startswith("OSError"), result.fault.details
    again = subject.replay(json.loads(json.dumps(result.test)))
    assert again.fault == result.fault, again.fault.details


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_argument_of_this_kind_prints_as_code_that_runs(kind, programs):
    *_, printed, ended, text = programs[f"argument {kind}"]
    assert ended == "OSError", (text, printed)


def machine_with(kind):
    return TYPES + textwrap.dedent(f"""
        draw = {ARGUMENTS[kind]}
        class M(Machine):
            @action(value=draw)
            def go(self, value):
                if same(value, draw(None)): raise OSError
                raise TypeError(repr(value))
    """)


def test_an_argument_that_cannot_be_saved_does_not_keep_the_test_from_being_printed(load):
    subject = load("""
        class M(Machine):
            @action(f=lambda rng: lambda: 1)
            def go(self, f): raise OSError
    """)
    result = first_failure(subject)
    assert "machine.go(" in subject.code(result.test)


def test_a_mutable_argument_is_recorded_as_it_was_when_drawn(load):
    subject = load("""
        class M(Machine):
            @action(values=lists(integers(5, 5), max_size=3), pair=lambda rng: ([1], {"a": [2]}))
            def go(self, values, pair):
                given = len(values)
                values.clear()
                pair[0].append(9)
                pair[1]["a"].append(9)
                if given == 3: raise OSError
    """)
    result = first_failure(subject)
    *_, (name, arguments) = result.test["steps"]
    assert name == "go"
    assert arguments == [[5, 5, 5], {"$tuple": [[1], {"a": [2]}]}]
    assert subject.replay(result.test).fault == result.fault


def test_arguments_come_from_hypothesis_and_from_plain_functions(load):
    subject = load("""
        from hypothesis import strategies as st
        class M(Machine):
            @action(
                a=st.integers(0, 5),
                b=st.lists(st.text(max_size=2), min_size=1),
                c=lambda rng: rng.choice("xyz"),
                d=st.builds(complex, st.floats(0, 1)),
            )
            def go(self, a, b, c, d):
                assert 0 <= a <= 5 and b and c in "xyz" and type(d) is complex
                if a == 3: raise OSError
    """)
    result = first_failure(subject)
    assert result.fault.signature.startswith("OSError"), result.fault.details
    assert subject.replay(json.loads(json.dumps(result.test))).fault == result.fault
    same = subject.execute(subject.space.default(), 0)
    assert same.used == subject.execute(subject.space.default(), 0).used


class Files(Machine):
    """Something with every kind of dependency between steps."""

    steps = (5, 40)
    files = Pool()
    marks = Pool()

    def start(self):
        self.bytes = 0

    @action(into=files, size=integers(0, 3))
    def open(self, size):
        self.bytes += size
        return [size]

    @action(file=files, data=lists(integers(0, 9), max_size=3), raises=BufferError)
    def write(self, file, data):
        file += data
        self.bytes += len(data)
        if len(file) > 7:
            raise BufferError
        if file[1:3] == [4, 2]:
            raise OSError(file[0])

    @action(file=consumes(files), into=marks, when=lambda self: self.bytes > 3)
    def close(self, file):
        return tuple(file) or None

    @action(one=consumes(files), other=consumes(files), mark=marks, into=files)
    def join(self, one, other, mark):
        return [*one, *other]

    @action(choice=tuples(sampled_from("ab"), integers(0, 1)))
    def choose(self, choice):
        assert type(choice) is tuple

    @invariant
    def bounded(self):
        return self.bytes < 40


FILES = MachineSubject(Files)
QUIET = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@QUIET
@given(st.integers(0, 2**63 - 1), st.sets(st.sampled_from(FILES.space.feature_names), min_size=1))
def test_a_random_test_survives_json_and_replays_alike(seed, features):
    configuration = FILES.space.configuration(features)
    result = FILES.execute(configuration, seed)
    test = FILES.test_of(configuration, seed)
    data = json.loads(json.dumps(test))
    assert MachineTest.from_json(data) == MachineTest.from_json(test)
    again = FILES.replay(data)
    assert (again.verdict, again.fault, again.used, again.hits, again.steps, again.skipped) == (
        (result.verdict, result.fault, result.used, result.hits, result.steps, 0)
    )
    if result.fault:
        assert result.test == test


@QUIET
@given(st.data(), st.integers(0, 2**63 - 1))
def test_a_test_without_some_of_its_steps_still_runs(data, seed):
    test = MachineTest.from_json(FILES.test_of(FILES.space.default(), seed))
    removed = data.draw(st.sets(st.integers(0, max(len(test) - 1, 0))))
    shorter = test.without(removed)
    assert len(shorter) == len(test) - len([i for i in removed if i < len(test)])
    result = FILES.replay(shorter.to_json())
    known = ("OSError", "invariant bounded")
    assert result.fault is None or result.fault.signature.startswith(known), result.fault
    if result.verdict == Verdict.PASSED:
        assert result.steps + result.skipped == len(shorter)
    assert sum(result.used) == result.steps


def test_a_step_whose_value_or_guard_is_gone_is_skipped_and_counted():
    test = {
        "format": "swarmtest machine test 1",
        "subject": "",
        "steps": [
            ["write", [{"$ref": 1}, [1]]],
            ["open", [1], 2, ""],
            ["close", [{"$ref": 2}], 3, ""],
            ["write", [{"$ref": 2}, [1]]],
        ],
    }
    result = FILES.replay(test)
    assert (result.verdict, result.steps, result.skipped) == (Verdict.PASSED, 2, 2)


def test_printed_code_of_a_shortened_test_is_still_code(tmp_path):
    for seed in range(40):
        test = MachineTest.from_json(FILES.test_of(FILES.space.default(), seed))
        shorter = test.without(range(0, len(test), 3))
        compile(FILES.code(shorter.to_json()), "printed", "exec")


def test_the_same_seed_gives_the_same_test():
    for seed in (0, 1, 2**62):
        default = FILES.space.default()
        assert FILES.test_of(default, seed) == FILES.test_of(default, seed)


def test_the_example_prints_the_test_that_the_readme_promises():
    example = Path(__file__).parents[2] / "examples" / "stack.py"
    subject = MachineSubject(load_object(f"{example}:StackMachine", "machine"))
    result = subject.execute(subject.space.configuration(["push"]), 1)
    assert result.steps == 33
    assert subject.code(result.test).count("machine.push(") == 33
