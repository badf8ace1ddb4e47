"""Tests of a TOML file's subject, named on the command line: kept, moved, edited, not text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOML = """
[generate]
command = ["python3", "-S", "{here}/gen.py", "{seed}", "{features}"]
suffix = ".bin"
[features]
high = "high"
low = "low"
[[steps]]
name = "look"
run = ["python3", "-S", "-c", "import sys; sys.exit(b'\\\\xff' in sys.stdin.buffer.read())"]
stdin = "{test}"
"""
GENERATOR = """
import random, sys
rng = random.Random(int(sys.argv[1]))
bytes_ = {"high": [254, 255], "low": [0, 65]}
for _ in range(6):
    sys.stdout.buffer.write(bytes([rng.choice(bytes_[rng.choice(sys.argv[2:])])]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    place: Path = tmp_path_factory.mktemp("bytes")
    (place / "gen.py").write_text(GENERATOR)
    (place / "bytes.toml").write_text(TOML)
    done = swarmtest("run", "bytes.toml", "-n", "12", cwd=place)
    assert done.returncode == 1, done.stderr
    return place


@pytest.fixture(scope="module")
def fault(place, swarmtest) -> str:
    shown = json.loads(swarmtest("faults", "--json", cwd=place).stdout.splitlines()[0])
    return str(shown["id"])


def test_a_test_that_is_no_text_is_printed_as_a_dump_and_saved_as_it_is(place, fault, swarmtest):
    done = swarmtest("reduce", fault, "-o", "small.bin", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("00000000: ff ")
    assert (place / "small.bin").read_bytes() == b"\xff"


def test_a_saved_test_whose_subject_is_elsewhere_says_which_it_looked_for(
    place, fault, swarmtest, tmp_path
):
    assert swarmtest("replay", fault, "--save", "saved.json", cwd=place).returncode == 1
    done = swarmtest("replay", place / "saved.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "saved.json is a test of bytes.toml: cannot read bytes.toml" in done.stderr


def test_a_test_that_was_not_kept_is_not_made_again_from_other_features(place, rows, swarmtest):
    trials = rows(place / ".swarmtest" / "swarmtest.db")
    passed = next(row["trial"] for row in trials if row["verdict"] == 0)
    assert swarmtest("replay", f"1#{passed}", cwd=place).returncode == 0
    file = place / "bytes.toml"
    try:
        file.write_text(TOML.replace('high = "high"', 'high = { on = "high", rate = 0.4 }'))
        assert swarmtest("replay", f"1#{passed}", cwd=place).returncode == 0
        file.write_text(TOML.replace('low = "low"', 'low = "low"\nlower = "low"'))
        done = swarmtest("replay", f"1#{passed}", cwd=place)
    finally:
        file.write_text(TOML)
    assert done.returncode == 2
    assert "was not stored, and bytes.toml has other features now" in done.stderr
