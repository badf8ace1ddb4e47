"""Terminals, file names and signatures as they are out there."""

from __future__ import annotations

import json

import pytest

MACHINE = """
from swarmtest import Machine, action

class Disk(Machine):
    steps = 20
    def start(self): self.n = 0
    @action
    def write(self):
        self.n += 1
        if self.n > 12: raise RuntimeError("größe\\u2028 überschritten")
    @action
    def sync(self): self.n = 0
    @action
    def stat(self): pass
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    place = tmp_path_factory.mktemp("awkward")
    (place / "my disk.py").write_text(MACHINE)
    (place / "disk.py").write_text(MACHINE)
    ran = swarmtest("run", "disk.py", "-s", "coin", "-n", 600, "-j", 1, cwd=place)
    assert ran.returncode == 1, ran.stderr
    return place


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize(
    "command", ["faults", "roles", "triage", "growth", "show", "list", "coverage", "strategies"]
)
def test_a_terminal_that_cannot_show_a_character_still_shows_the_rest(
    place, start, command, encoding
):
    process = start(command, cwd=place, PYTHONIOENCODING=encoding)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == (2 if command == "coverage" else 0)
    assert out or command == "coverage"


def test_a_campaign_is_not_ended_by_a_message_that_the_terminal_cannot_show(place, start):
    process = start(
        "run", "disk.py", "-n", 100, "-j", 1, "--store", "plain.db", cwd=place,
        PYTHONIOENCODING="ascii",
    )  # fmt: skip
    out, err = process.communicate(timeout=60)
    assert "100 tests" in out
    assert "gr??e" in out or "gr?" in out
    assert process.returncode == 1, err


def test_a_file_name_with_a_space_gives_code_that_runs(place, swarmtest, tmp_path):
    ran = swarmtest("run", "my disk.py", "-s", "coin", "-n", 200, "-j", 1, "--store", "s.db",
                    cwd=place)  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert "importlib.import_module('my disk').Disk" in ran.stdout
    told = swarmtest("triage", "--store", "s.db", cwd=place).stdout
    assert "swarmtest run 'my disk.py::Disk' --avoid known" in told


def test_a_signature_stays_on_its_line(place, swarmtest):
    out = swarmtest("triage", cwd=place).stdout
    assert "\u2028" not in out
    assert len(out.splitlines()) == 6


@pytest.mark.parametrize("arguments", [("roles",), ("roles", "--kind", "fault"), ("triage",)])
def test_json_has_no_numbers_that_json_does_not_know(place, swarmtest, arguments):
    def refuse(word):
        raise AssertionError(word)

    swarmtest("run", "disk.py", "-s", "all-on", "-n", 300, "-j", 1, "--store", "d.db", cwd=place)
    for store in (".swarmtest/swarmtest.db", "d.db"):
        ran = swarmtest(*arguments, "--json", "--store", store, cwd=place)
        for line in ran.stdout.splitlines():
            json.loads(line, parse_constant=refuse)


def test_a_number_that_is_no_campaign_may_be_a_fault(place, swarmtest):
    refused = swarmtest("roles", "40833", cwd=place)
    assert refused.returncode == 2
    assert "hit '40833'" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("roles", "--raw"), "--raw needs --summary"),
        (("roles", "-o", "x.csv", "--json"), "do not combine it with --json"),
        (("roles", "--confidence", "0.9999999999999999"), "from 0.01 to 0.999999"),
        (("roles", "\u00b2"), "no test of campaign 1 hit"),
        (("triage", "x"), "name campaigns like 7, 3-9, or latest"),
        (("run", "disk.py", "--avoid", "event:full"), "takes a fault's id or 'known'"),
    ],
)
def test_what_does_not_go_together_is_one_line(place, swarmtest, arguments, says):
    refused = swarmtest(*arguments, cwd=place)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert says in refused.stderr


def test_a_fault_may_be_named_twice_and_with_known(place, swarmtest):
    (found,) = map(json.loads, swarmtest("faults", "--json", cwd=place).stdout.splitlines())
    ran = swarmtest(
        "run", "disk.py", "-s", "coin", "-n", 300, "-j", 1, "--seed", 3,
        "--avoid", found["id"], "--avoid", "known", "--avoid", found["id"], cwd=place,
    )  # fmt: skip
    assert ran.stdout.count("avoiding fault") == 1
    shown = swarmtest("show", cwd=place).stdout
    assert f"avoids    fault {found['id']}: no write without sync" in shown
    assert "(avoiding)" in swarmtest("list", cwd=place).stdout
