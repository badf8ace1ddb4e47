"""Which failures are one fault, as a user sees it; and how a user decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DESK = """\
from swarmtest import Machine, action, integers

class Drawer:
    def verify(self, sizes):
        lines = "".join(f"\\n  Box({size})" for size in sizes)
        raise ValueError("overlaps ancestor" + lines)

class A(Machine):
    steps = 4

    @action(n=integers(0, 30))
    def go(self, n):
        seen = list(range(n % 5))
        assert n != 3
        assert n != 5
        assert n != 7
        if n > 28:
            Drawer().verify(range(n - 25))
        assert len(seen) < 9
"""
RUN = ("-n", 400, "-j", 1, "-s", "coin", "-q")


def faults_of(swarmtest: Any, place: Path, *words: object) -> list[dict[str, Any]]:
    printed = swarmtest("faults", *words, "--json", cwd=place).stdout
    return [json.loads(line) for line in printed.splitlines()]


@pytest.fixture
def desk(swarmtest: Any, tmp_path: Path) -> Path:
    """A directory with two files that have the same machine, and a campaign of each."""
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(DESK)
        assert swarmtest("run", name, *RUN, cwd=tmp_path).returncode == 1
    return tmp_path


def test_each_assert_is_a_fault_and_a_message_of_any_length_is_one(
    swarmtest: Any, desk: Path
) -> None:
    found = faults_of(swarmtest, desk, 1)
    assert sorted(fault["signature"] for fault in found) == [
        "AssertionError [A.go: assert n != 3]",
        "AssertionError [A.go: assert n != 5]",
        "AssertionError [A.go: assert n != 7]",
        "ValueError: overlaps ancestor… [Drawer.verify]",
    ]
    shown = swarmtest("faults", 1, cwd=desk).stdout
    assert "  values:\n    n = 3\n" in shown
    traceback = swarmtest("faults", 1, found[0]["id"], cwd=desk).stdout
    assert "one.py" in traceback
    assert "<swarmtest" not in traceback
    assert "/swarmtest/" not in traceback


def test_two_files_with_the_same_machine_share_no_fault(swarmtest: Any, desk: Path) -> None:
    first, second = (faults_of(swarmtest, desk, number) for number in (1, 2))
    assert {f["signature"] for f in first} == {f["signature"] for f in second}
    assert not {f["id"] for f in first} & {f["id"] for f in second}
    replayed = swarmtest("replay", second[0]["id"], cwd=desk)
    assert "from two import A" in replayed.stdout
    assert "the same as recorded" in replayed.stdout


def test_faults_are_merged_and_split_by_hand_and_it_is_taken_back(
    swarmtest: Any, desk: Path
) -> None:
    one, other = (fault["id"] for fault in faults_of(swarmtest, desk, 1)[:2])
    counts = {fault["id"]: fault["count"] for fault in faults_of(swarmtest, desk, 1)}
    assert swarmtest("faults", "--merge", one, other, cwd=desk).returncode == 0
    merged = {fault["id"]: fault for fault in faults_of(swarmtest, desk, 1)}
    assert other not in merged
    assert (merged[one]["count"], merged[one]["also"]) == (counts[one] + counts[other], [other])
    assert f"also seen as {other}" in swarmtest("faults", 1, other, cwd=desk).stdout
    assert f"fault:{other}" not in swarmtest("roles", 1, cwd=desk).stdout
    assert "the same as recorded" in swarmtest("replay", other, cwd=desk).stdout
    assert swarmtest("report", 1, "-o", "page.html", cwd=desk).returncode == 0
    page = (desk / "page.html").read_text()
    assert page.count(f"also seen as {other}: ") == 1
    assert "(merged by hand)" in page
    assert f'id="fault-{other}"' not in page
    assert swarmtest("faults", "--split", one, cwd=desk).returncode == 0
    assert {f["id"]: f["count"] for f in faults_of(swarmtest, desk, 1)} == counts
    assert swarmtest("faults", "--undo", one, cwd=desk).returncode == 0
    refused = swarmtest("faults", "--undo", one, cwd=desk)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("words", [("--split", "nothing"), ("--merge", "ab", "cd")])
def test_an_unknown_fault_is_refused_in_one_line(swarmtest: Any, desk: Path, words: Any) -> None:
    refused = swarmtest("faults", *words, cwd=desk)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
