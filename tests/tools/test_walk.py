"""`tools/walk.py` counts how far a reader has to go to follow a command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

WALK = Path(__file__).resolve().parents[2] / "tools" / "walk.py"


def test_a_walk_lists_files_and_counts_changes_of_folder() -> None:
    done = subprocess.run(
        [sys.executable, WALK, "--list", "strategies"], capture_output=True, text=True
    )
    assert done.returncode == 0
    *files, figures = done.stderr.splitlines()
    assert "coin" in done.stdout
    assert files[0] == "ui/cli.py"
    assert "strategies/strategy.py" in files
    numbers = re.fullmatch(
        r"(\d+) files, (\d+) functions, (\d+) changes of folder \((\d+) at the top\)", figures
    )
    assert numbers is not None
    count, functions, changes, at_the_top = map(int, numbers.groups())
    assert count == len(files) <= functions
    assert 0 < at_the_top <= changes < count
