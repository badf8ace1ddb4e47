"""What was changed since a revision is found, statement by statement."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from git_repository import Repository, needs_git, repository

from swarmtest.core.errors import UserError
from swarmtest.languages.changes import from_diff
from swarmtest.languages.places import ResolvedTargets

pytestmark = needs_git
__all__ = ["repository"]

CART = '''\
"""A cart."""

import os


def add(cart, item):
    """Add."""
    check(item)
    if item.price > 10:
        cart.big = True
    cart.items.append(
        item,
    )
    return cart


def clear(cart):
    cart.items.clear()
    cart.total = 0


LIMIT = 3
'''


def changed(found: ResolvedTargets) -> dict[str, list[int]]:
    """The lines that were found, by the file's name."""
    files: dict[str, list[int]] = {}
    for one in found.wanted:
        files.setdefault(os.path.relpath(one.place, Path.cwd()), []).append(one.line)
    return files


@pytest.fixture
def shop(repository: Repository) -> Repository:
    """A repository with a committed `shop/cart.py`."""
    repository.write("shop/cart.py", CART)
    repository.commit("The cart")
    return repository


def edit(shop: Repository, old: str, new: str, path: str = "shop/cart.py") -> None:
    text = (shop.place / path).read_text()
    assert text.count(old) == 1
    (shop.place / path).write_text(text.replace(old, new))


def test_changed_and_added_lines_are_targets(shop: Repository) -> None:
    edit(shop, "price > 10", "price > 20")
    edit(shop, "    cart.total = 0\n", "    cart.total = 0\n    cart.big = False\n")
    found = from_diff("HEAD")
    assert changed(found) == {"shop/cart.py": [9, 20]}
    assert {one.why for one in found.wanted} == {"--diff HEAD"}
    assert [one.function for one in found.wanted] == ["add", "clear"]


def test_committed_staged_and_unstaged_changes_count_together(shop: Repository) -> None:
    edit(shop, "check(item)", "check(item, 1)")
    shop.commit("One")
    edit(shop, "cart.big = True", "cart.big = 1")
    shop.git("add", "--all")
    edit(shop, "cart.total = 0", "cart.total = 1")
    assert changed(from_diff("HEAD~1")) == {"shop/cart.py": [8, 10, 19]}
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [10, 19]}


def test_files_that_git_does_not_know_yet_are_added_and_ignored_ones_are_not(
    shop: Repository,
) -> None:
    shop.write(".gitignore", "made/\n")
    shop.commit()
    shop.write("new.py", "x = 1\n\n# note\ny = 2\n")
    shop.write("made/old.py", "x = 1\n")
    assert changed(from_diff("HEAD")) == {"new.py": [1, 4]}


def test_a_change_inside_a_long_statement_means_its_first_line(shop: Repository) -> None:
    edit(shop, "        item,\n", "        item.copy(),\n")
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [11]}


def test_a_changed_header_means_the_first_statement_of_the_function(shop: Repository) -> None:
    edit(shop, "def add(cart, item):", "def add(cart, item, count=1):")
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [8]}


@pytest.mark.parametrize(
    ("gone", "follows"),
    [
        ("    check(item)\n", 8),  # the `if` that comes next
        ("        cart.big = True\n", 10),
        ("    return cart\n", 11),  # nothing comes next in the function: what was before it
        ("    cart.total = 0\n", 18),
        ("LIMIT = 3\n", 17),
    ],
)
def test_where_lines_were_only_deleted_the_next_statement_of_the_function_is_meant(
    shop: Repository, gone: str, follows: int
) -> None:
    new = "        pass\n" if "big" in gone else ""
    edit(shop, gone, new)
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [follows]}


def test_a_decision_that_became_an_else_means_what_follows(shop: Repository) -> None:
    shop.write("a.py", "def f(x):\n    if x:\n        a()\n    elif x > 1:\n        b()\n")
    shop.commit()
    edit(shop, "elif x > 1:", "else:", "a.py")
    assert changed(from_diff("HEAD")) == {"a.py": [5]}


def test_deleted_comments_and_docstrings_are_no_change(shop: Repository) -> None:
    edit(shop, '    """Add."""\n', "")
    edit(shop, "    check(item)\n", "    check(item)\n    # checked\n")
    edit(shop, "cart.total = 0", "cart.total = 1")
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [19]}


def test_what_others_did_on_the_branch_meanwhile_is_left_out(shop: Repository) -> None:
    shop.git("checkout", "-q", "-b", "work")
    edit(shop, "cart.total = 0", "cart.total = 1")
    shop.commit("Mine")
    shop.git("checkout", "-q", "main")
    edit(shop, "price > 10", "price > 20")
    shop.commit("Theirs")
    shop.git("checkout", "-q", "work")
    assert changed(from_diff("main")) == {"shop/cart.py": [19]}
    assert changed(from_diff("main...")) == {"shop/cart.py": [19]}
    assert changed(from_diff("main..")) == {"shop/cart.py": [9, 19]}


def test_a_renamed_file_is_compared_with_what_it_was(shop: Repository) -> None:
    shop.git("mv", "shop/cart.py", "shop/basket.py")
    edit(shop, "cart.total = 0", "cart.total = 1", "shop/basket.py")
    assert changed(from_diff("HEAD")) == {"shop/basket.py": [19]}


def test_names_with_spaces_quotes_tabs_and_other_letters_are_found(shop: Repository) -> None:
    names = ["my shop.py", 'say "x".py', "tab\there.py", "Käse.py", "новый.py", "new\nline.py"]
    for name in names:
        shop.write(name, "x = 1\ny = 1\n")
    shop.git("add", *names[:3])
    assert changed(from_diff("HEAD")) == {name: [1, 2] for name in sorted(names)}


def test_a_name_that_is_no_valid_text_is_found_and_can_be_printed(shop: Repository) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    shop.write(name, "x = 1\n")
    shop.write(os.fsdecode(b"caf\xe9.md"), "coffee\n")
    found = from_diff("HEAD")
    assert changed(found) == {name: [1]}
    assert found.unusable[0].encode() == b"'caf\\udce9.md': not code that is watched"


def test_a_change_of_line_ends_alone_is_no_change(shop: Repository) -> None:
    text = CART.replace("cart.total = 0", "cart.total = 1")
    shop.write("shop/cart.py", text.replace("\n", "\r\n").encode())
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [19]}


def test_a_file_in_another_encoding_is_read_as_python_does(shop: Repository) -> None:
    text = '# coding: latin-1\nx = "ä"\ny = 1\n'
    shop.write("old.py", text.encode("latin-1"))
    shop.commit()
    shop.write("old.py", text.replace("y = 1", "y = 2").encode("latin-1"))
    assert changed(from_diff("HEAD")) == {"old.py": [3]}


def test_lines_of_c_are_changed_lines_without_blank_ones(shop: Repository) -> None:
    shop.write("calc.c", "int f(int x) {\n  x++;\n  x--;\n  return x;\n}\n")
    shop.commit()
    shop.write("calc.c", "int f(int x) {\n  x += 2;\n\n  x--;\n  return x;\n}\n")
    assert changed(from_diff("HEAD")) == {"calc.c": [2]}
    shop.write("calc.c", "int f(int x) {\n  x++;\n  return x;\n}\n")
    assert changed(from_diff("HEAD")) == {"calc.c": [3]}


def test_what_cannot_be_a_target_is_told_in_short(shop: Repository) -> None:
    shop.write("gone.py", "x = 1\n")
    shop.write("only_moved.py", "a_line_of_its_own = 1\nanother_line = 2\n")
    shop.write("run.py", "x = 5\n")
    shop.commit()
    edit(shop, "cart.total = 0", "cart.total = 1")
    shop.write("README.md", "Read me\n")
    shop.write("Makefile", "all:\n")
    shop.write("data.py", b"x = 1\0\n")
    shop.write("broken.py", "x = = 1\n")
    shop.write("notes.py", "# nothing yet\n")
    (shop.place / "link.py").symlink_to("shop/cart.py")
    (shop.place / "gone.py").unlink()
    shop.git("mv", "only_moved.py", "moved.py")
    (shop.place / "run.py").chmod(stat.S_IRWXU)
    found = from_diff("HEAD")
    assert changed(found) == {"shop/cart.py": [19]}
    assert found.unusable == (
        "Makefile: not code that is watched",
        "README.md: not code that is watched",
        "broken.py:1 is not valid Python: invalid syntax",
        "data.py: binary",
        "gone.py: deleted",
        "link.py: a link",
        "moved.py: renamed, but nothing that is executed was changed",
        "notes.py: changed, but nothing that is executed was changed",
        "run.py: changed, but nothing that is executed was changed",
    )


def test_a_submodule_is_not_looked_into(shop: Repository, tmp_path: Path) -> None:
    library = Repository(tmp_path / "library")
    library.write("lib.py", "x = 1\n")
    library.commit()
    shop.git("submodule", "--quiet", "add", str(library.place), "vendored")
    edit(shop, "cart.total = 0", "cart.total = 1")
    found = from_diff("HEAD")
    assert changed(found) == {"shop/cart.py": [19]}
    assert "vendored: a submodule, which is not looked into" in found.unusable


def test_a_file_taken_out_of_the_index_is_compared_with_what_it_was(shop: Repository) -> None:
    shop.git("rm", "-q", "--cached", "shop/cart.py")
    edit(shop, "cart.total = 0", "cart.total = 1")
    assert changed(from_diff("HEAD")) == {"shop/cart.py": [19]}


def test_a_merge_conflict_is_told_and_does_not_stop_the_rest(shop: Repository) -> None:
    shop.git("checkout", "-q", "-b", "work")
    edit(shop, "cart.total = 0", "cart.total = 1")
    shop.commit()
    shop.git("checkout", "-q", "main")
    edit(shop, "cart.total = 0", "cart.total = 2")
    shop.commit()
    shop.write("other.py", "x = 1\n")
    with pytest.raises(Exception, match="merge"):
        shop.git("merge", "work")
    found = from_diff("HEAD")
    assert changed(found) == {"other.py": [1]}
    assert found.unusable[0].startswith("shop/cart.py:19 is not valid Python")


def test_the_diff_is_of_the_whole_repository_wherever_it_is_asked(
    shop: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(shop, "cart.total = 0", "cart.total = 1")
    shop.write("other.py", "x = 1\n")
    shop.write("deep/down.py", "x = 1\n")
    shop.git("config", "diff.relative", "true")
    monkeypatch.chdir(shop.place / "deep")
    assert changed(from_diff("HEAD")) == {
        "down.py": [1],
        "../other.py": [1],
        "../shop/cart.py": [19],
    }


def test_settings_of_the_user_change_nothing(shop: Repository) -> None:
    edit(shop, "cart.total = 0", "cart.total = 1")
    shop.write("Käse.py", "x = 1\n")
    shop.write(".gitattributes", "*.py diff=odd\n")
    expected = from_diff("HEAD")
    settings = {
        "color.ui": "always",
        "color.diff": "always",
        "diff.external": "false",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.odd.textconv": "wc",
        "diff.odd.command": "false",
        "diff.renames": "copies",
        "diff.algorithm": "minimal",
        "diff.context": "9",
        "diff.submodule": "log",
        "core.quotePath": "true",
        "core.pager": "false",
        "core.abbrev": "4",
        "status.showUntrackedFiles": "no",
        "log.showSignature": "true",
    }
    for name, value in settings.items():
        shop.git("config", name, value)
    assert from_diff("HEAD") == expected
    assert set(changed(expected)) == {"Käse.py", "shop/cart.py"}


def test_asking_leaves_the_index_as_it_was(shop: Repository) -> None:
    edit(shop, "cart.total = 0", "cart.total = 1")
    os.utime(shop.place / "shop/cart.py", (1, 1))
    index = shop.place / ".git/index"
    before = index.read_bytes()
    from_diff("HEAD")
    assert index.read_bytes() == before


def test_nothing_changed_says_since_when(shop: Repository) -> None:
    with pytest.raises(UserError, match=r"--diff HEAD: nothing was changed since \w+ The cart"):
        from_diff("HEAD")


def test_a_diff_without_any_line_to_aim_at_says_what_was_in_it(shop: Repository) -> None:
    for name in ("a.md", "b.md", "c.md", "d.md", "e.md"):
        shop.write(name, "text\n")
    with pytest.raises(UserError) as refused:
        from_diff("HEAD")
    assert str(refused.value) == (
        "--diff HEAD: no changed line can be a target: a.md: not code that is watched; b.md: not "
        "code that is watched; c.md: not code that is watched and 2 more"
    )


def test_it_works_in_a_linked_worktree(
    shop: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.git("worktree", "add", "-q", str(tmp_path / "second"))
    monkeypatch.chdir(tmp_path / "second")
    Path("shop/cart.py").write_text(CART.replace("cart.total = 0", "cart.total = 1"))
    found = from_diff("HEAD")
    assert changed(found) == {"shop/cart.py": [19]}
    assert found.wanted[0].place == str((tmp_path / "second/shop/cart.py").resolve())
