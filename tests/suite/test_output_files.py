"""What is written where, and what is left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarmtest.core.errors import UserError
from swarmtest.suite.output_files import (
    MARK,
    SuiteFile,
    check_pytest,
    files_at,
    restore,
    write_suite,
)

TEXT = f'"""Tests, {MARK}."""\n'


def suite(**data: bytes) -> SuiteFile:
    return SuiteFile(TEXT, {f"{name[1:]}.txt": content for name, content in data.items()}, {})


def test_a_suite_that_is_made_again_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "test_shop.py"
    write_suite(suite(_1=b"one", _2=b"two"), path)
    write_suite(suite(_2=b"new"), path)
    (data,) = (tmp_path / "test_shop_data").iterdir()
    assert (data.name, data.read_bytes()) == ("2.txt", b"new")
    write_suite(suite(), path)
    assert [one.name for one in tmp_path.iterdir()] == ["test_shop.py"]


def test_data_of_somebody_else_is_overwritten_only_by_force(tmp_path: Path) -> None:
    path, mine = tmp_path / "test_shop.py", tmp_path / "test_shop_data/1.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(UserError, match=r"1\.txt was not made by `swarmtest suite`: use --force"):
        write_suite(suite(_1=b"one"), path)
    assert mine.read_text() == "mine"
    assert not path.exists()
    write_suite(suite(_2=b"two"), path)
    assert mine.read_text() == "mine"


def test_everything_can_be_put_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "test_shop.py"
    before = files_at(path)
    write_suite(suite(_1=b"one"), path)
    first = files_at(path)
    write_suite(suite(_2=b"two"), path)
    restore(path, first)
    assert files_at(path) == first
    restore(path, before)
    assert list(tmp_path.iterdir()) == []


def test_without_pytest_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pytest()
    monkeypatch.setitem(sys.modules, "pytest", None)
    with pytest.raises(UserError, match="pytest is not installed: pip install pytest"):
        check_pytest()
