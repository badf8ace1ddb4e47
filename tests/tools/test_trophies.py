"""The trophies: each script fails with the release that it names; the page lists all of them."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TROPHIES = ROOT / "trophies"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trophies_check", TROPHIES / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def test_every_script_fails_with_the_release_that_it_names(check: ModuleType) -> None:
    command = [sys.executable, str(TROPHIES / "check.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    trophies = check.trophies()
    fixed = done.stdout.count("  fixed in Python ")
    assert fixed <= sum(trophy.may_be_fixed_here for trophy in trophies)
    there = f"{len(trophies) - fixed} of {len(trophies)} bugs are there, {fixed} are fixed here"
    assert there in done.stdout


def test_there_are_many_bugs_of_many_packages(check: ModuleType) -> None:
    trophies = check.trophies()
    assert len(trophies) >= 40
    assert len({trophy.release for trophy in trophies}) >= 15


def test_every_trophy_names_a_hunt_of_under_twenty_lines(check: ModuleType) -> None:
    for trophy in check.trophies():
        file, _, name = trophy.hunt.partition("::")
        tree = ast.parse((trophy.script.parent / file).read_text())
        machine = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
        assert machine.end_lineno is not None
        assert machine.end_lineno - machine.lineno < 20, f"{trophy.name}: {name}"
        re.compile(trophy.fault)


def test_no_script_needs_swarmtest(check: ModuleType) -> None:
    for trophy in check.trophies():
        assert "swarmtest" not in trophy.script.read_text()


def test_the_page_lists_every_trophy(check: ModuleType) -> None:
    page = (ROOT / "docs" / "trophies.md").read_text()
    listed = re.findall(r"\| `(\w+/\w+)\.py` \|", page)
    assert sorted(listed) == sorted(trophy.name for trophy in check.trophies())


def test_a_release_that_cannot_be_installed_is_an_error(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(check, "INSTALL_SECONDS", 0.0)
    with pytest.raises(SystemExit) as ended:
        check.installed_together(["no-such-package-at-all==1.0"])
    assert ended.value.code == 2
