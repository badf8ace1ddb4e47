"""What a watch sees of the code: commits, saved files, and what is left out."""

from __future__ import annotations

from pathlib import Path

from git_repository import Repository, needs_git, repository  # noqa: F401

from swarmtest.watch.code_state import WatchedCode


@needs_git
def test_a_commit_is_seen_on_any_branch_and_in_a_worktree(
    repository: Repository,  # noqa: F811
    tmp_path: Path,
) -> None:
    repository.write("a.py", "x = 1\n")
    repository.commit()
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    for place in (repository.place, tmp_path / "tree"):
        code = WatchedCode(place)
        before = code.look()
        assert not code.moved_on(before, on_save=False)
        repository.git("-C", str(place), "commit", "-q", "--allow-empty", "-m", "empty")
        assert code.moved_on(before, on_save=False)
        assert code.look().commit == repository.git("-C", str(place), "rev-parse", "HEAD")
    code = WatchedCode(repository.place)
    before = code.look()
    repository.git("checkout", "-q", "-b", "third", "HEAD~1")
    assert code.moved_on(before, on_save=False)


@needs_git
def test_saved_added_and_removed_files_are_seen(repository: Repository) -> None:  # noqa: F811
    repository.write("a.py", "x = 1\n")
    repository.write("gone.py", "x = 1\n")
    repository.commit()
    code = WatchedCode(repository.place)
    before = code.look()
    assert code.is_clean()
    repository.write("notes.txt", "not code")
    repository.write(".hidden/b.py", "x = 1\n")
    repository.write("__pycache__/c.py", "x = 1\n")
    assert not code.moved_on(before, on_save=True)
    repository.write("a.py", "x = 2 \n")
    repository.write("new.py", "y = 1\n")
    (repository.place / "gone.py").unlink()
    assert code.moved_on(before, on_save=True)
    assert not code.moved_on(before, on_save=False)
    saved = [Path(path).name for path in code.look().saved_since(before)]
    assert saved == ["a.py", "gone.py", "new.py"]
    assert not code.is_clean()


def test_a_directory_without_git_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    code = WatchedCode(tmp_path)
    assert (code.is_repository, code.look().commit, code.is_clean()) == (False, "", False)


@needs_git
def test_a_repository_without_commits_gets_its_first(repository: Repository) -> None:  # noqa: F811
    code = WatchedCode(repository.place)
    before = code.look()
    assert before.commit == ""
    assert not code.has_commit("HEAD")
    repository.commit("the first")
    assert code.moved_on(before, on_save=False)
    assert code.describe(code.look().commit).endswith(" the first")
