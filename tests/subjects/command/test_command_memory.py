"""The memory limit of a worker is for the worker: what it starts has limits of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from swarmtest import Budget, Campaign
from swarmtest.campaign import Limits

SUBJECT = """
[generate]
command = "echo {seed} {features}"
[features]
a = "-a"
[[steps]]
name = "asan"
run = "{here}/program {test}"
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc")
def test_a_program_with_address_sanitizer_runs_in_a_campaign_as_it_does_by_hand(tmp_path: Path):
    """It reserves terabytes of address space, and dies at once where it may not."""
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    words = ["gcc", "-fsanitize=address", "program.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True)
    (tmp_path / "subject.toml").write_text(SUBJECT)
    outcome = Campaign(
        str(tmp_path / "subject.toml"),
        "all-on",
        Budget(tests=4),
        store=":memory:",
        workers=1,
        limits=Limits(memory=1 << 30),
    ).run()
    assert outcome.progress.tests == 4
    assert outcome.faults == []
