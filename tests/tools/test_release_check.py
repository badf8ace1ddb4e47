"""What `make release-check` and the build say about a release, without building one."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def loaded(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("tools/release_check.py")


@pytest.fixture
def release(tool: ModuleType, tmp_path: Path) -> object:
    return tool.Release(tmp_path, {"3.11": Path(sys.executable)})


def test_every_extra_is_checked(tool: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(tool.EXTRA_IMPORTS) == set(project["optional-dependencies"]) - {"dev"}


def test_changes_that_were_not_gathered_fail_the_check(
    tool: ModuleType, release: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2 (2026-12-01)\n\n## 1.1 (x)\n")
    changes = tmp_path / "changes"
    changes.mkdir()
    (changes / "README.md").write_text("How to.\n")
    assert tool.check_changelog(release) == "1.2 (2026-12-01)"
    (changes / "new.added.md").write_text("Something.\n")
    with pytest.raises(tool.CheckFailed, match=r"1 changes .* 1\.2 DATE --write"):
        tool.check_changelog(release)
    (changes / "new.added.md").unlink()
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2 (unreleased)\n")
    with pytest.raises(tool.CheckFailed, match="unreleased"):
        tool.check_changelog(release)


def test_a_wheel_for_one_python_is_not_given_to_another(tool: ModuleType, release: object) -> None:
    sdist = Path("swarmtest-1.tar.gz")
    vars(release)["files"] = (Path("swarmtest-1-cp311-cp311-linux_x86_64.whl"), sdist)
    assert release.package_for("3.11").suffix == ".whl"  # type: ignore[attr-defined]
    assert release.package_for("3.12") == sdist  # type: ignore[attr-defined]
    vars(release)["files"] = (Path("swarmtest-1-py3-none-any.whl"), sdist)
    assert release.package_for("3.12").suffix == ".whl"  # type: ignore[attr-defined]


def test_a_command_that_fails_fails_the_check(tool: ModuleType) -> None:
    with pytest.raises(tool.CheckFailed, match="exit status 1"):
        tool.run(sys.executable, "-c", "raise SystemExit('no swarmtest here')")
    assert tool.run(sys.executable, "-c", "print(3)") == "3\n"


def test_the_checks_are_listed_with_what_they_do() -> None:
    command = [sys.executable, str(ROOT / "tools" / "release_check.py"), "--list"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "changelog" in shown
    assert all(line.rstrip().endswith(".") for line in shown.splitlines())


def test_links_of_the_readme_work_where_the_repository_is_not() -> None:
    build = loaded("tools/package_links.py")
    assert doctest.testmod(build).failed == 0
    page = (ROOT / "README.md").read_text()
    absolute = build.with_absolute_links(page, "https://example.org/swarmtest")
    assert "(https://example.org/swarmtest/raw/HEAD/docs/pictures/terminal.svg)" in absolute
    assert "(https://example.org/swarmtest/blob/HEAD/docs/tutorial.md)" in absolute
    assert "](docs/" not in absolute
    assert "](docs/" not in build.with_absolute_links(page, "")


def test_every_file_that_the_readme_links_to_exists() -> None:
    page = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page)
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []
    assert len(page.splitlines()) <= 150


def test_the_picture_of_a_terminal_shows_what_a_command_prints(tmp_path: Path) -> None:
    picture = tmp_path / "terminal.svg"
    (tmp_path / "empty").mkdir()
    script = ROOT / "tools" / "terminal_picture.py"
    words = [sys.executable, script, picture, "swarmtest --version", "--in", tmp_path / "empty"]
    subprocess.run([str(word) for word in words], check=True, capture_output=True, env=os.environ)
    drawn = picture.read_text().replace("&#160;", " ")
    assert "$ " in drawn
    assert "swarmtest, version " in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
