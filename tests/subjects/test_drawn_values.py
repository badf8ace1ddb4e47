"""Values are not uniform, because faults are not."""

import random
import sys

import pytest

from swarmtest import Machine, action, binary, floats, integers, text
from swarmtest.core.errors import UserError
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.machine.mixtures.program_random import ProgramRandom


class Lock(Machine):
    @action(code=integers(0, 2**32))
    def open(self, code):
        assert code != 123456789


def drawn(low, high, count=3000):
    generator, rng = integers(low, high), random.Random(1)
    return [generator.draw(rng) for _ in range(count)]


def test_a_number_that_only_the_source_names_is_found():
    subject = MachineSubject(Lock)
    results = [subject.execute(subject.space.default(), seed) for seed in range(30)]
    failed = next(result for result in results if result.fault)
    assert failed.test["steps"][-1][1] == [123456789]


def test_a_number_in_a_module_that_the_machine_uses_is_found(tmp_path, monkeypatch):
    (tmp_path / "locked_door.py").write_text("def open(code):\n    assert code != 987654321\n")
    (tmp_path / "door_machine.py").write_text(
        "import locked_door\n"
        "from swarmtest import Machine, action, integers\n"
        "class Door(Machine):\n"
        "    @action(code=integers(0, 2**32))\n"
        "    def open(self, code): locked_door.open(code)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import door_machine  # type: ignore[import-not-found]

    monkeypatch.setattr(door_machine.Door, "compared", False)  # only what the source says
    subject = MachineSubject(door_machine.Door)
    assert any(subject.execute(subject.space.default(), seed).fault for seed in range(30))
    for name in ("locked_door", "door_machine"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    "number", [0, 1, 2**16 - 1, 2**16, 2**16 + 1, 2**40 - 1, 2**40, -1, -(2**20)]
)
def test_ends_small_numbers_and_powers_of_two_are_drawn(number):
    assert number in drawn(-(2**40), 2**40)


def test_every_number_lies_within_its_range():
    assert all(10**9 <= n <= 10**10 for n in drawn(10**9, 10**10))
    assert all(-(2**70) <= n <= -3 for n in drawn(-(2**70), -3))


def test_a_narrow_range_is_drawn_uniformly():
    counts = [0] * 4
    for n in drawn(0, 2**12 - 1):
        counts[n >> 10] += 1
    assert all(600 < count < 900 for count in counts)


def test_half_of_a_medium_range_is_drawn_uniformly():
    numbers = drawn(0, 2**20)
    assert numbers.count(0) + numbers.count(2**20) > 50
    assert sum(n > 2**19 for n in numbers) > 600


def test_the_same_seed_gives_the_same_numbers():
    subject = MachineSubject(Lock)
    tests = [subject.test_of(subject.space.default(), 5) for _ in range(2)]
    assert tests[0] == tests[1] == MachineSubject(Lock).test_of(subject.space.default(), 5)


SAFE = """
from swarmtest import Machine, action, integers, text

class Safe:
    def __init__(self):
        self.number = sum(k**5 for k in range(50))  # neither is in the source
        self.word = "".join(chr(97 + k * 7 % 26) for k in range(9))

    def turn(self, number):
        return "open" if number == self.number else "closed"

    def say(self, word):
        if len(word) > 3 and not word != self.word:
            return "open"
        return "closed"

class SafeMachine(Machine):
    def start(self):
        self.safe = Safe()

    @action(number=integers(0, 2**32))
    def turn(self, number):
        assert self.safe.turn(number) == "closed"

    @action(word=text())
    def say(self, word):
        assert self.safe.say(word) == "closed"

class Alone(SafeMachine):
    compared = False
"""


@pytest.fixture
def safe(tmp_path, monkeypatch):
    (tmp_path / "safe_machine.py").write_text(SAFE)
    monkeypatch.syspath_prepend(tmp_path)
    import safe_machine  # type: ignore[import-not-found]

    yield safe_machine
    sys.modules.pop("safe_machine")


def faults(subject, tests=60):
    results = [subject.execute(subject.space.default(), seed) for seed in range(tests)]
    return {result.fault.signature for result in results if result.fault}


def test_values_that_the_program_only_compares_with_are_found(safe):
    subject = MachineSubject(safe.SafeMachine)
    assert len(faults(subject)) == 2
    trials = [subject.test_of(subject.space.default(), 7) for _ in range(2)]
    assert trials[0] == trials[1]  # what other tests compared does not matter


def test_comparisons_can_be_left_alone(safe):
    assert not faults(MachineSubject(safe.Alone))


def test_a_changed_condition_does_what_it_did(tmp_path, monkeypatch):
    (tmp_path / "odd_conditions.py").write_text(
        "calls = []\n"
        "def left(x):\n    calls.append('left')\n    return x\n"
        "def right(x):\n    calls.append('right')\n    return x\n"
        "def both(x):\n"
        "    if left(x) == right(5) and not left(x) != right(5): return 'same'\n"
        "    elif left(x) in (7, 8): return 'in'\n"
        "    return 'not' if left(x) != right(9) else 'nine'\n"
        "def own_names():\n    x = 1\n    if x == 2: pass\n    return sorted(locals())\n"
        "class Kept:\n"
        "    @property\n    def state(self): return 'a' if self.n == 1 else 'b'\n"
        "    @staticmethod\n    def check(n):\n        assert n != 3, 'three'\n"
    )
    (tmp_path / "odd_machine.py").write_text(
        "import odd_conditions\n"
        "from swarmtest import Machine, action, integers\n"
        "class Odd(Machine):\n"
        "    @action(x=integers(0, 2**30))\n"
        "    def call(self, x): odd_conditions.both(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import odd_machine  # type: ignore[import-not-found]

    program = odd_machine.odd_conditions
    before = [program.both(x) for x in (5, 7, 9, 1)], list(program.calls)
    subject = MachineSubject(odd_machine.Odd)
    subject.execute(subject.space.default(), 0)
    assert isinstance(subject._rng, ProgramRandom)
    assert {values[-1] for values in subject._rng.compared.values()} == {5, 8, 9}
    program.calls.clear()
    assert ([program.both(x) for x in (5, 7, 9, 1)], program.calls) == before
    assert program.own_names() == ["x"]
    kept = program.Kept()
    kept.n = 1
    assert kept.state == "a"
    with pytest.raises(AssertionError, match="three"):
        kept.check(3)
    for name in ("odd_conditions", "odd_machine"):
        sys.modules.pop(name)


def test_texts_are_repeated_used_again_and_nearly_equal():
    generator, rng = text("abcdefgh", 8), ProgramRandom("", 3)
    texts = [generator.draw(rng) for _ in range(2000)]
    assert all(set(t) <= set("abcdefgh") and len(t) <= 8 for t in texts)
    assert sum(len(t) > 4 and len(set(t)) == 1 for t in texts) > 20
    long = [t for t in texts if len(t) > 5]
    assert len(long) - len(set(long)) > 20


def test_any_text_and_any_float_have_what_breaks_programs():
    rng = ProgramRandom("", 1)
    texts = [text(None, 12, 1).draw(rng) for _ in range(3000)]
    assert all(1 <= len(t) <= 12 for t in texts)
    assert any("\ud800" <= c <= "\udfff" for t in texts for c in t)
    assert {"\n", "\0"} <= set("".join(texts))
    values = {repr(floats(None, None).draw(rng)) for _ in range(2000)}
    assert {"nan", "inf", "-inf", "-0.0", "5e-324"} <= values
    assert {"0.0", "-0.0", "2.0"} <= {repr(floats(-1, 2).draw(rng)) for _ in range(2000)}
    data = [binary(6).draw(rng) for _ in range(1000)]
    assert b"\xff" * 4 in data
    assert all(len(d) <= 6 for d in data)


def test_impossible_bounds_are_refused():
    for low, high in ((2, 1), (None, 1), (float("-inf"), 0), (float("nan"), 1)):
        with pytest.raises(UserError, match="floats"):
            floats(low, high)
    with pytest.raises(UserError, match="alphabet"):
        text("")
