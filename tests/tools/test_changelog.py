"""One file per change, joined into the changelog at a release."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("changelog", ROOT / "tools" / "changelog.py")
assert SPEC is not None
assert SPEC.loader is not None
changelog = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(changelog)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two changes and a changelog of one release."""
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("# How\n")
    (tmp_path / "changes" / "hang.fixed.md").write_text("A hang is over.\n")
    (tmp_path / "changes" / "race.added.md").write_text("`race` counts.\nIt adds, too.\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 0.1.0 (2026-01-01)\n\n- Everything.\n"
    )
    return tmp_path


def test_changes_become_the_section_of_a_release_and_are_deleted(project: Path) -> None:
    changelog.main(["0.2.0", "2026-12-01", "--write"], project)
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n"
        "Added:\n\n- `race` counts.\n  It adds, too.\n\n"
        "Fixed:\n\n- A hang is over.\n\n"
        "## 0.1.0 (2026-01-01)\n\n- Everything.\n"
    )
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]


def test_an_unreleased_section_gets_the_changes_and_the_date(project: Path) -> None:
    file = project / "CHANGELOG.md"
    file.write_text(
        "# Changelog\n\n## 0.2.0 (unreleased)\n\n- Before.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n"
    )
    changelog.main(["0.2.0", "2026-12-01", "--write"], project)
    text = file.read_text()
    assert text.startswith(
        "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n- Before.\n\nAdded:\n\n- `race`"
    )
    assert text.endswith("- A hang is over.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n")
    assert "unreleased" not in text


def test_without_write_the_section_is_only_shown(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (project / "CHANGELOG.md").read_text()
    changelog.main(["0.2.0", "2026-12-01"], project)
    assert "Fixed:\n\n- A hang is over.\n" in capsys.readouterr().out
    assert (project / "CHANGELOG.md").read_text() == before
    assert (project / "changes" / "hang.fixed.md").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("hang.md", "A hang.", "name it NAME.KIND.md"),
        ("hang.repaired.md", "A hang.", "KIND one of added, changed, fixed, removed"),
        ("hang.fixed.txt", "A hang.", "name it NAME.KIND.md"),
        ("hang.fixed.md", "", "write sentences"),
        ("hang.fixed.md", "- A hang.", "without a bullet"),
    ],
)
def test_a_file_that_cannot_be_joined_is_named(
    project: Path, name: str, text: str, message: str
) -> None:
    (project / "changes" / name).write_text(text)
    with pytest.raises(SystemExit, match=message):
        changelog.main(["0.2.0", "2026-12-01"], project)


def test_our_own_changes_can_be_joined() -> None:
    changelog.read_changes(ROOT / "changes")


def test_a_link_begins_beside_the_changelog(project: Path) -> None:
    (project / "changes" / "lost.added.md").write_text("See [races](../docs/races.md).\n")
    with pytest.raises(SystemExit, match=r"\.\./docs/races\.md is not there"):
        changelog.main(["0.2.0", "2026-12-01"], project)


def test_the_changes_of_this_repository_can_be_joined() -> None:
    assert changelog.read_changes(ROOT / "changes") is not None
