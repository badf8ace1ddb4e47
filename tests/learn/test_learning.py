"""Values that a package's own tests pass, recorded into a file and drawn by derived machines."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from swarmtest.core.errors import UserError
from swarmtest.learn.command import learn, merged
from swarmtest.learn.recorder import Recorder
from swarmtest.subjects.api_arguments import with_learned
from swarmtest.subjects.learned_values import parsed, read_values, values_of, written
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine.generators import integers
from swarmtest.subjects.machine.subject import MachineSubject

SHOP = """
class Base:
    def close(self, how): pass

class Cart(Base):
    def __init__(self, currency):
        if currency not in ("EUR", "USD"): raise ValueError(currency)
        self.items = {}
    def add(self, sku, *, amount=1):
        self.items[sku] = amount
        if sku.startswith("sku-") and amount > 2: raise OverflowError(sku)

def helper(n): return n
"""
USE = """
import learned_shop
cart = learned_shop.Cart("EUR")
for amount in (1, 2): cart.add("sku-1", amount=amount)
cart.close(object()); cart.close([1, {"a": None}])
learned_shop.helper(99)
try:
    cart.add("sku-2", amount=3)
except OverflowError:
    pass
"""


@pytest.fixture(scope="module")
def values(tmp_path_factory: Any) -> Any:
    place = tmp_path_factory.mktemp("shop")
    (place / "learned_shop.py").write_text(SHOP)
    (place / "use.py").write_text(USE)
    path = place / "shop.values"
    words = ["learned_shop", "-o", str(path), "--", sys.executable, str(place / "use.py")]
    result = CliRunner().invoke(learn, words, standalone_mode=False, catch_exceptions=False)
    assert "7 values of 3 methods" in result.output
    sys.path.insert(0, str(place))
    yield path
    sys.path.remove(str(place))
    sys.modules.pop("learned_shop", None)


def test_arguments_of_methods_are_recorded_as_literals(values: Path) -> None:
    learned = read_values(str(values))
    assert learned == {
        "learned_shop:Base.close": {"how": ([1, {"a": None}],)},
        "learned_shop:Cart.__init__": {"currency": ("EUR",)},
        "learned_shop:Cart.add": {"sku": ("sku-1", "sku-2"), "amount": (1, 2, 3)},
    }
    assert str(sys.executable) in values.read_text()


def test_a_class_is_tested_with_what_its_tests_pass(values: Path) -> None:
    with pytest.raises(UserError, match="cannot create"):
        SubjectReference("learned_shop:Cart", api=True).load()
    reference = SubjectReference("learned_shop:Cart", api=True, learned=str(values))
    assert SubjectReference.from_json(reference.to_json()) == reference
    subject = reference.load()
    assert isinstance(subject, MachineSubject)
    results = [subject.execute(subject.space.default(), seed) for seed in range(20)]
    assert any("OverflowError" in str(result.fault) for result in results)


def test_learned_values_are_two_of_three_and_are_copied() -> None:
    source, rng = with_learned(integers(0, 9), ([7],)), random.Random(1)
    drawn = [source.draw(rng) for _ in range(300)]
    assert 150 < drawn.count([7]) < 250
    first, second = [value for value in drawn if value == [7]][:2]
    assert first is not second
    assert with_learned("a pool", (1,)) == "a pool"


def test_values_of_a_base_class_are_found(values: Path) -> None:
    import learned_shop  # type: ignore[import-not-found]

    learned = read_values(str(values))
    assert values_of(learned, learned_shop.Cart, "close") == {"how": ([1, {"a": None}],)}
    assert values_of(learned, learned_shop.Cart, "none") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n = 1", "line 1: expected"),
        ("[shop:Cart.add]\nn", "line 2: expected"),
        ("[shop:Cart.add]\nn = open('x')", "line 2: not a Python literal"),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parsed(text, "shop.values")


def test_what_was_written_is_read_back() -> None:
    text = written({"a.b:C.m": {"x": ["'\\n'", "{1: (2,)}"]}, "a.b:C.n": {}}, "a", "pytest -q")
    assert parsed(text, "f") == {"a.b:C.m": {"x": ("\n", {1: (2,)})}}


def test_nothing_to_record_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["shop", "--", sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.raises(UserError, match="status 3"):
        CliRunner().invoke(learn, words, standalone_mode=False, catch_exceptions=False)
    with pytest.raises(UserError, match="say what to run"):
        CliRunner().invoke(learn, ["shop"], standalone_mode=False, catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def learned_from(*command: str) -> Any:
    words = ["shop", "-o", "shop.values", "--", *command]
    return CliRunner().invoke(learn, words, standalone_mode=False, catch_exceptions=False)


def test_a_command_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ("no-such-command", str(tmp_path)):
        with pytest.raises(UserError, match="cannot run"):
            learned_from(word)


def test_a_daemon_that_the_command_leaves_is_not_waited_for(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no method of shop was called"):
        learned_from("sh", "-c", "sleep 9735 & exit 0")


def test_the_command_in_a_file_is_one_line() -> None:
    text = written({"a:C.m": {"x": ["1"]}}, "a", "python -c 'import a\na.run(\udcff)'")
    assert parsed(text, "f") == {"a:C.m": {"x": (1,)}}
    assert text.encode()


def test_a_process_that_is_killed_while_it_writes_has_written_nothing(tmp_path: Path) -> None:
    recorder = Recorder("shop")
    recorder.note("shop:Cart.add", "n", 3)
    recorder.write(str(tmp_path))
    (tmp_path / "7").write_text('{"shop:Cart.add": {"n": ["4"')  # its time was up here
    assert merged(tmp_path) == {"shop:Cart.add": {"n": ["3"]}}


def test_values_that_cannot_be_written_are_told_in_a_line(tmp_path: Path, capsys: Any) -> None:
    recorder = Recorder("shop")
    recorder.note("shop:Cart.add", "n", 3)
    recorder.write_or_say(str(tmp_path / "gone"))
    told = "swarmtest learn: values were lost: No such file or directory\n"
    assert capsys.readouterr().err == told
