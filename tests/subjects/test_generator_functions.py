"""A function that makes tests is a subject: `@generator`."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from native_programs import need

from swarmtest import Campaign, Choice, Integer, NoTest, UserError, Verdict, generator
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.store import open_store
from swarmtest.subjects.generated import GeneratorSubject

Run = Callable[..., subprocess.CompletedProcess[str]]


def at_most(limit: int) -> Callable[[list[str]], None]:
    def run(steps: list[str]) -> None:
        total = 0
        for step in steps:
            total += int(step)
            assert total <= limit, "overflow"

    return run


@generator(features=["large", "negative"], run=at_most(100))
def sums(rng: random.Random, features: Any) -> list[str]:
    """Numbers that are added."""
    sign = -1 if "negative" in features else 1
    most = 60 if "large" in features else 5
    return [str(rng.choice([1, sign]) * rng.randrange(most)) for _ in range(8)]


def result_of(subject: GeneratorSubject, *on: str, seed: int = 1) -> Any:
    return subject.execute(subject.space.configuration(on), seed)


def test_features_decide_what_is_generated() -> None:
    steps = sums.generate(sums.space.configuration(["large"]), seed=3)["steps"]
    assert len(steps) == 8
    assert max(map(int, steps)) > 5
    small = sums.generate(sums.space.configuration(["negative"]), seed=3)["steps"]
    assert min(map(int, small)) < 0


def test_the_same_seed_gives_the_same_test() -> None:
    configuration = sums.space.configuration(["large"])
    assert sums.generate(configuration, 5) == sums.generate(configuration, 5)
    assert sums.generate(configuration, 5) != sums.generate(configuration, 6)


def test_the_decorated_function_can_still_be_called() -> None:
    assert len(sums(random.Random(1), {"large"})) == 8
    assert sums.__doc__ == "Numbers that are added."


def test_a_failing_list_is_reduced_to_the_steps_that_matter() -> None:
    result = result_of(sums, "large")
    assert result.verdict is Verdict.FAILED
    assert result.fault.signature.startswith("AssertionError: overflow")

    def fails(test: Any) -> bool:
        shown = sums.replay(test).fault
        return shown is not None and shown.id == result.fault.id

    small = sums.reduced(result.test, fails)
    assert 1 < sums.size(small) < sums.size(result.test)
    assert fails(small)
    steps = small["steps"]
    assert not any(
        fails(sums.with_parts(small, steps[:i] + steps[i + 1 :])) for i in range(len(steps))
    )


def test_a_text_is_reduced_to_the_words_that_matter() -> None:
    def run(text: str) -> None:
        assert not ("alpha" in text and "[9]" in text)

    @generator(features=["a"], run=run)
    def words(rng: random.Random, features: Any) -> str:
        lines = [f"say {rng.choice(['beta', 'gamma'])} {n};" for n in range(20)]
        lines[5], lines[11] = "if (x) { call(alpha, 7); }", "y = table[9] + table[8];"
        return "\n".join(lines)

    test = result_of(words, "a").test

    def fails(test: Any) -> bool:
        return words.replay(test).verdict is Verdict.FAILED

    assert words.content(words.reduced(test, fails)) == b"alpha[9]"


def test_bytes_are_reduced_byte_by_byte() -> None:
    def run(data: bytes) -> None:
        assert not (b"\xff" in data and b"\x00" in data)

    @generator(features=["a"], run=run)
    def noise(rng: random.Random, features: Any) -> bytes:
        return b"\xff" + rng.randbytes(50) + b"\x00"

    test = result_of(noise, "a").test
    small = noise.reduced(test, lambda test: noise.replay(test).verdict is Verdict.FAILED)
    assert noise.content(small) == b"\xff\x00"
    assert noise.code(small).startswith("00000000: ff00")


def test_settings_are_given_by_name() -> None:
    @generator(features=["a", Integer("size", 1, 9), Choice("mode", ["r", "w"])], run=len)
    def sized(rng: random.Random, features: Any) -> str:
        return str(features["mode"] * features["size"])

    configuration = sized.space.configuration({"a": 1, "size": 4, "mode": "w"})
    assert sized.generate(configuration, 1)["text"] == "wwww"


def test_an_expected_exception_is_a_correct_outcome() -> None:
    @generator(features=["digits", "letters"], run=int, raises=ValueError)
    def numbers(rng: random.Random, features: Any) -> str:
        return "12" if "digits" in features else "x"

    assert result_of(numbers, "letters").verdict is Verdict.PASSED


def test_a_list_of_texts_from_the_function_under_test_are_events() -> None:
    @generator(features=["a"], run=str.split)
    def words(rng: random.Random, features: Any) -> str:
        return "full empty full"

    assert result_of(words, "a").hits == ("event:empty", "event:full")


def test_a_generator_may_have_no_test() -> None:
    @generator(features=["a"], run=len)
    def picky(rng: random.Random, features: Any) -> str:
        raise NoTest("nothing to say")

    assert result_of(picky, "a").verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng, features: 3, "the generator returned 3; return bytes, a text or a list"),
        (lambda rng, features: [1], r"the generator returned \[1\]; return bytes"),
        (lambda rng, features: 1 / 0, "the generator raised ZeroDivisionError"),
    ],
)
def test_a_mistake_in_the_generator_is_one_line(make: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        result_of(generator(features=["a"], run=len)(make), "a")


def test_a_mistake_in_the_decorator_is_one_line() -> None:
    with pytest.raises(UserError, match="run is a Program or a function, not 'prog'"):
        generator(features=["a"], run="prog")(lambda rng, features: "")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a space needs at least one dimension"):
        generator(features=[], run=len)(lambda rng, features: "")


def test_a_saved_test_that_is_broken_is_refused() -> None:
    with pytest.raises(UserError, match="not a saved generated test"):
        sums.replay({"format": "other"})
    with pytest.raises(UserError, match="broken"):
        sums.size({"format": "swarmtest generated test 1"})


SOURCE = """\
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int a, b;
  char op;
  if (scanf("%d %c %d", &a, &op, &b) != 3)
    return 1;
  if (op == '/')
    return a / b > 5;
  if (op == '-' && b > 7)
    abort();
  return 0;
}
"""
FILE = """\
from swarmtest import generator
from swarmtest.coverage import Program

calc = Program(["./calc"], fork_server=True)


@generator(features=["add", "subtract", "divide"], run=calc)
def expressions(rng, features) -> str:
    names = {"add": "+", "subtract": "-", "divide": "/"}
    signs = [sign for name, sign in names.items() if name in features]
    return f"{rng.randrange(9)} {rng.choice(signs or '+')} {rng.randrange(9)}\\n"
"""


@pytest.fixture
def calculator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need("gcc", "addr2line")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calc.c").write_text(SOURCE)
    (tmp_path / "gen.py").write_text(FILE)
    subprocess.run(compiler_command(["gcc", "-o", "calc", "calc.c"]), check=True)
    return tmp_path


def test_a_campaign_finds_the_faults_and_the_lines_of_a_program(calculator: Path) -> None:
    outcome = Campaign("gen.py", "coin", 300, seed=1, workers=2, store="calc.db").run()
    assert {fault.signature for fault in outcome.faults} == {"SIGFPE [main]", "SIGABRT [main]"}
    with open_store("calc.db") as store:
        lines = {target.name for target in store.watched_targets(1).values()}
        assert {"calc.c:9", "calc.c:11"} <= lines


def test_roles_focus_reduce_replay_and_suite_work(calculator: Path, swarmtest: Run) -> None:
    def call(*words: object, status: int = 0) -> str:
        done = swarmtest(*words, "--store", "calc.db", cwd=calculator)
        assert done.returncode == status, done.stderr
        return done.stdout

    call("run", "gen.py", "--tests", 900, "--workers", 1, "--seed", 2, status=1)
    faults = json.loads(call("show", "latest", "--json"))["faults"]
    abort = next(fault["fault"] for fault in faults if fault["signature"] == "SIGABRT [main]")
    assert re.search(r"subtract +trigger", call("roles", 1, abort))
    call("reduce", abort, "--coverage", "none", "-o", "small.json")
    assert re.fullmatch(r"\d ?- ?8", json.loads(Path("small.json").read_text())["text"].strip())
    assert "SIGABRT" in call("replay", abort, status=1)
    words = ("--line", "calc.c:11", "--tests", 60, "--workers", 1, "--json")
    done = swarmtest("focus", "gen.py", *words, "--store", "calc.db", cwd=calculator)
    (target,) = json.loads(done.stdout.splitlines()[-1])["targets"]
    directed, undirected = target["directed"], target["undirected"]
    assert directed["hits"] / directed["tests"] > undirected["hits"] / undirected["tests"]
    call("suite", 1, "-o", "test_kept.py")
    assert "8" in Path("test_kept.py").read_text()


@pytest.mark.parametrize("text", ["né; größer\nß {é}", "a\ud800b\n\udcff;\nxß"])
def test_a_text_of_letters_of_several_bytes_is_reduced_by_whole_letters(text: str) -> None:
    def run(tested: str) -> None:
        assert "ß" not in tested

    @generator(features=["any", "other"], run=run)
    def words(rng: random.Random, features: Any) -> str:
        return text

    test = words.generate(words.space.default(), 1)

    def fails(smaller: Any) -> bool:
        return words.run(smaller).verdict is Verdict.FAILED

    assert words.reduced(test, fails)["text"] == "ß"
    assert words.code(test)


@pytest.mark.parametrize("odd", [{"fault": lambda: 7}, {"hits": 1, "missing": ""}])
def test_a_run_that_is_none_is_refused(odd: dict[str, Any]) -> None:
    @generator(features=["any", "other"], run=lambda _: SimpleNamespace(**odd))
    def words(rng: random.Random, features: Any) -> str:
        return "x"

    with pytest.raises(UserError, match="returned SimpleNamespace: its"):
        result_of(words, "any")
