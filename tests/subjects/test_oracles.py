"""Oracles that need no writing: models, comparisons, checks, and faults that are stepped over."""

from __future__ import annotations

import copy
import heapq
import io
import itertools
from collections import Counter, OrderedDict, UserDict, UserList, deque
from typing import Any, ClassVar

import pytest

from swarmtest import Compared, Machine, UserError, action, integers, invariant, with_checks
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.oracles.compared import compared_machine
from swarmtest.subjects.oracles.metamorphic import checks_of
from swarmtest.subjects.oracles.models import MODELS
from swarmtest.subjects.subject import named_fault


def results_of(machine: type[Machine], tests: int = 60) -> list[Any]:
    subject = MachineSubject(machine)
    return [subject.execute(subject.space.default(), seed) for seed in range(tests)]


def faults_of(machine: type[Machine], tests: int = 60) -> Counter[str]:
    results = results_of(machine, tests)
    return Counter(result.fault.signature for result in results if result.fault)


def events_of(machine: type[Machine]) -> Counter[str]:
    return Counter(hit for result in results_of(machine) for hit in result.hits)


# Ready models.

HONEST: dict[str, Any] = {
    "list": UserList,
    "dict": dict,
    "set": set,
    "deque": deque,
    "OrderedDict": OrderedDict,
    "bytearray": bytearray,
    "file": io.BytesIO,
    "array": MODELS["array"].new,
    "queue": MODELS["queue"].new,
    "heap": MODELS["heap"].new,
    "expiring": lambda clock: MODELS["expiring"].new(clock, 5),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_class_that_behaves_like_the_model_has_no_fault(name):
    machine: Any = type("Honest", (Compared,), {"tested": HONEST[name], "like": name})
    assert machine._operations.keys() >= set(MODELS[name].operations())
    assert not faults_of(machine, 30)


class LosesTheSecond(list):  # type: ignore[type-arg]
    def insert(self, index, value):
        if index != 1:
            super().insert(index, value)


class KeepsDeleted(dict):  # type: ignore[type-arg]
    def pop(self, key, *default):
        return self[key] if key in self else super().pop(key, *default)


class PopsAnything(set):  # type: ignore[type-arg]
    def discard(self, value):
        if value in self:
            self.pop()


class WrongTell(io.BytesIO):
    def seek(self, at, whence=0):
        return super().seek(max(0, at), whence) - (whence == 2)


class LastOut:
    def __init__(self):
        self.values = []

    def push(self, value):
        heapq.heappush(self.values, value)

    def pop(self):
        return self.values.pop()

    def __len__(self):
        return len(self.values)


class ForgetsLate(MODELS["expiring"].new):  # type: ignore[misc]
    def __contains__(self, key):
        return key in self._set_at


@pytest.mark.parametrize(
    ("like", "tested", "signature"),
    [
        ("list", LosesTheSecond, "after insert: the contents differ"),
        ("dict", KeepsDeleted, "after pop: the contents differ"),
        ("set", PopsAnything, "after discard: the contents differ"),
        ("file", WrongTell, "seek_end: another result than BytesIO's"),
        ("heap", LastOut, "pop: another result than Heap's"),
        ("expiring", lambda clock: ForgetsLate(clock, 5), "contains: another result than"),
    ],
)
def test_a_class_that_does_not_behave_like_the_model_is_found_out(like, tested, signature):
    machine = type("Wrong", (Compared,), {"tested": staticmethod(tested), "like": like})
    assert any(signature in found for found in faults_of(machine)), faults_of(machine)


def test_an_operation_that_the_class_does_not_have_is_left_out_and_named():
    class Short(Compared):
        tested = LastOut
        like = "heap"

    assert Short.left_out == ("peek",)
    assert not hasattr(Short, "peek")


def test_operations_and_checks_are_left_out_by_name():
    class Fewer(Compared):
        tested = UserDict
        like = "dict"
        without = "popitem update check_copy pickle"

    names = {action.name for action in MachineSubject(Fewer).compiled.actions}
    assert {"setitem", "check_deepcopy"} <= names
    assert not {"popitem", "update", "check_copy", "check_pickle"} & names


class Even(UserList[int]):
    """Takes even numbers only."""

    def append(self, item):
        if item % 2:
            raise ValueError(item)
        super().append(item)


def test_a_class_may_refuse_what_the_model_does():
    class Found(Compared):
        tested = Even
        like = "list"

    class Allowed(Compared):
        tested = Even
        like = "list"
        raises: ClassVar[Any] = {"append": ValueError}

    assert any("append: raises ValueError, where list does not" in f for f in faults_of(Found))
    assert not faults_of(Allowed)


class Careless(Even):
    """Refuses odd numbers when they are in the list already."""

    def append(self, item):
        self.data.append(item)
        if item % 2:
            raise ValueError(item)


def test_a_call_that_was_refused_must_not_change_anything():
    class Refusing(Compared):
        tested = Careless
        like = "list"
        raises = ValueError

    assert any(
        "after append that was refused: the contents differ" in f for f in faults_of(Refusing)
    )


class TakesTheFirst(Compared):
    tested = UserDict
    like = OrderedDict
    without = "reversed reversed_items popitem_first"
    differences: ClassVar[Any] = {"popitem": "takes the first item"}


def test_a_documented_difference_is_counted_and_the_test_goes_on():
    results = results_of(TakesTheFirst)
    assert not any(result.fault for result in results)
    known = [
        r for r in results if "event:known difference: popitem (takes the first item)" in r.hits
    ]
    assert known
    assert max(result.steps for result in known) > 20


def test_a_documented_difference_may_be_a_function_of_the_call():
    class OnlyFromEmpty(TakesTheFirst):
        differences: ClassVar[Any] = {"popitem": lambda call: call.expected.kind == "KeyError"}

    assert any("popitem" in fault for fault in faults_of(OnlyFromEmpty))


def test_an_operation_may_be_called_in_another_way():
    class Stack(Compared):
        tested = deque
        like = "heap"
        without = "pop peek"
        calls: ClassVar[Any] = {"push": "o.append(x)"}

    assert not faults_of(Stack)
    test = MachineSubject(Stack).test_of(MachineSubject(Stack).space.configuration(["push"]), 1)
    assert "# o.append(" in MachineSubject(Stack).code(test)


class Mutable:
    """Two values that behave alike, but for the order of their iteration."""

    def __init__(self):
        self.values = {}

    def put(self, key: int, value: int) -> int | None:
        old = self.values.get(key)
        self.values[key] = value
        return old

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


class Sorted(Mutable):
    def __iter__(self):
        return iter(sorted(self.values))


def test_two_implementations_are_driven_by_the_same_steps():
    class Both(Compared):
        tested = Sorted
        like = Mutable

    assert "after put: the contents differ" in str(faults_of(Both))


def test_what_has_to_agree_can_be_said():
    class Both(Compared):
        tested = Sorted
        like = Mutable
        same = "result exception_type len set"

    assert not faults_of(Both)


def test_more_than_two_implementations_are_compared():
    class Third(Mutable):
        def put(self, key: int, value: int) -> int | None:
            super().put(key, value)
            return None

    class Three(Compared):
        tested = Sorted
        like = (Sorted, Mutable, Third)
        same = "result"

    assert "put: another result than Third's" in str(faults_of(Three))


def test_an_alias_is_one_operation():
    class Twice(Mutable):
        add = Mutable.put

    class Both(Compared):
        tested = Twice
        like = Twice

    assert "put" in Both._operations
    assert "add" not in Both._operations


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"like": "lits"}, "did you mean 'list'"),
        ({"without": "apend"}, "did you mean 'append'"),
        ({"same": "lenn"}, "did you mean 'len'"),
        ({"raises": {"apend": KeyError}}, "did you mean 'append'"),
        ({"raises": 3}, "raises is an exception class"),
        ({"differences": {"apend": "x"}}, "did you mean 'append'"),
        ({"calls": {"append": "o.add(z)"}}, "uses 'z'"),
        ({"tested": 3}, "cannot be created"),
    ],
)
def test_a_mistake_in_a_comparison_is_said_in_one_line(wrong, words):
    with pytest.raises(UserError, match=words):
        type("Wrong", (Compared,), {"tested": list, "like": "list"} | wrong)


def test_a_printed_test_shows_the_calls_and_runs(tmp_path, monkeypatch):
    subject = MachineSubject(compared_machine(LosesTheSecond, "list"))
    failed = next(
        result
        for seed in range(99)
        if (result := subject.execute(subject.space.default(), seed)).fault
    )
    code = subject.code(failed.test)
    assert "  # o.insert(" in code
    with pytest.raises(AssertionError, match="after insert"):
        exec(compile(code, "printed", "exec"), {})
    assert subject.replay(failed.test).fault == failed.fault


def test_a_class_is_compared_from_the_command_line(tmp_path, swarmtest, refused):
    (tmp_path / "shelf.py").write_text(
        "class Shelf(list):\n"
        "    def pop(self, at=-1):\n"
        "        return super().pop(at) if len(self) < 4 else None\n"
    )
    words = ("run", "shelf.py::Shelf", "-j", 0, "-n", 200, "--no-why", "--store", "s.db")
    done = swarmtest(*words, "--like", "list", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Difference: pop: another result than list's" in done.stdout
    done = swarmtest(
        *words, "--like", "list", "--without", "pop", "--without", "pop_at", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    refused(swarmtest(*words, "--like", "lits", cwd=tmp_path), "did you mean 'list'")
    refused(swarmtest(*words, "--like", "list", "--api", cwd=tmp_path), "give one of them")
    refused(swarmtest(*words, "--without", "pop", cwd=tmp_path), "goes with --api and --like")


# Checks that any class can have.


class Point:
    """Right in everything."""

    def __init__(self, x=0):
        self.x = x

    def __eq__(self, other):
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self):
        return hash(self.x)

    def __repr__(self):
        return f"Point({self.x!r})"

    def __len__(self):
        return self.x

    def __iter__(self):
        return iter(range(self.x))

    def close(self):
        self.x = 0

    def to_dict(self):
        return {"x": self.x}

    @classmethod
    def from_dict(cls, data):
        return cls(data["x"])

    def __add__(self, other):
        return Point(self.x + other.x)


def changed(**members: Any) -> type:
    return type("Point", (Point,), {"__module__": __name__, **members})


def add_in_place(self, other):
    self.x += 1
    return Point(self.x + other.x)


def close_once(self):
    del self.x


NUMBERS = itertools.count()
WRONG: dict[str, dict[str, Any]] = {
    "copy": {"__copy__": lambda self: type(self)(self.x + 1)},
    "deepcopy": {"__deepcopy__": lambda self, memo: type(self)(self.x + 1)},
    "repr": {"__repr__": lambda self: 1 // 0 and ""},
    "equality": {"__eq__": lambda self, other: True},
    "hash": {"__hash__": lambda self: id(self)},
    "itself": {"__add__": add_in_place},
    "iteration": {"__iter__": lambda self: iter([next(NUMBERS)])},
    "length": {"__len__": lambda self: self.x + 1},
    "parse": {"to_dict": lambda self: {"x": self.x + 1}},
    "close_twice": {"close": close_once},
}


@pytest.mark.parametrize("name", [*WRONG, "pickle", "eval"])
def test_a_check_passes_for_a_class_that_is_right(name):
    check = checks_of(Point(2))[f"check_{name}"]
    check.run(Point(2), Point)


@pytest.mark.parametrize("name", WRONG)
def test_a_check_fails_for_a_class_that_is_wrong(name):
    wrong = changed(**WRONG[name])
    with pytest.raises((AssertionError, ZeroDivisionError)):
        checks_of(Point(2))[f"check_{name}"].run(wrong(2), wrong)


def test_a_copy_that_is_equal_and_shorter_is_found():
    shorter = changed(__eq__=lambda self, other: True, __copy__=lambda self: type(self)(1))
    with pytest.raises(AssertionError, match="a copy has another length"):
        checks_of(Point(2))["check_copy"].run(shorter(2), shorter)


def test_a_value_that_is_lost_in_a_pickle_is_found():
    class Shelf(list):  # type: ignore[type-arg]
        def __reduce__(self):
            return list, ()

    with pytest.raises(AssertionError, match="has another type"):
        checks_of([])["check_pickle"].run(Shelf([1]), Shelf)


def test_a_class_without_a_feature_has_no_check_of_it():
    class Plain:
        pass

    assert set(checks_of(Plain())) == {"check_repr"}
    assert not {"check_hash", "check_close_twice"} & checks_of([]).keys()


def test_a_value_that_is_not_equal_to_itself_is_no_fault():
    for check in checks_of([1]).values():
        check.run([float("nan")], list)


def test_any_machine_can_have_the_checks():
    @with_checks("shelf", list, without="repr")
    class Shelves(Machine):
        def start(self):
            self.shelf = LosesItsCopy()

        @action(value=integers(0, 3))
        def put(self, value):
            self.shelf.append(value)

    class LosesItsCopy(list):  # type: ignore[type-arg]
        def __copy__(self):
            return LosesItsCopy()

    assert "a copy is not equal to the original" in str(faults_of(Shelves))
    assert not hasattr(Shelves, "check_repr")


# Known faults are stepped over.


class Till(Machine):
    """Taking from an empty till is a known fault; behind it is another one."""

    steps = 60
    tolerate = ("KeyError",)

    def start(self):
        self.coins = 0

    @action
    def put(self):
        self.coins += 1
        assert self.coins < 6, "too many"

    @action
    def take(self):
        if not self.coins:
            raise KeyError("empty")
        self.coins -= 1


def test_a_test_goes_on_after_a_fault_that_is_tolerated():
    results = results_of(Till)
    assert {r.fault.signature for r in results if r.fault} == {
        "AssertionError: too many [Till.put: assert self.coins < 6]"
    }
    assert any(
        hit.startswith("event:tolerated ") and "KeyError" in hit for r in results for hit in r.hits
    )


def test_a_test_with_a_tolerated_fault_replays_alike_and_prints_as_code_that_runs():
    subject = MachineSubject(Till)
    failed = next(r for r in results_of(Till) if r.fault and r.hits)
    assert subject.replay(failed.test).fault == failed.fault
    code = subject.code(failed.test)
    assert "with suppress(KeyError):\n    machine.take()\nmachine.stop(); machine.start()" in code
    with pytest.raises(AssertionError, match="too many"):
        exec(compile(code, "printed", "exec"), {})


def test_a_machine_may_say_that_a_test_goes_on_with_the_same_object():
    class GoesOn(Till):
        tolerate_and = "go on"
        starts = 0

        def start(self):
            super().start()
            type(self).starts += 1

    results = results_of(GoesOn, 20)
    assert GoesOn.starts == 20
    assert any(result.hits for result in results)


def test_the_id_of_a_fault_names_it_also_if_the_last_action_belongs_to_it():
    class Helped(Machine):
        steps = 40

        def start(self):
            self.coins = 0

        def check_coins(self):
            assert self.coins != 2

        @action
        def put(self):
            self.coins += 1
            self.check_coins()

        @action
        def take(self):
            self.coins = max(0, self.coins - 1)

        @invariant
        def never_four(self):
            assert self.coins != 4

        @action
        def jump(self):
            self.coins += 3

    subject = MachineSubject(Helped)
    seeds = range(40)
    results = [subject.execute(subject.space.default(), seed) for seed in seeds]
    faults = {named_fault(subject, result.fault) for result in results if result.fault}
    signatures = " ".join(fault.signature for fault in faults)
    assert "in put" in signatures
    assert "never_four after jump" in signatures
    tolerant = subject.tolerating([fault.id for fault in faults])
    again = [tolerant.execute(tolerant.space.default(), seed) for seed in seeds]
    left = {named_fault(tolerant, result.fault) for result in again if result.fault}
    assert not left & faults


def test_a_violated_invariant_that_is_tolerated_begins_again():
    class Watched(Till):
        tolerate = ("never_four",)

        @action
        def take(self):
            self.coins = max(0, self.coins - 1)

        @invariant
        def never_four(self):
            assert self.coins != 4

    assert not faults_of(Watched)
    assert any("never_four" in event for event in events_of(Watched))


def test_known_faults_are_tolerated_from_the_command_line(tmp_path, swarmtest):
    (tmp_path / "till.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Till(Machine):\n"
        "    steps = 40\n"
        "    def start(self): self.coins = 0\n"
        "    @action\n"
        "    def put(self):\n"
        "        self.coins += 1\n"
        "        assert self.coins < 6, 'too many'\n"
        "    @action\n"
        "    def take(self):\n"
        "        if not self.coins: raise KeyError('empty')\n"
        "        self.coins -= 1\n"
    )
    words = ("run", "till.py", "-j", 0, "--no-reduce", "--store", "t.db")
    first = swarmtest(*words, "-n", 1, "--strategy", "all-on", cwd=tmp_path)
    assert "1 distinct fault" in first.stdout, first.stdout + first.stderr
    again = swarmtest(*words, "-n", 100, "--tolerate", "known", cwd=tmp_path)
    assert "went on in " in again.stdout, again.stdout + again.stderr
    assert "AssertionError: too many" in again.stdout


def test_a_copy_of_a_machine_that_compares_is_a_machine_of_its_own():
    class Base(Compared):
        tested = UserDict
        like = "dict"

    class Sub(Base):
        without = "clear"

    assert copy.copy(Base._operations).keys() - Sub._operations.keys() == {"clear"}


# Exceptions that every action may raise.


def test_a_machine_says_once_what_every_action_may_raise():
    class Strict(Machine):
        @action
        def first(self):
            raise KeyError(1)

        @action(raises=ValueError)
        def second(self):
            raise ValueError(1)

    class Lenient(Strict):
        raises = (KeyError,)

    class Wrong(Strict):
        raises = 3

    assert all(signature.startswith("KeyError") for signature in faults_of(Strict))
    assert faults_of(Strict)
    assert not faults_of(Lenient)
    assert {step[3] for step in results_of_one(Lenient)} == {"KeyError", "ValueError"}
    with pytest.raises(UserError, match="raises is an exception class"):
        MachineSubject(Wrong)


def results_of_one(machine: type[Machine]) -> Any:
    subject = MachineSubject(machine)
    return subject.test_of(subject.space.default(), 1)["steps"]


class FoldsCase(UserDict):  # type: ignore[type-arg]
    """A dictionary in which upper case means nothing, as names of HTTP headers have none."""

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), str(value))

    def __eq__(self, other):
        return isinstance(other, FoldsCase) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]


class Returns(UserList):  # type: ignore[type-arg]
    """A list whose append says where the value is now."""

    def append(self, value):
        super().append(value)
        return len(self) - 1


@pytest.mark.parametrize(("model", "cls"), [("dict", FoldsCase), ("list", Returns)])
def test_a_class_that_is_only_more_particular_has_no_faults(model, cls):
    class Particular(Compared):
        tested = cls
        like = model

    assert not faults_of(Particular)


def test_comparing_with_the_model_is_left_out_if_the_class_knows_only_its_own_kind():
    class Folds(Compared):
        tested = FoldsCase
        like = "dict"

    assert {"equal", "not_equal"} <= set(Folds.left_out)


def test_a_class_that_refuses_to_be_iterated_is_not_asked_to():
    class Refuses(UserDict):  # type: ignore[type-arg]
        def __iter__(self):
            raise NotImplementedError

    assert "check_iteration" not in checks_of(Refuses())
    assert "check_copy" not in checks_of(io.BytesIO())


class Bits:
    """Holds truth values; `in` looks for a text of them, and only a frozen one has a hash."""

    def __init__(self):
        self.bits = [True, False]

    def __iter__(self):
        return iter(self.bits)

    def __len__(self):
        return len(self.bits)

    def __contains__(self, text):
        return "".join(text) in "10"

    def __eq__(self, other):
        return isinstance(other, Bits) and self.bits == other.bits

    def __hash__(self):
        raise RuntimeError("it can change")


@pytest.mark.parametrize("name", ["check_length", "check_hash"])
def test_a_check_does_not_blame_a_class_that_refuses_what_it_asks(name):
    checks_of(Bits())[name].run(Bits(), Bits)


class Countdown:
    """A sequence of 10, 7, 4 and 1; slices from the end are wrong."""

    values = (10, 7, 4, 1)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        if isinstance(index, slice) and (index.step or 1) < 0:
            return self.values[index.start : index.stop]
        return self.values[index]


def test_an_object_with_contents_has_the_operations_of_its_model():
    class CountdownTest(Compared):
        tested = Countdown
        like = lambda: tuple(range(10, 0, -3))  # noqa: E731

    subject = MachineSubject(CountdownTest)
    assert {"get", "slice", "reversed", "contains"} <= set(subject.space.feature_names)
    results = [subject.execute(subject.space.default(), seed) for seed in range(20)]
    signatures = {result.fault.signature for result in results if result.fault}
    assert signatures == {"Difference: slice: another result than tuple's"}
