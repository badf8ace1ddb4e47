"""Git is asked in a way that no setting changes, and the repository is left as it was."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_repository import Repository, needs_git, repository

from swarmtest.core.errors import UserError
from swarmtest.languages.git import base_of, checkout_of, described, resolved, top

pytestmark = needs_git
__all__ = ["repository"]


def files_of(place: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), place)
        for folder, _, names in os.walk(place)
        for name in names
    }


def test_the_top_is_found_from_a_directory_below(repository: Repository) -> None:
    below = repository.place / "a" / "b"
    below.mkdir(parents=True)
    assert top(below) == repository.place.resolve()


def test_a_directory_outside_of_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"is in no git repository: go to the project, or name line"
    ):
        top(tmp_path)


def test_a_bare_repository_has_nothing_to_test(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(UserError, match=r"has no working tree"):
        top(tmp_path / "bare")


def test_without_git_the_message_says_what_to_install(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=r"^git is not installed: apt-get install git, or name"):
        top(repository.place)


def test_a_repository_that_belongs_to_somebody_else_is_told_with_the_way_out(
    repository: Repository,
) -> None:
    if os.geteuid():
        pytest.skip("only root can give a directory away")
    os.chown(repository.place, 12345, 12345)
    os.chown(repository.place / ".git", 12345, 12345)
    with pytest.raises(UserError, match=r"git config --global --add safe.directory"):
        top(repository.place)


def test_variables_that_git_sets_for_hooks_do_not_lead_elsewhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.commit("of the other")
    repository.commit("of this one")
    monkeypatch.setenv("GIT_DIR", str(other.place / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.place))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert top(repository.place) == repository.place.resolve()
    assert described("HEAD", repository.place).endswith(" of this one")


def test_a_revision_is_resolved_to_its_full_hash(repository: Repository) -> None:
    first = repository.commit("first")
    repository.commit("second")
    repository.git("tag", "-a", "v1", "-m", "annotated", first)
    assert resolved("HEAD~1") == resolved("v1") == resolved(first[:8]) == first


def test_an_unknown_revision_names_the_nearest_branch(repository: Repository) -> None:
    repository.commit()
    repository.git("branch", "release-2")
    with pytest.raises(
        UserError, match=r"knows no revision 'relase-2'; did you mean 'release-2'\?"
    ):
        resolved("relase-2")


def test_a_branch_that_only_the_remote_has_is_suggested(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit()
    repository.git("checkout", "-q", "-b", "work")
    repository.git("clone", "-q", str(repository.place), str(tmp_path / "clone"))
    with pytest.raises(UserError, match=r"did you mean 'origin/main'\?"):
        resolved("main", tmp_path / "clone")


@pytest.mark.parametrize("rev", ["", "--all", "-x", "a\0b", "HEAD:shop.py", "no such\nthing"])
def test_what_is_no_revision_is_refused_in_one_line(repository: Repository, rev: str) -> None:
    repository.commit()
    with pytest.raises(UserError, match=r"git knows no revision") as refused:
        resolved(rev)
    assert len(str(refused.value).splitlines()) == 1


def test_a_repository_without_commits_says_so(repository: Repository) -> None:
    with pytest.raises(UserError, match=r"has no commits yet"):
        base_of("main")


def test_the_base_of_a_branch_is_where_it_was_left(repository: Repository) -> None:
    left = repository.commit("where they part")
    repository.git("checkout", "-q", "-b", "work")
    repository.commit("mine")
    repository.git("checkout", "-q", "main")
    theirs = repository.commit("theirs")
    repository.git("checkout", "-q", "work")
    assert base_of("main") == base_of("main...") == base_of("main...HEAD") == left
    assert base_of("main..") == theirs
    assert base_of("HEAD~1") == left


def test_two_revisions_are_refused_because_the_working_tree_is_tested(
    repository: Repository,
) -> None:
    repository.commit()
    with pytest.raises(UserError, match=r"name one revision to compare it with: --diff main$"):
        base_of("main..work")


def test_unrelated_histories_are_told(repository: Repository) -> None:
    repository.commit()
    repository.git("checkout", "-q", "--orphan", "island")
    repository.commit("alone")
    with pytest.raises(UserError, match=r"main and HEAD have no commit in common: write main\.\."):
        base_of("main")


def test_a_shallow_clone_without_the_merge_base_asks_for_the_history(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("where they part")
    repository.git("checkout", "-q", "-b", "work")
    repository.commit("mine")
    repository.git("checkout", "-q", "main")
    repository.commit("theirs")
    url = f"file://{repository.place}"
    repository.git(
        *("clone", "-q", "--depth=1", "--no-single-branch", "-b", "work"), url, str(tmp_path / "ci")
    )
    with pytest.raises(UserError, match=r"fetch-depth: 0") as refused:
        base_of("origin/main", tmp_path / "ci")
    assert "shallow" in str(refused.value)
    with pytest.raises(UserError, match=r"shallow.*fetch-depth: 0"):
        base_of("v1.2", tmp_path / "ci")


def test_a_checkout_has_the_files_of_the_revision_and_goes_away(repository: Repository) -> None:
    repository.write("shop/cart.py", "x = 1\n")
    repository.write("run me.sh", "#!/bin/sh\n").chmod(0o755)
    (repository.place / "link").symlink_to("shop")
    repository.commit()
    repository.write("shop/cart.py", "x = 2\n")
    repository.write("new.py", "y = 1\n")
    with checkout_of("HEAD") as tree:
        assert (tree / "shop/cart.py").read_text() == "x = 1\n"
        assert os.access(tree / "run me.sh", os.X_OK)
        assert (tree / "link").is_symlink()
        assert not (tree / "new.py").exists()
        assert not (tree / ".git").exists()
    assert not tree.exists()
    assert not tree.parent.exists()


def test_a_checkout_leaves_no_trace_in_the_repository(repository: Repository) -> None:
    repository.write("cart.py", "x = 1\n")
    repository.commit()
    repository.write("cart.py", "x = 2\n")
    repository.git("config", "core.splitIndex", "true")
    before, index = files_of(repository.place), (repository.place / ".git/index").read_bytes()
    with checkout_of("HEAD"):
        assert files_of(repository.place) == before
    assert (repository.place / ".git/index").read_bytes() == index
    assert (repository.place / "cart.py").read_text() == "x = 2\n"


def test_a_checkout_is_whole_although_the_working_tree_is_sparse(repository: Repository) -> None:
    repository.write("shop/cart.py", "x = 1\n")
    repository.write("docs/page.py", "x = 1\n")
    repository.write(".gitattributes", "docs export-ignore\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "--no-cone", "/shop/")
    assert not (repository.place / "docs").exists()
    with checkout_of("HEAD") as tree:
        assert files_of(tree) == {"shop/cart.py", "docs/page.py", ".gitattributes"}
