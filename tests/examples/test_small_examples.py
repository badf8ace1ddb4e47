"""Each example's README is true: its commands print what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from console_sessions import Run, check_console
from debian_packages import need

EXAMPLES = Path(__file__).parents[2] / "examples"
READMES = sorted(EXAMPLES.glob("*/README.md"))
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_there_are_eight_examples_and_an_index_of_them():
    index = (EXAMPLES / "README.md").read_text()
    assert len(READMES) >= 8
    assert all(f"]({readme.parent.name}/README.md)" in index for readme in READMES)


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_an_example_shows_what_its_page_says(
    readme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swarmtest: Run
) -> None:
    if readme.parent.name == "c_library":
        need("gcc")
    place = tmp_path / readme.parent.name
    shutil.copytree(readme.parent, place, ignore=shutil.ignore_patterns("*.so", ".swarmtest"))
    monkeypatch.chdir(place)
    text = readme.read_text()
    assert len(text.splitlines()) <= 16
    sessions = CONSOLE.findall(text)
    assert sessions
    for session in sessions:
        check_console(session, swarmtest)
