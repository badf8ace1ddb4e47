"""Data about an earlier version of a file is found although the file, or the machine, changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, needs_git, repository

from swarmtest.core.targets import Source
from swarmtest.focus.history import EarlierVersion, matching_source
from swarmtest.languages.changes import earlier_names

__all__ = ["repository"]

CART = "".join(f"def step_{i}(cart):\n    return cart.go({i})\n\n\n" for i in range(8))
EDITED = CART.replace("cart.go(3)", "cart.back(3)")
OTHER = "import os\n\nprint(os.name)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without git that holds `shop/cart.py`."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/cart.py").write_text(EDITED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def never_renamed(place: str) -> tuple[str, ...]:
    return ()


def test_the_same_place_is_the_same_file(project: Path) -> None:
    stored = Source("elsewhere/cart.py", CART, str(project / "shop/cart.py"))
    assert matching_source("shop/cart.py", [stored]) == EarlierVersion(stored)


def test_a_store_from_another_machine_is_known_by_its_paths(project: Path) -> None:
    stored = Source("shop/cart.py", CART, "/builds/7/shop/cart.py")
    other = Source("shop/other.py", CART, "/builds/7/shop/other.py")
    assert matching_source("shop/cart.py", [other, stored]) == EarlierVersion(stored)


def test_of_several_versions_the_same_text_wins_and_else_the_most_alike(project: Path) -> None:
    old, same = Source("shop/cart.py", CART), Source("shop/cart.py", EDITED)
    older = Source("shop/cart.py", CART[: len(CART) // 2])
    assert matching_source("shop/cart.py", [old, same, older]) == EarlierVersion(same)
    assert matching_source("shop/cart.py", [older, old]) == EarlierVersion(old)


def test_a_path_from_another_directory_is_known_by_its_end(project: Path) -> None:
    stored = Source("src/shop/cart.py", CART, "/builds/7/src/shop/cart.py")
    found = matching_source("shop/cart.py", [stored], never_renamed)
    assert found == EarlierVersion(stored, "src/shop/cart.py")


def test_a_renamed_file_without_git_is_known_by_its_content(project: Path) -> None:
    stored = Source("shop/basket.py", CART, "/builds/7/shop/basket.py")
    strange = Source("shop/strange.py", OTHER, "/builds/7/shop/strange.py")
    found = matching_source("shop/cart.py", [strange, stored], never_renamed)
    assert found == EarlierVersion(stored, "shop/basket.py")


def test_a_copy_is_not_taken_for_its_original_that_is_still_there(project: Path) -> None:
    (project / "shop/basket.py").write_text(CART)
    stored = Source("shop/basket.py", CART, "/builds/7/shop/basket.py")
    assert matching_source("shop/cart.py", [stored], never_renamed) is None


def test_a_new_file_has_no_earlier_version(project: Path) -> None:
    assert matching_source("shop/cart.py", [Source("a.py", OTHER), Source("b.py", "")]) is None
    assert matching_source("shop/none.py", [Source("shop/none.py", OTHER)]) is None


@needs_git
def test_git_knows_the_earlier_names_also_those_not_committed_yet(repository: Repository) -> None:
    repository.write("shop/basket.py", CART)
    repository.commit()
    (repository.place / "store").mkdir()
    repository.git("mv", "shop/basket.py", "store/bag.py")
    repository.commit()
    repository.write("store/bag.py", EDITED)
    repository.commit()
    repository.git("mv", "store/bag.py", "my cart.py")
    assert earlier_names("my cart.py") == ("store/bag.py", "shop/basket.py")


@needs_git
def test_a_file_that_git_follows_is_known_although_its_content_changed(
    repository: Repository,
) -> None:
    repository.write("shop/basket.py", CART)
    repository.commit()
    repository.git("mv", "shop/basket.py", "shop/cart.py")
    repository.commit()
    repository.write("shop/cart.py", OTHER)
    stored = Source("shop/basket.py", CART, "/builds/7/shop/basket.py")
    assert matching_source("shop/cart.py", [stored]) == EarlierVersion(stored, "shop/basket.py")


@needs_git
def test_without_a_repository_or_a_commit_there_are_no_earlier_names(
    repository: Repository, project: Path
) -> None:
    assert earlier_names(repository.write("a.py", CART)) == ()
    assert earlier_names(project / "shop/cart.py") == ()
