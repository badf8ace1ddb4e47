"""`swarmtest roles`, `triage` and `run --avoid`, as a user meets them."""

from __future__ import annotations

import csv
import json

import pytest

MACHINE = """
from swarmtest import Machine, action

class Files(Machine):
    steps = 40
    def start(self): self.open, self.links = 0, 0
    @action
    def opens(self):
        self.open += 1
        if self.open == 6: self.event("six open")
    @action
    def closes(self): self.open = 0
    @action
    def link(self): self.links += 1
    @action
    def stat(self):
        if self.open >= 10: raise RuntimeError("table overflows")
    @action
    def rename(self):
        if self.links >= 13: raise LookupError("lost")
    @action
    def sync(self): pass
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    """Campaign 1: a swarm; 2: all features always on; 3: a swarm with coverage."""
    place = tmp_path_factory.mktemp("roles")
    (place / "files.py").write_text(MACHINE)
    for arguments in (
        ("-s", "coin", "-n", 3000),
        ("-s", "all-on", "-n", 600),
        ("-s", "layered", "-n", 1000, "--coverage", "line", "--seed", 1),
    ):
        ran = swarmtest("run", "files.py", "-j", 1, *arguments, cwd=place)
        assert ran.returncode in (0, 1), ran.stderr
        (place / f"run{arguments[1]}.txt").write_text(ran.stdout)
    (place / "calm.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Calm(Machine):\n    @action\n    def a(self): pass\n"
        "    @action\n    def b(self): pass\n"
    )
    swarmtest("run", "calm.py", "-n", 20, "--store", "calm.db", "-j", 1, cwd=place)
    return place


@pytest.fixture(scope="module")
def overflow(place, swarmtest):
    """The id of the fault "table overflows"."""
    out = swarmtest("faults", 1, "--json", cwd=place).stdout
    found = [json.loads(line) for line in out.splitlines()]
    return next(fault["id"] for fault in found if "overflows" in fault["signature"])


def test_a_run_ends_with_the_triggers_of_what_it_found(place):
    out = (place / "runcoin.txt").read_text()
    assert "triggers: opens, stat; suppressors: " in out or "triggers: stat, opens;" in out
    assert "why, with intervals: swarmtest roles 1" in out


def test_each_fault_has_its_intervals_drawn(place, swarmtest, overflow):
    out = swarmtest("roles", 1, overflow, cwd=place).stdout
    bars = {line.split()[0]: line for line in out.splitlines() if "chance 50%" in line}
    assert "trigger " in bars["opens"]
    assert "suppressor" in bars["closes"]
    assert bars["stat"].rstrip().endswith("chance 50%")
    assert "●" in bars["opens"]


def test_faults_show_test_bars_and_the_commands_to_replay_and_to_go_on(place, swarmtest, overflow):
    out = swarmtest("faults", 1, overflow, cwd=place).stdout
    assert "triggers and suppressors:" in out
    assert "machine.opens()" in out
    assert f"replay: swarmtest replay {overflow}" in out
    assert f"go on without it: swarmtest run files.py::Files --avoid {overflow}" in out


def test_events_are_targets_too(place, swarmtest):
    out = swarmtest("roles", 1, "event:six open", cwd=place).stdout
    assert out.startswith("event:six open")
    assert "opens" in out.split("trigger ")[0]


def test_a_line_is_found_by_its_file_and_number(place, swarmtest):
    out = swarmtest("roles", 3, "files.py:9", cwd=place).stdout
    assert out.startswith("line:files.py:9")


def test_the_summary_is_a_table_like_the_papers(place, swarmtest):
    out = swarmtest("roles", 3, "--kind", "line", "--summary", cwd=place).stdout
    head, _, *rows = out.splitlines()
    assert head.split() == ["trigger", "of", "lines", "suppressor", "of", "lines"]
    assert len(rows) == 7
    assert "with enough hits to tell" in rows[-1]


def test_every_interval_can_be_written_as_csv(place, swarmtest, tmp_path):
    file = tmp_path / "roles.csv"
    assert swarmtest("roles", 1, "-o", file, cwd=place).returncode == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 2 * 6
    assert {"target", "feature", "role", "low", "high", "base", "adjusted"} <= rows[0].keys()
    assert all(float(row["low"]) <= float(row["share"]) <= float(row["high"]) for row in rows)


def test_json_has_both_questions_and_the_pairs(place, swarmtest, overflow):
    told = json.loads(swarmtest("roles", 1, overflow, "--json", cwd=place).stdout)
    assert {"target", "hits", "tests", "confidence", "roles", "amounts", "pairs"} <= told.keys()
    by_name = {role["feature"]: role for role in told["roles"]}
    assert by_name["opens"]["role"] == "trigger"
    assert by_name["closes"]["role"] == "suppressor"


def test_a_wider_confidence_makes_wider_intervals(place, swarmtest, overflow):
    widths = []
    for confidence in (0.8, 0.99):
        arguments = (overflow, "--json", "--confidence", confidence)
        told = json.loads(swarmtest("roles", 1, *arguments, cwd=place).stdout)
        closes = next(role for role in told["roles"] if role["feature"] == "sync")
        widths.append(closes["high"] - closes["low"])
    assert widths[0] < widths[1]


def test_where_every_feature_is_always_on_amounts_still_answer(place, swarmtest):
    out = swarmtest("roles", 2, "event:six open", cwd=place).stdout
    assert "never left to chance in these tests: opens, closes" in out
    assert "opens   more" in out


def test_triage_orders_faults_and_says_how_to_go_on(place, swarmtest, overflow):
    out = swarmtest("triage", 1, cwd=place).stdout
    assert overflow in out
    assert "continue without them: swarmtest run files.py::Files --avoid known" in out


def test_triage_of_a_campaign_without_faults_says_so(place, swarmtest):
    out = swarmtest("triage", "--store", "calm.db", cwd=place).stdout
    assert out == "campaign 1 found no fault\n"


def test_what_is_avoided_hardly_shows_again_and_others_do(place, swarmtest, overflow):
    ran = swarmtest(
        "run", "files.py", "-s", "coin", "-n", 3000, "-j", 1, "--avoid", overflow, cwd=place
    )
    assert ran.stdout.startswith(f"avoiding fault {overflow}: no opens, stat without closes (")
    listed = swarmtest("faults", "--json", cwd=place).stdout
    counts = {fault["id"]: fault["count"] for fault in map(json.loads, listed.splitlines())}
    before = swarmtest("faults", 1, "--json", cwd=place).stdout
    known = {fault["id"]: fault["count"] for fault in map(json.loads, before.splitlines())}
    assert counts.get(overflow, 0) < known[overflow] / 5
    assert set(counts) - {overflow}


def test_an_avoiding_campaign_resumes_and_replays_with_the_same_configurations(
    place, swarmtest, rows, overflow
):
    arguments = ("run", "files.py", "-s", "coin", "--seed", 5, "-j", 1, "--avoid", overflow)
    swarmtest(*arguments, "-n", 60, "--store", "whole.db", cwd=place)
    refused = swarmtest(*arguments, "-n", 60, "--store", "whole.db", cwd=place)
    assert refused.returncode == 2  # a new store knows of no fault
    assert "no earlier campaign of files.py::Files" in refused.stderr
    ran = swarmtest(*arguments, "-n", 60, cwd=place)
    number = ran.stdout.split("campaign ")[1].split(":")[0]
    more = swarmtest("resume", number, "-n", 90, "-j", 1, cwd=place)
    assert f"campaign {number}: all tests done: 90 tests" in more.stdout
    replayed = swarmtest("replay", f"{number}#3", cwd=place)
    assert "the same as recorded" in replayed.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("roles", 99), "no campaign 99"),
        (("roles", 1, "deadbeef"), "no test of campaign 1 hit 'deadbeef'"),
        (("roles", 1, "event:six opne"), "did you mean 'event:six open'?"),
        (("roles", 1, "--kind", "lime"), "no test hit a target of kind 'lime'"),
        (("roles", "--store", "calm.db"), "campaign 1 found no fault"),
        (("roles", 2, "--kind", "event"), "all features were always on"),
        (("roles", 1, "--confidence", 95), "from 0.01 to 0.999999"),
        (("roles", 1, "--kind", "event", "event:six open"), "do not name a target"),
        (("roles", 1, "-o", "no/such/roles.csv"), "cannot write no/such/roles.csv"),
        (("triage", 99), "no campaign 99"),
        (("run", "files.py", "--avoid", "deadbeef"), "takes a fault's id or 'known'"),
    ],
)
def test_what_cannot_be_answered_is_one_line(place, swarmtest, arguments, says):
    refused = swarmtest(*arguments, cwd=place)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert says in refused.stderr


def test_a_machine_that_changed_between_campaigns_is_told_and_not_compared(tmp_path, swarmtest):
    for seed, limit in enumerate((10, 8)):
        (tmp_path / "files.py").write_text(MACHINE.replace(">= 10", f">= {limit}"))
        arguments = ("-s", ("coin", "layered")[seed], "--seed", seed, "-n", 400, "-j", 1)
        swarmtest("run", "files.py", *arguments, cwd=tmp_path)
    roles = swarmtest("roles", 1, 2, cwd=tmp_path)
    assert roles.returncode == 0
    assert "files.py was changed between campaigns 1 and 2" in roles.stderr
    compared = swarmtest("compare", 1, 2, cwd=tmp_path)
    assert compared.returncode == 2
    assert "cannot be compared: files.py was changed" in compared.stderr


def test_campaigns_that_avoid_are_compared_among_themselves_only(place, swarmtest, overflow):
    for strategy in ("coin", "layered"):
        arguments = ("-s", strategy, "--seed", 9, "-n", 100, "-j", 1, "--avoid", overflow)
        swarmtest("run", "files.py", *arguments, cwd=place)
    listed = map(json.loads, swarmtest("list", "--json", cwd=place).stdout.splitlines())
    *_, one, other = (campaign["campaign"] for campaign in listed)
    compared = swarmtest("compare", one, other, "--baseline", "layered", cwd=place)
    assert "baseline layered (avoiding)" in compared.stdout, compared.stderr
    refused = swarmtest("compare", 3, one, cwd=place)
    assert refused.returncode == 2
    assert "cannot be compared" in refused.stderr
