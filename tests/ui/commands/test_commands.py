"""Each command of the command line, as a real process."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import pytest
from shown_calls import count_calls

from swarmtest.store import open_store

MACHINE = """
from swarmtest import Machine, action, integers, invariant

class Stack(Machine):
    steps = 40
    def start(self): self.items = []
    @action(value=integers(0, 9))
    def push(self, value):
        self.items.append(value)
        if len(self.items) == 15: self.event("fifteen")
    @action(when=lambda self: self.items)
    def pop(self): self.items.pop()
    @action
    def look(self): print("noise", self.items)
    @invariant
    def small(self): assert len(self.items) < 20
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    """A directory with one campaign of 300 tests and one of 1,200 in its store."""
    place = tmp_path_factory.mktemp("cli")
    (place / "stack.py").write_text(MACHINE)
    runs = [
        swarmtest("run", "stack.py", "-n", 300, "-j", 1, "-s", "coin", cwd=place),
        swarmtest("run", "stack.py::Stack", "-n", 1200, "-j", 1, "--json", "--seed", 3, cwd=place),
    ]
    assert [run.returncode for run in runs] == [1, 1], [run.stderr for run in runs]
    (place / "run.txt").write_text(runs[0].stdout)
    (place / "run.jsonl").write_text(runs[1].stdout)
    assert runs[0].stderr == runs[1].stderr == ""
    return place


@pytest.fixture(scope="module")
def fault(place):
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        (found,) = store.faults(1)
    return found


def test_run_says_what_it_does_what_it_found_and_how_to_replay_it(place, fault):
    out = (place / "run.txt").read_text()
    assert out.splitlines()[0].startswith("stack.py::Stack: 3 features, strategy coin, seed 0")
    assert f"new fault {fault.id}" in out
    assert "300 tests" in out
    assert "1 distinct fault" in out
    assert "    machine.push(" in out
    assert f"reduced: {fault.size} steps as in 1#{fault.trial}, but simpler, in " in out
    assert f"replay: swarmtest replay {fault.id}" in out
    assert "noise" not in out


def test_output_that_is_no_terminal_has_no_control_characters(place):
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", (place / "run.txt").read_text())


def test_json_output_parses_line_by_line(place):
    events = [json.loads(line) for line in (place / "run.jsonl").read_text().splitlines()]
    told = [e["event"] for e in events if e["event"] not in ("progress", "reducing")]
    assert told == ["start", "fault", "reduced", "end"]
    assert events[0]["features"] == ["push", "pop", "look"]
    assert events[-1]["progress"]["tests"] == 1200
    assert events[-1]["progress"]["targets"] == 1
    (found,) = events[-1]["faults"]
    assert len(found["test"]["steps"]) == found["size"]
    assert len(found["reduced"]["test"]["steps"]) == 20


def test_quiet_prints_the_result_only(place, swarmtest):
    done = swarmtest("run", "stack.py", "-n", 9, "-j", 1, "-q", "--store", "q.db", cwd=place)
    assert done.stdout.startswith("campaign 1: all tests done: 9 tests")


def test_exit_status_is_0_without_faults(place, swarmtest):
    done = swarmtest(
        *("run", "stack.py", "-n", 9, "-j", 0, "-q", "--store", "zero.db", "--steps", "3"),
        cwd=place,
    )
    assert done.returncode == 0
    assert "0 distinct faults" in done.stdout


def test_list_shows_every_campaign(place, swarmtest):
    done = swarmtest("list", cwd=place)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["1", "2"]
    assert "1,200" in done.stdout


def test_list_as_json_has_numbers_that_programs_can_read(place, swarmtest):
    done = swarmtest("list", "--json", cwd=place)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(int(line["campaign"]), int(line["tests"])) for line in lines] == [(1, 300), (2, 1200)]
    assert all(line["status"] == "finished" for line in lines)


def test_show_tells_totals_features_and_faults(place, swarmtest, fault):
    out = swarmtest("show", 1, cwd=place).stdout
    assert "stack.py::Stack" in out
    assert "300: " in out
    assert fault.id in out
    for feature in ("push", "pop", "look"):
        assert re.search(rf"^{feature} ", out, re.MULTILINE)


def test_show_takes_the_newest_campaign_when_none_is_named(place, swarmtest):
    assert swarmtest("show", cwd=place).stdout.startswith("campaign 2 ")


def test_faults_prints_the_smallest_test(place, swarmtest, fault):
    out = swarmtest("faults", 1, cwd=place).stdout
    assert f"fault {fault.id}" in out
    assert count_calls(out, "machine.push(") == 20
    assert f"swarmtest replay {fault.id}" in out


def test_faults_prints_the_traceback_of_one_fault(place, swarmtest, fault):
    done = swarmtest("faults", 1, fault.id[:4], cwd=place)
    assert "assert len(self.items) < 20" in done.stdout
    assert done.returncode == 0


def test_faults_as_json(place, swarmtest, fault):
    lines = swarmtest("faults", 1, "--json", cwd=place).stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [fault.id]


def test_replay_of_a_failing_trial_shows_what_was_recorded(place, swarmtest, fault):
    done = swarmtest("replay", f"1#{fault.trial}", cwd=place)
    assert done.returncode == 1
    assert "the same as recorded" in done.stdout
    assert f"fault {fault.id}" in done.stdout


def test_replay_of_a_passing_trial_passes(place, swarmtest):
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        trial = next(store.trials(1, verdict=0))
    done = swarmtest("replay", f"1#{trial.trial}", cwd=place)
    assert done.returncode == 0
    assert f"passes: {trial.steps} steps ran" in done.stdout
    assert "the same as recorded" in done.stdout


def test_replay_of_a_failing_trial_that_is_not_the_shortest(place, swarmtest, fault):
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        other = next(t for t in store.trials(1, verdict=1) if t.trial != fault.trial)
    done = swarmtest("replay", f"1#{other.trial}", cwd=place)
    assert done.returncode == 1
    assert "the same as recorded" in done.stdout


def test_a_saved_test_replays_from_its_file(place, swarmtest, fault):
    swarmtest("replay", f"1#{fault.trial}", "--save", "t.json", "--no-run", cwd=place)
    done = swarmtest("replay", "t.json", cwd=place)
    assert done.returncode == 1
    assert f"fault {fault.id}" in done.stdout


def test_a_test_saved_as_python_runs_by_itself(place, swarmtest, fault):
    done = swarmtest("replay", f"1#{fault.trial}", "--save", "t.py", "--no-run", cwd=place)
    assert done.returncode == 0
    ran = subprocess.run(
        [sys.executable, "t.py"], cwd=place, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    assert "AssertionError" in ran.stderr.splitlines()[-1]


def test_export_as_csv_has_a_row_per_test(place, swarmtest):
    done = swarmtest("export", 1, cwd=place)
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [int(row["trial"]) for row in found] == list(range(300))
    assert {row["weight.push"] for row in found} == {"0", "1"}
    assert {row["verdict"] for row in found} == {"passed", "failed"}


def test_export_as_json_lines_to_a_file(place, swarmtest):
    done = swarmtest("export", 1, "-o", "out.jsonl", cwd=place)
    assert (done.returncode, done.stdout) == (0, "")
    found = [json.loads(line) for line in (place / "out.jsonl").read_text().splitlines()]
    assert [row["trial"] for row in found] == list(range(300))


def test_export_as_parquet_to_a_file(place, swarmtest):
    parquet = pytest.importorskip("pyarrow.parquet")
    done = swarmtest("export", 1, "-o", "out.parquet", cwd=place)
    assert done.returncode == 0, done.stderr
    assert parquet.read_table(place / "out.parquet").num_rows == 300


def test_export_to_a_reader_that_closes_early_says_nothing(place):
    script = (
        f"{sys.executable} -P -c 'from swarmtest.ui.cli import main; main()' export 2 -f jsonl"
        " | head -1"
    )
    done = subprocess.run(
        ["sh", "-c", script], cwd=place, capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout)["trial"] == 0
    assert done.stderr == ""


def test_delete_forgets_a_campaign(place, swarmtest, tmp_path):
    swarmtest("run", "stack.py", "-n", 5, "-j", 0, "--store", tmp_path / "d.db", "-q", cwd=place)
    done = swarmtest("delete", 1, "--yes", "--store", tmp_path / "d.db", cwd=place)
    assert (done.returncode, done.stdout) == (0, "campaign 1 is deleted\n")
    assert "no campaign" in swarmtest("list", "--store", tmp_path / "d.db", cwd=place).stdout


def test_delete_asks_first(place, swarmtest, refused):
    done = swarmtest("delete", 1, cwd=place)  # its standard input is empty
    assert done.returncode == 2
    assert "nobody answers, so nothing is deleted: pass --yes to delete" in done.stderr
    assert "finished" in swarmtest("list", cwd=place).stdout


@pytest.mark.parametrize(("answer", "told"), [("n", "kept"), ("y", "deleted")])
def test_delete_does_what_it_is_answered(answer, told, place, swarmtest, tmp_path):
    swarmtest("copy", ".swarmtest/swarmtest.db", tmp_path / "d.db", cwd=place)
    done = subprocess.run(
        [sys.executable, "-m", "swarmtest", "delete", "1", "--store", str(tmp_path / "d.db")],
        input=answer,
        capture_output=True,
        text=True,
        cwd=place,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"campaign 1 is {told}" in done.stdout
    shown = swarmtest("show", 1, "--store", tmp_path / "d.db", cwd=place)
    assert (shown.returncode == 0) == (told == "kept")


def test_campaigns_are_named_by_number_range_or_latest(place, swarmtest, tmp_path):
    store = tmp_path / "copied.db"
    usual = place / ".swarmtest" / "swarmtest.db"
    for campaigns in (["latest"], ["1"], ["1-1"]):
        swarmtest("copy", usual, store, *(f"-c{name}" for name in campaigns), cwd=place)
    numbers = [row["campaign"] for row in json_rows(swarmtest("list", "--json", cwd=place))]
    latest = json.loads(swarmtest("show", "latest", "--json", cwd=place).stdout)
    assert latest["campaign"] == numbers[-1] == 2
    assert latest["totals"]["trials"] == 1200
    assert [fault["tests"] for fault in latest["faults"]] == [latest["totals"]["failed"]]
    done = swarmtest("delete", "1-2", "--yes", "--store", store, cwd=place)
    assert done.stdout == "campaign 1 is deleted\ncampaign 2 is deleted\n", done.stderr


def json_rows(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_list_is_filtered_by_subject_status_and_age(place, swarmtest):
    def numbers(*options):
        done = swarmtest("list", "--json", *options, cwd=place)
        return [row["campaign"] for row in json_rows(done)]

    assert numbers("--subject", "stack", "--status", "finished", "--since", "7d") == [1, 2]
    assert numbers("--status", "interrupted") == numbers("--subject", "queue") == []
    shown = swarmtest("list", "--subject", "queue", cwd=place).stdout
    assert shown.startswith("none of the 2 campaigns in ")
    wrong = swarmtest("list", "--since", "yesterday", cwd=place)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "swarmtest: --since yesterday: write an age like 30m, 12h, 7d or 2w\n",
    )


def test_strategies_lists_all_with_their_parameters(swarmtest, tmp_path):
    from swarmtest.strategies import strategy_names

    out = swarmtest("strategies", cwd=tmp_path).stdout
    for name in strategy_names():
        assert re.search(rf"^{name}(:|$)", out, re.MULTILINE)
    assert "coin:p=0.5,n=0,by=tests" in out


@pytest.mark.parametrize(
    "command", ["", "run", "resume", "list", "show", "faults", "replay", "export", "delete"]
)
def test_every_command_has_help(command, swarmtest, tmp_path):
    done = swarmtest(*command.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")
    assert done.stderr == ""


def test_the_store_can_be_named_by_the_environment(place, swarmtest, tmp_path):
    store = tmp_path / "named.db"
    swarmtest("run", "stack.py", "-n", 5, "-j", 0, "-q", cwd=place, SWARMTEST_STORE=str(store))
    assert store.exists()


def test_a_program_that_prints_does_not_disturb_the_output(place, swarmtest):
    done = swarmtest("run", "stack.py", "-n", 50, "-j", 1, "--json", "--store", "p.db", cwd=place)
    assert all(json.loads(line) for line in done.stdout.splitlines())


def test_a_fault_whose_argument_cannot_be_saved_is_still_reported(tmp_path, swarmtest):
    (tmp_path / "m.py").write_text(
        "from swarmtest import *\n"
        "class M(Machine):\n"
        "    @action(f=lambda rng: lambda: 1)\n"
        "    def go(self, f): raise OSError('found')\n"
    )
    done = swarmtest("run", "m.py", "-n", 5, "-j", 1, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 distinct fault" in done.stdout


def test_a_hypothesis_strategy_that_builds_objects_can_be_used(tmp_path, swarmtest):
    pytest.importorskip("hypothesis")
    (tmp_path / "m.py").write_text(
        "from hypothesis import strategies as st\n"
        "from swarmtest import *\n"
        "class M(Machine):\n"
        "    @action(z=st.builds(complex, st.floats(0, 1)))\n"
        "    def go(self, z): assert isinstance(z, complex)\n"
    )
    done = swarmtest("run", "m.py", "-n", 20, "-j", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
