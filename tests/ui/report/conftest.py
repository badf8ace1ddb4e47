"""Real campaigns of small programs, to be reported."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory, swarmtest: Command) -> Callable[..., Path]:
    """A new directory with the programs, in which some campaigns were run."""

    def run(*campaigns: str) -> Path:
        place = tmp_path_factory.mktemp("workshop")
        for program in PROGRAMS.glob("*.py"):
            shutil.copy(program, place)
        for campaign in campaigns:
            done = swarmtest("run", *campaign.split(), "-q", "-j", 1, cwd=place)
            assert done.returncode in (0, 1), done.stderr
        return place

    return run


@pytest.fixture(scope="session")
def filesystem(workshop: Callable[..., Path]) -> Path:
    """Coin and all-on, two seeds each, with coverage; campaign 5 is another subject."""
    usual = "fs_machine.py --tests 600 --coverage line,branch"
    return workshop(
        f"{usual} --strategy coin --seed 0",
        f"{usual} --strategy all-on --seed 0",
        f"{usual} --strategy coin --seed 1",
        f"{usual} --strategy all-on --seed 1",
        "hostile.py --strategy coin --tests 300 --coverage line,path",
    )


@pytest.fixture(scope="session")
def store(filesystem: Path) -> Path:
    """Where its campaigns are."""
    return filesystem / ".swarmtest" / "swarmtest.db"
