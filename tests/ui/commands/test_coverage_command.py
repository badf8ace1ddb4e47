"""`swarmtest coverage`: tables, sources, targets and files for other tools."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

FILES = {
    "pyproject.toml": "",
    "lib/shelf.py": """
class Shelf:
    def __init__(self):
        self.books = []

    def put(self, book):
        if len(self.books) > 3:
            raise OverflowError
        self.books.append(book)

    def never(self):
        if self.books:
            return 1
        return 2
""",
    "lib/harness.py": """
from shelf import Shelf
from swarmtest import Machine, action

class Books(Machine):
    steps = 5
    def start(self):
        self.shelf = Shelf()
    @action(raises=OverflowError)
    def put(self):
        self.shelf.put(1)
        self.event("something was put")

class NoBooks(Machine):
    @action
    def think(self):
        self.event("thought")
""",
}


def write(place: Path, files: dict[str, str] = FILES) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, swarmtest: Run) -> Path:
    """A project whose campaign 1 watched lib/shelf.py."""
    place = tmp_path_factory.mktemp("shelf")
    write(place)
    options = ("-n", 20, "-j", 1, "--coverage", "line,branch", "--cover", "shelf")
    done = swarmtest("run", "lib/harness.py::Books", *options, cwd=place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def run(swarmtest: Run, place: Path) -> Run:
    def go(*arguments: object, cwd: Path = place) -> subprocess.CompletedProcess[str]:
        store = place / ".swarmtest" / "swarmtest.db"
        done = swarmtest("coverage", *arguments, "--store", store, cwd=cwd)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done

    return go


# A file, line by line


@pytest.mark.parametrize("name", ["lib/shelf.py", "shelf.py", "./lib/shelf.py"])
def test_a_file_is_found_by_its_name_or_the_end_of_its_path(run: Run, name: str) -> None:
    assert "    20     9          self.books.append(book)" in run("--show", name).stdout


def test_a_file_is_found_by_its_place(run: Run, place: Path) -> None:
    assert "class Shelf" in run("--show", place / "lib" / "shelf.py").stdout


def test_a_name_that_two_files_have_is_refused(
    swarmtest: Run, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "two.lcov").write_text(
        "SF:a/x.c\nDA:1,1\nend_of_record\nSF:b/x.c\nDA:1,1\nend_of_record\n"
    )
    swarmtest("import-coverage", "two.lcov", cwd=tmp_path)
    refused(swarmtest("coverage", "--show", "x.c", cwd=tmp_path), "a/x.c, b/x.c", "give its path")


def test_form_feeds_do_not_shift_the_lines(swarmtest: Run, tmp_path: Path) -> None:
    (tmp_path / "pages.py").write_text('A = 1\n\x0c\nB = """\x1c\u2028"""\nC = 3\n')
    (tmp_path / "p.lcov").write_text("SF:pages.py\nDA:1,1\nDA:3,1\nDA:4,1\nend_of_record\n")
    swarmtest("import-coverage", "p.lcov", cwd=tmp_path)
    shown = swarmtest("coverage", "--show", "pages.py", cwd=tmp_path).stdout
    assert shown.split("\n")[-2] == "    1     4  C = 3"


def test_a_file_that_was_edited_since_is_said(swarmtest: Run, tmp_path: Path) -> None:
    write(tmp_path)
    options = ("-n", 5, "-j", 1, "--coverage", "line")
    swarmtest("run", "lib/harness.py::Books", *options, cwd=tmp_path)
    (tmp_path / "lib" / "shelf.py").write_text("# all is new\n")
    shown = swarmtest("coverage", "--show", "shelf.py", cwd=tmp_path).stdout
    note = "lib/shelf.py has changed since campaign 1"
    assert f"{note}; shown is what was tested" in shown
    exported = swarmtest("coverage", "-o", "x.lcov", cwd=tmp_path).stdout
    assert f"{note}; exported is what was tested" in exported


# Targets


def test_targets_are_in_the_order_of_their_lines(run: Run) -> None:
    rows = run("--targets", "--kind", "line", "--unreached").stdout.splitlines()[2:]
    assert [row.split()[0] for row in rows] == [f"line:lib/shelf.py:{n}" for n in (12, 13, 14)]


def test_targets_of_one_kind_or_file(run: Run) -> None:
    rows = run("--targets", "--kind", "branch", "--file", "shelf.py").stdout.splitlines()[2:]
    assert {row.split()[0] for row in rows} == {
        f"branch:lib/shelf.py:{arc}" for arc in ("7->8", "7->9", "12->13", "12->14")
    }


def test_events_are_targets_too(run: Run) -> None:
    rows = run("--targets", "--kind", "event").stdout.splitlines()[2:]
    assert rows == ["event:something was put     20   100%"]
    assert "event" not in run().stdout


def test_events_alone_can_be_listed(
    swarmtest: Run, tmp_path: Path, refused: Callable[..., str]
) -> None:
    write(tmp_path)
    swarmtest("run", "lib/harness.py::NoBooks", "-n", 5, "-j", 1, cwd=tmp_path)
    listed = swarmtest("coverage", "--targets", cwd=tmp_path).stdout
    assert listed.splitlines()[2:] == ["event:thought      5   100%"]
    refused(swarmtest("coverage", cwd=tmp_path), "measured no coverage")


def test_a_run_that_watched_nothing_says_what_it_was_asked_to_watch(
    swarmtest: Run, tmp_path: Path, refused: Callable[..., str]
) -> None:
    write(tmp_path)
    options = ("-n", 5, "-j", 1, "--coverage", "line", "--cover", "colorsys")
    swarmtest("run", "lib/harness.py::NoBooks", *options, cwd=tmp_path)
    done = swarmtest("coverage", cwd=tmp_path)
    refused(done, "watched nothing", "imported nothing that --cover colorsys names")


def test_a_terminal_gets_a_table_of_its_width(swarmtest: Run, tmp_path: Path) -> None:
    lines = "".join(f"DA:{n},{1 - n % 2}\n" for n in range(1, 99))
    (tmp_path / "a.lcov").write_text(f"SF:a.c\n{lines}end_of_record\n")
    swarmtest("import-coverage", "a.lcov", cwd=tmp_path)
    assert "95, 97" in swarmtest("coverage", cwd=tmp_path).stdout
    master, slave = pty.openpty()
    program = [sys.executable, "-c", "from swarmtest.ui.cli import main; main()", "coverage"]
    environment = {**os.environ, "COLUMNS": "60"}
    subprocess.run(program, cwd=tmp_path, stdout=slave, env=environment, check=True)
    os.close(slave)
    printed = os.read(master, 100_000).decode().splitlines()
    os.close(master)
    assert max(map(len, printed)) <= 60
    assert printed[2].endswith(" more")


# Files for other tools


@pytest.mark.parametrize("where", [".", "lib", ".."])
def test_other_tools_find_the_files_wherever_they_are_started(
    run: Run, place: Path, tmp_path: Path, where: str
) -> None:
    here = place / where
    data = tmp_path / ".coverage"
    run("-o", data, cwd=here)
    words = [sys.executable, "-m", "coverage", "report", f"--data-file={data}"]
    report = subprocess.run(words, cwd=here, capture_output=True, text=True)
    assert "67%" in report.stdout, report.stdout + report.stderr
    for name, start in (("x.lcov", "SF:"), ("x.xml", 'filename="')):
        run("-o", tmp_path / name, cwd=here)
        file = (tmp_path / name).read_text().split(start)[1].splitlines()[0].split('"')[0]
        assert (here / file).samefile(place / "lib" / "shelf.py")


def test_a_module_of_the_standard_library_is_exported_from_its_place(
    swarmtest: Run, tmp_path: Path
) -> None:
    (tmp_path / "harness.py").write_text(
        "import colorsys\nfrom swarmtest import Machine, action\n"
        "class Colours(Machine):\n    @action\n"
        "    def grey(self):\n        colorsys.rgb_to_hsv(1, 1, 1)\n"
    )
    options = ("-n", 5, "-j", 1, "--coverage", "line", "--cover", "colorsys")
    swarmtest("run", "harness.py", *options, cwd=tmp_path)
    swarmtest("coverage", "-o", "out.lcov", cwd=tmp_path)
    import colorsys

    assert f"SF:{os.path.realpath(colorsys.__file__)}\n" in (tmp_path / "out.lcov").read_text()


def test_data_without_any_branch_taken_still_combine_with_branch_data(
    swarmtest: Run, tmp_path: Path
) -> None:
    (tmp_path / "plain.py").write_text("def f():\n    return 1\n")
    (tmp_path / "harness.py").write_text(
        "import plain\nfrom swarmtest import Machine, action\n"
        "class Plain(Machine):\n    @action\n    def go(self):\n        plain.f()\n"
    )
    swarmtest("run", "harness.py", "-n", 5, "--coverage", "line,branch", cwd=tmp_path)
    swarmtest("coverage", "-o", ".coverage.swarm", cwd=tmp_path)
    words = [sys.executable, "-m", "coverage"]
    subprocess.run([*words, "run", "--branch", "-p", "plain.py"], cwd=tmp_path, check=True)
    done = subprocess.run([*words, "combine"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["x.JSON", "x.Info", "x.XML", "data", "x.coverage", ".coverage.1"])
def test_the_ending_chooses_the_format(run: Run, tmp_path: Path, name: str) -> None:
    run("-o", tmp_path / name)
    start = (tmp_path / name).read_bytes()[:7]
    known = {"x.JSON": b"{\n", "x.Info": b"TN:\n", "x.XML": b"<?xml "}
    assert start.startswith(known.get(name, b"SQLite "))


def test_json_tells_where_files_are(run: Run, place: Path) -> None:
    (file,) = json.loads(run("--json").stdout)["files"]
    assert file["path"] == str(place / "lib" / "shelf.py")


def test_what_coverage_py_cannot_show_is_refused(
    swarmtest: Run, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "a.lcov").write_text("SF:calc.c\nDA:1,1\nend_of_record\n")
    swarmtest("import-coverage", "a.lcov", cwd=tmp_path)
    done = swarmtest("coverage", "-o", ".coverage", cwd=tmp_path)
    refused(done, "can show Python only, not calc.c", "write coverage.lcov instead")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "out.txt"], ["out.txt", ".json, .lcov (.info), .xml (Cobertura)", ".coverage"]),
        (["-o", "-"], ["coverage is written as"]),
        (["--by-test"], ["--by-test needs -o FILE"]),
        (["--targets", "--json"], ["--targets and --json cannot be combined"]),
        (["--show", "shelf.py", "-o", "a.xml"], ["--show and -o cannot be combined"]),
        (["--kind", "line"], ["--kind needs --targets"]),
        (["--unreached"], ["--unreached needs --targets"]),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(
    swarmtest: Run, place: Path, refused: Callable[..., str], options: list[str], words: list[str]
) -> None:
    refused(swarmtest("coverage", *options, cwd=place), *words)
