"""`swarmtest growth`: is it worth going on?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

FILES = {
    "shelf.py": """
class Shelf:
    def __init__(self):
        self.books = []

    def put(self, book):
        if book < 100:
            raise LookupError("no such book")
        if book > 1000:
            self.books = []
        self.books.append(book)
""",
    "harness.py": """
from shelf import Shelf
from swarmtest import Machine, action, integers

class Books(Machine):
    steps = 3
    def start(self):
        self.shelf = Shelf()
    @action(book=integers(0, 999))
    def put(self, book):
        self.shelf.put(book)
    @action
    def look(self): ...

class Quiet(Machine):
    steps = 3
    @action
    def think(self): ...
""",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, swarmtest: Run) -> Path:
    """Campaigns: 1 and 2 differ in their seeds, 3 in its subject, 4 has ten tests only."""
    place = tmp_path_factory.mktemp("growth")
    for name, text in FILES.items():
        (place / name).write_text(text)
    cover = ("-j", 0, "-q", "--coverage", "line,branch", "--cover", "shelf")
    swarmtest("run", "harness.py::Books", "-n", 400, *cover, cwd=place)
    swarmtest("run", "harness.py::Books", "-n", 400, "--seed", 1, *cover, cwd=place)
    swarmtest("run", "harness.py::Quiet", "-n", 400, "-j", 0, "-q", cwd=place)
    swarmtest("run", "harness.py::Quiet", "-n", 10, "-j", 0, "-q", cwd=place)
    return place


@pytest.fixture
def growth(swarmtest: Run, place: Path) -> Callable[..., str]:
    def go(*arguments: object) -> str:
        done = swarmtest("growth", *arguments, cwd=place)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    return go


def test_the_end_is_one_sentence_on_what_to_do(growth: Callable[..., str]) -> None:
    said = " ".join(growth(1, "--kind", "line").rpartition("\n\n")[2].split())
    assert said.startswith("Change the configuration: ")
    assert "but no test reached 1 watched line" in said


def test_what_was_not_reached_can_be_looked_up(growth: Callable[..., str], place: Path) -> None:
    assert "what was not reached: swarmtest coverage 1 --targets --unreached" in growth(1)


def test_every_line_fits_a_terminal_but_for_commands(growth: Callable[..., str]) -> None:
    lines = [line for line in growth(1, 2).splitlines() if "swarmtest " not in line]
    assert max(map(len, lines)) <= 80


def test_one_kind_has_a_larger_picture(growth: Callable[..., str]) -> None:
    assert growth(1, "--kind", "line").count("█\n") > growth(1).count("█\n")


def test_several_seeds_are_read_as_one(growth: Callable[..., str]) -> None:
    assert growth(1, 2).startswith("campaigns 1, 2: harness.py::Books, layered, 800 tests\n")


def test_no_fault_is_a_statement_about_how_rare_they_are(growth: Callable[..., str]) -> None:
    assert "no fault in 400 tests" in " ".join(growth(3).split())
    assert "fewer than 1 test in 133 shows one" in " ".join(growth(3).split())


def test_ten_tests_are_too_few(growth: Callable[..., str]) -> None:
    assert "Too little data: 10 tests are too few" in growth()


def test_a_terminal_without_blocks_gets_plain_characters(
    start: Callable[..., subprocess.Popen[str]], place: Path
) -> None:
    process = start("growth", 1, cwd=place, PYTHONIOENCODING="ascii")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.isascii()
    assert "####" in out


def test_without_coverage_there_is_no_reason_to_stop(growth: Callable[..., str]) -> None:
    said = " ".join(growth(3).rpartition("\n\n")[2].split())
    assert said.startswith("Too little data: no fault in 400 tests, but a fault that shows in up ")
    assert "go on, or watch coverage" in said


def test_growth_as_json(growth: Callable[..., str]) -> None:
    found = json.loads(growth(1, "--json"))
    kinds = {kind["kind"]: kind for kind in found["kinds"]}
    assert [*kinds] == ["fault", "branch", "line"]
    assert kinds["line"]["unreached"] == 1
    assert kinds["line"]["curve"][-1][1] == kinds["line"]["found"]
    assert found["verdict"]["sentence"].lower().startswith(found["verdict"]["action"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 3), ["campaigns 1 and 3", "harness.py::Books", "harness.py::Quiet"]),
        ((3, 4), ["campaigns 3 and 4 have the same seed"]),
        ((1, 1), ["the same seed"]),
        ((9,), ["no campaign 9"]),
        ((1, "--kind", "lines"), ["did you mean 'line'?"]),
    ],
)
def test_what_cannot_be_read_as_one_is_refused(
    swarmtest: Run,
    place: Path,
    refused: Callable[..., str],
    arguments: tuple[object, ...],
    words: list[str],
) -> None:
    refused(swarmtest("growth", *arguments, cwd=place), *words)
