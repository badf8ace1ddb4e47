"""`--api`: a machine from any class, by its public methods and type hints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from swarmtest import UserError
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.api import api_machine
from swarmtest.subjects.api_trial_calls import never_accepted, trial_calls
from swarmtest.subjects.loading import SubjectReference

CODE = '''
import enum
import subprocess
from collections import UserDict
from typing import Any, Literal, Optional, Self


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class BagError(Exception):
    """The class's own way to say no."""


class Bag:
    """Every kind of parameter; it fails when it holds more than nine things."""

    seen = []

    def __init__(self):
        self.items = []

    def _hidden(self): raise SystemError
    @staticmethod
    def static(): raise SystemError
    @property
    def size(self): raise SystemError

    def note(self, name, value, kinds):
        assert isinstance(value, kinds), (name, value)
        type(self).seen.append(name)
    def take_int(self, n: int): self.note("int", n, int)
    def take_str(self, s: str): self.note("str", s, str)
    def take_list(self, values: list[str]):
        self.note("list", values, list)
        assert all(isinstance(v, str) for v in values)
    def take_optional(self, value: Optional[int]): self.note("optional", value, (int, type(None)))
    def take_union(self, value: "bytes | None" = None):
        self.note("union", value, (bytes, type(None)))
    def take_literal(self, mode: Literal["r", "w"]):
        self.note("literal", mode, str)
        assert mode in ("r", "w")
    def take_enum(self, colour: Colour): self.note("enum", colour, Colour)
    def take_self(self, other: Self): self.note("self", other, Bag)
    def take_own(self, other: "Bag"): self.note("own", other, Bag)
    def take_dict(self, values: dict[str, int]): self.note("dict", values, dict)
    def take_tuple(self, pair: tuple[int, str]): self.note("tuple", pair, tuple)
    def take_default(self, n=3): self.note("default", n, int)
    def take_keyword(self, *, n: int): self.note("keyword", n, int)
    def take_positional(self, n: int, /): self.note("positional", n, int)
    def refuse(self): raise BagError
    def bad_value(self): raise ValueError

    def __len__(self):
        self.note("len", 0, int)
        return len(self.items)
    def __contains__(self, item: int):
        self.note("contains", item, int)
        return item in self.items
    def __getitem__(self, at: int):
        self.note("getitem", at, int)
        return self.items[at]
    def __setitem__(self, at: int, value: str):
        self.note("setitem", value, str)
        self.items[at] = value
    def __delitem__(self, at: int):
        self.note("delitem", at, int)
        del self.items[at]
    def __iter__(self):
        self.note("iter", 0, int)
        return iter(self.items)
Bag.note = Bag.note  # found, but `kinds` has no hint


class Bounded:
    def __init__(self, capacity: int, name: str, *rest, colour: Colour = Colour.RED):
        self.made = (capacity, name)
        assert isinstance(capacity, int) and isinstance(name, str)
        self.n = 0
    def grow(self, by: Literal[1, 2], colour: Colour = Colour.RED):
        self.n += by
        if self.n > 20: raise OverflowError
    def shrink(self): self.n = max(0, self.n - 1)


class Keyword:
    def __init__(self, *, size: int): self.size = size
    def go(self): assert isinstance(self.size, int)


class Needs:
    def __init__(self, connection: "Connection"): ...
    def go(self): ...
class Connection: ...


class Nothing:
    attribute = 3
    def _private(self): ...


class Positional:
    """Parameters that have no keyword, as those of built-in types."""
    def __init__(self): self.n = 0
    def add(self, value: int, /):
        self.n += 1
        if self.n == 5: raise OverflowError


class Cell(UserDict):
    def __setitem__(self, key: int, value: int):
        if len(self.data) == 4: raise OverflowError
        self.data[key % 10] = value


class ShopError(Exception): ...


class Refusing:
    """Every way to say that a call was wrong, and the faults that look like them."""

    def __init__(self): self.values = {}
    def own(self, n: int): raise ShopError
    def on_purpose(self, n: int): raise RuntimeError("closed")
    def of_a_library(self, n: int): raise subprocess.SubprocessError("not there")
    def documented(self, n: int):
        """Raise OverflowError if n is too large."""
        raise OverflowError
    def of_the_wrong_kind(self, n): return n.lower()
    def asserts_its_argument(self, n: int): assert n < -10**9
    def accepted(self, n: int): return n
    same = accepted


class Faulty:
    def __init__(self): self.first = None
    def broken_link(self, n: int): return self.first.next
    def missing_attribute(self, n: int): return self.lats
    def changed_size(self, n: int):
        values = {1: 2}
        for key in values: values[key + 1] = n
    def asserts_its_state(self, n: int): assert self.first is not None
    def unbound(self, n: int):
        if n < -10**9: found = n
        return found


class Chained:
    def __init__(self, n: int = 0): self.n = n
    def more(self, by: int) -> "Chained":
        assert self.n < 3, "deep"
        return Chained(self.n + 1)


class Typed:
    def documented(self, n, name):
        """Do it.

        :type n: int
        :param str name: a text
        """
        assert isinstance(name, str) and isinstance(n, int)
        self.seen = True
    def constant(self, code: int):
        if code == 4711: raise OverflowError


class Files:
    def write(self, name: str):
        open(name or "x", "w").close()


class Endless:
    def __init__(self): self.n = 0
    def __iter__(self):
        while True: yield 1
    def go(self):
        self.n += 1
        if self.n == 3: raise OverflowError
'''


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
runpy.run_path("printed.py")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("api")
    (place / "bag_under_test.py").write_text(CODE)
    sys.path.insert(0, str(place))
    yield place
    sys.path.remove(str(place))
    sys.modules.pop("bag_under_test", None)


@pytest.fixture(scope="module")
def subject_of(place):
    def make(name):
        cls = load_object(f"{place}/bag_under_test.py:{name}", "class")
        return MachineSubject(api_machine(cls))

    return make


def first_failure(subject):
    for seed in range(100):
        result = subject.execute(subject.space.default(), seed)
        if result.fault:
            return result
    raise AssertionError("no test fails")


@pytest.fixture(scope="module")
def bag(subject_of):
    subject = subject_of("Bag")
    faults = set()
    for seed in range(30):
        result = subject.execute(subject.space.default(), seed)
        if result.fault:
            faults.add(result.fault.signature)
    return subject, faults


@pytest.mark.parametrize(
    "kind",
    [
        "int",
        "str",
        "list",
        "optional",
        "union",
        "literal",
        "enum",
        "self",
        "own",
        "dict",
        "tuple",
        "default",
        "keyword",
        "positional",
        "len",
        "contains",
        "getitem",
        "setitem",
        "delitem",
        "iter",
    ],
)
def test_a_parameter_of_this_kind_gets_fitting_values(kind, bag):
    subject, _ = bag
    assert kind in subject.machine._swarmtest_api[0].seen


def test_nothing_fails_that_the_class_does_not_call_a_failure(bag):
    assert bag[1] <= {s for s in bag[1] if "note" in s}, bag[1]


def test_private_static_and_computed_members_are_no_actions(bag):
    names = bag[0].space.feature_names
    assert not {"_hidden", "static", "size"} & set(names)


def test_a_class_with_required_constructor_arguments_is_made(subject_of):
    result = first_failure(subject_of("Bounded"))
    assert result.fault.signature.startswith("OverflowError")


def test_a_class_with_required_keyword_arguments_is_made(subject_of):
    subject = subject_of("Keyword")
    assert subject.execute(subject.space.default(), 1).fault is None


def test_a_class_that_cannot_be_made_is_refused(subject_of):
    with pytest.raises(UserError, match="connection"):
        subject_of("Needs")


def test_a_class_without_usable_methods_is_refused(subject_of):
    with pytest.raises(UserError, match="no public method"):
        subject_of("Nothing")


@pytest.mark.parametrize("how", [{"api": True}, {"like": "list"}])
def test_a_class_that_cannot_be_looked_at_is_refused(how, tmp_path):
    (tmp_path / "guarded.py").write_text(
        "class Meta(type):\n"
        "    def __getattribute__(cls, name): raise ValueError('not for you')\n"
        "class Guarded(metaclass=Meta): pass\n"
    )
    with pytest.raises(UserError, match="looking at the class raised ValueError: not for you"):
        SubjectReference(f"{tmp_path / 'guarded.py'}::Guarded", **how).load()


def test_methods_without_keywords_are_really_called(subject_of):
    assert first_failure(subject_of("Positional")).fault.signature.startswith("OverflowError")


def test_a_built_in_class_is_really_called():
    subject = MachineSubject(api_machine(list))
    lengths = []
    machine: Any = subject.machine
    machine.stop = lambda self: lengths.append(len(self.object))
    subject = MachineSubject(machine)
    before = surroundings()
    for seed in range(10):
        subject.execute(subject.space.configuration(["append"]), seed)
    assert max(lengths) > 0
    assert surroundings() == before  # also where a machine forgets its base class


@pytest.mark.parametrize("name", ["Bounded", "Positional", "Cell", "Endless"])
def test_the_printed_code_uses_the_class_itself_and_fails_alike(name, subject_of, place):
    subject = subject_of(name)
    result = first_failure(subject)
    code = subject.code(result.test)
    assert re.search(rf"^from bag_under_test import .*\b{name}\b", code, re.MULTILINE)
    assert "swarmtest" not in code
    (place / "printed.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=place, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, code
    assert done.stderr.splitlines()[-1].startswith("OverflowError"), (done.stderr, code)


@pytest.mark.parametrize("name", ["Bounded", "Positional", "Cell"])
def test_a_derived_test_replays_alike(name, subject_of):
    subject = subject_of(name)
    result = first_failure(subject)
    assert subject.replay(result.test).fault == result.fault


def signatures(subject, tests=60):
    results = [subject.execute(subject.space.default(), seed) for seed in range(tests)]
    return {result.fault.signature for result in results if result.fault}


def test_a_call_that_the_class_refuses_is_no_fault(subject_of):
    assert not signatures(subject_of("Refusing"))


@pytest.mark.parametrize("name", [
    "broken_link", "missing_attribute", "changed_size", "asserts_its_state", "unbound",
])  # fmt: skip
def test_what_the_interpreter_raises_in_the_class_is_a_fault(name, subject_of):
    subject = subject_of("Faulty")
    subject.space.configuration([name])
    result = subject.execute(subject.space.configuration([name]), 1)
    assert name in result.fault.signature


def test_how_many_calls_were_rejected_is_counted(subject_of):
    calls = trial_calls(subject_of("Refusing"))
    assert calls["accepted"][0] == calls["accepted"][1] > 0
    assert sorted(never_accepted(calls)) == [
        "asserts_its_argument", "documented", "of_a_library", "of_the_wrong_kind", "on_purpose",
        "own",
    ]  # fmt: skip


def test_an_alias_is_no_second_action(subject_of):
    assert "same" not in subject_of("Refusing").space.feature_names


def test_an_object_that_a_call_returns_is_used_next(subject_of, place):
    subject = subject_of("Chained")
    assert {"use_result", "new_object"} <= set(subject.space.feature_names)
    result = first_failure(subject)
    assert "deep" in result.fault.signature
    assert subject.replay(result.test).fault == result.fault
    with pytest.raises(AssertionError, match="deep"):
        exec(compile(subject.code(result.test), "printed", "exec"), {})


def test_a_docstring_says_what_a_parameter_is(subject_of):
    subject = subject_of("Typed")
    assert not any("documented" in signature for signature in signatures(subject))
    assert trial_calls(subject)["documented"][0] > 0


def test_a_number_in_the_source_is_among_the_arguments(subject_of):
    assert any("OverflowError" in signature for signature in signatures(subject_of("Typed")))


def test_a_test_writes_its_files_into_a_directory_of_its_own(subject_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = os.environ.get("HOME")
    subject = subject_of("Files")
    assert not signatures(subject, 20)
    assert not list(tmp_path.iterdir())
    assert (os.getcwd(), os.environ.get("HOME")) == (str(tmp_path), home)


def test_a_method_or_check_is_left_out_by_name(subject_of):
    machine = api_machine(list, without=("append", "pickle"))
    names = MachineSubject(machine).space.feature_names
    assert not {"append", "check_pickle"} & set(names)
    assert "check_copy" in names


def test_the_counts_of_rejected_calls_are_shown(place, swarmtest):
    done = swarmtest("check", "bag_under_test:Refusing", "--api", cwd=place)
    rows = [line.split() for line in done.stdout.splitlines() if line]
    assert ["accepted", "0"] in [row[:2] for row in rows], done.stdout
    ran = swarmtest("run", "bag_under_test:Refusing", "--api", "-n", 9, "-j", 0, cwd=place)
    assert "rejected every call in the first tests: asserts_its_argument" in ran.stdout, ran.stdout


def test_a_derived_machine_is_written_as_a_file_to_edit(place, swarmtest, refused):
    done = swarmtest("init", "--api", "bag_under_test:Bounded", cwd=place)
    assert done.returncode == 0, done.stderr
    (place / "bounded_machine.py").write_text(done.stdout)
    ran = swarmtest(
        *("run", "bounded_machine.py::BoundedMachine", "-n", 200, "-j", 0, "--no-why"),
        *("--no-reduce", "--store", "i.db"),
        cwd=place,
    )
    assert "OverflowError" in ran.stdout, ran.stdout + ran.stderr
    again = swarmtest("init", "--api", "bag_under_test:Cell", "-o", "cell.py", cwd=place)
    assert "cell.py is written" in again.stdout, again.stderr
    assert 'like = "dict"' in (place / "cell.py").read_text()
    refused(swarmtest("init", "--api", "bag_under_test:Cell", "-o", "cell.py", cwd=place), "exists")
    refused(swarmtest("init", "--api", "bag_under_test:CODE", cwd=place), "no class 'CODE'")
    refused(swarmtest("init", "csmith-gcc", "--api", "x:Y", cwd=place), "not both")


def test_any_class_runs_from_the_command_line(place, swarmtest):
    done = swarmtest(
        *("run", "bag_under_test:Bounded", "--api", "-n", 200, "-j", 1, "--store", "cli.db"),
        cwd=place,
    )
    assert done.returncode == 1, done.stderr
    assert "OverflowError" in done.stdout
    assert "subject.grow(" in done.stdout


def test_a_derived_test_that_was_saved_can_be_replayed_from_its_file(place, swarmtest):
    swarmtest(
        *("run", "bag_under_test.py::Bounded", "--api", "-n", 99, "-j", 0, "--store", "f.db", "-x"),
        cwd=place,
    )
    done = swarmtest("faults", "--store", "f.db", cwd=place)
    name = next(line for line in done.stdout.splitlines() if "replay:" in line).split()[3]
    saved = swarmtest("replay", name, "--save", "t.json", "--store", "f.db", cwd=place)
    assert saved.returncode == 1, saved.stderr
    again = swarmtest("replay", "t.json", cwd=place)
    assert again.returncode == 1, again.stderr
    assert "OverflowError" in again.stdout


def test_an_exception_that_is_named_is_a_correct_outcome(place, swarmtest):
    done = swarmtest(
        *("run", "bag_under_test.py::Positional", "--api", "-n", 50, "-j", 0),
        *("--raises", "OverflowError", "--store", "r.db"),
        cwd=place,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bag_under_test:Nothing"], "no public method"),
        (["bag_under_test:Needs"], "connection"),
        (["bag_under_test:Bga"], "did you mean 'Bag'"),
        (["bag_under_test.py"], "names no class"),
        (["bag_under_test:CODE"], "no class 'CODE'"),
        (["bag_under_test:Bag.take_int"], "is not a class"),
        (["bag_under_test:Bag", "--raises", "Ovreflow"], "no exception 'Ovreflow'"),
    ],
)
def test_what_cannot_be_derived_is_said_in_one_line(arguments, words, place, swarmtest, refused):
    refused(swarmtest("run", *arguments, "--api", cwd=place), words)


def test_a_module_in_the_current_directory_is_found(tmp_path, swarmtest):
    (tmp_path / "thing.py").write_text(
        textwrap.dedent("""
            class Thing:
                def go(self, n: int): ...
        """)
    )
    done = swarmtest("run", "thing:Thing", "--api", "-n", 20, "-j", 1, "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


class Caller:
    """Reaches another host, and this one."""

    def call(self) -> str:
        import socket

        with socket.socket() as connection:
            connection.connect(("192.0.2.1", 9))
        return "called"

    def look_up(self) -> int:
        import socket

        return len(socket.getaddrinfo("localhost", 80)) + len(socket.getaddrinfo("x.invalid", 80))


def test_derived_tests_do_not_reach_other_hosts() -> None:
    import socket

    before = socket.socket.connect, socket.getaddrinfo
    subject = MachineSubject(api_machine(Caller), harness=False)
    result = subject.execute(subject.space.default(), 1)
    assert result.fault is None
    calls = subject.machine.calls  # type: ignore[attr-defined]
    assert calls["call", True] == calls["look_up", True] == 0 < calls["call", False]
    assert (socket.socket.connect, socket.getaddrinfo) == before
    assert api_machine(Caller, network=True).network  # type: ignore[attr-defined]


def surroundings() -> tuple[Any, ...]:
    import socket
    import tempfile

    sockets = [getattr(socket.socket, name) for name in ("connect", "sendto", "sendmsg")]
    variables = [os.environ.get(name) for name in ("HOME", "TMPDIR")]
    return (*sockets, *variables, socket.getaddrinfo, os.getcwd(), tempfile.tempdir)


def test_machines_that_stop_in_another_order_than_they_started_leave_nothing() -> None:
    before = surroundings()
    one, two = api_machine(list)(), api_machine(dict)()
    one.start()
    two.start()
    assert surroundings() != before
    one.stop()
    two.stop()
    two.stop()
    assert surroundings() == before


def test_a_machine_that_is_started_twice_or_never_stopped_leaves_nothing() -> None:
    before = surroundings()
    machine = api_machine(list)()
    machine.start()
    machine.start()
    del machine
    assert surroundings() == before


class Refusing(list[int]):
    """A list that can be created, until it cannot."""

    refuses = False

    def __init__(self) -> None:
        if self.refuses:
            raise ValueError("not now")


def test_a_start_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = surroundings()
    machine = api_machine(Refusing)()
    monkeypatch.setattr(Refusing, "refuses", True)
    with pytest.raises(ValueError, match="not now"):
        machine.start()
    assert surroundings() == before


def test_a_directory_that_cannot_be_entered_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = surroundings()
    machine = api_machine(list)()
    with monkeypatch.context() as patched:
        patched.setattr(os, "chdir", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            machine.start()
    assert surroundings() == before
