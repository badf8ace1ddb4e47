"""The example for every night: the first night finds a new fault, the second one knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from git_repository import Repository, needs_git, repository  # noqa: F401

ROOT = Path(__file__).parents[2]


@needs_git
def test_the_second_night_knows_what_the_first_has_found(
    repository: Repository,  # noqa: F811
) -> None:
    for name in ("stack.py", "nightly.sh"):
        (repository.place / "examples").mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples" / name, repository.place / "examples" / name)
    repository.write(".gitignore", ".swarmtest/\n__pycache__/\n")
    repository.commit("A stack")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = os.environ | {"TIME": "1s", "SLICE": "1s", "PATH": path, "SWARMTEST_WORKERS": "1"}
    nights = [
        subprocess.run(
            ["sh", "examples/nightly.sh"],
            cwd=repository.place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        for _ in range(2)
    ]
    assert [night.returncode for night in nights] == [1, 0], [night.stdout for night in nights]
    assert "new fault" in nights[0].stdout
    assert "is still there" in nights[1].stdout
