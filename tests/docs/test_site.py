"""The documentation site: every page is in a menu, and every link and reference leads somewhere."""

import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script that builds the site."""
    spec = importlib.util.spec_from_file_location("site_tool", ROOT / "tools" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of the site, before Sphinx has read them."""
    folder = tmp_path_factory.mktemp("pages")
    tool.write_pages(folder)
    return folder


def check(pages: Path, settings: Path = ROOT / "docs") -> subprocess.CompletedProcess[str]:
    """Let Sphinx read all pages, and stop at warnings; it writes nothing but what it has read."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy"]
    folders = ["-c", settings, "-d", pages / ".doctrees", pages, pages / ".nothing"]
    return subprocess.run([*command, *map(str, folders)], capture_output=True, text=True)


def test_sphinx_has_no_warning_about_any_page(pages: Path) -> None:
    done = check(pages)
    assert done.returncode == 0, done.stderr


def test_a_broken_link_and_a_page_in_no_menu_stop_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Home\n\n[Nowhere](nowhere.md)\n")
    (tmp_path / "lost.md").write_text("# Lost\n")
    done = check(tmp_path)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
    assert "lost.md" in done.stderr


def test_the_reference_has_every_command_and_every_public_name(
    tool: ModuleType, pages: Path
) -> None:
    from swarmtest._exports import read_exports
    from swarmtest.ui.cli import COMMANDS

    commands = (pages / "reference" / "cli.md").read_text()
    assert all(f"\n## swarmtest {name}\n" in commands for name in COMMANDS)
    for package in tool.packages():
        page = (pages / "reference" / f"{package}.md").read_text()
        assert all(f"\n## {name}\n" in page for name in read_exports(package))


def test_pages_that_are_right_already_are_left_alone(tool: ModuleType, pages: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in pages.glob("*.md")}
    (pages / "outdated.md").write_text("# Outdated\n")
    tool.write_pages(pages)
    assert {path: path.stat().st_mtime_ns for path in pages.glob("*.md")} == before


def test_the_examples_in_the_script_are_true(tool: ModuleType) -> None:
    assert doctest.testmod(tool).failed == 0
