"""What a store may name as its subject: the user's programs, and not what can do anything."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from swarmtest import UserError
from swarmtest.core.trust import trust
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.stored_reference import refuse_harmful, stored_reference

WORDS = """
from swarmtest import generator

def check(text):
    assert "z" not in text

@generator(features=["z"], run=check)
def words(rng, features) -> str:
    return "z" if "z" in features else "a"
"""


@pytest.mark.parametrize(
    "text",
    [
        "stack.py::Stack",
        "my code/os.py::Stack",
        "prog.toml",
        "shop.cart:Cart",
        "collections:UserDict",
        "race --noise queue counter.py::count",
    ],
)
def test_programs_of_the_user_and_classes_that_compute_are_loaded(text: str) -> None:
    assert stored_reference({"text": text}).text == text


@pytest.mark.parametrize(
    "text",
    [
        "code:InteractiveInterpreter",
        "os:system",
        "pathlib:Path",
        "concurrent.futures:Executor",
        "race os:abort",
        "diff no-such-package==1 no-such-package==2 shop:Cart",
        "diff --index-url=x -e. shop:Cart",
    ],
)
def test_what_can_do_anything_is_named_by_the_user(text: str) -> None:
    with pytest.raises(UserError, match="add --trust if you know who wrote this"):
        stored_reference({"text": text, "api": True})
    trust()
    try:
        assert stored_reference({"text": text, "api": True}).text == text
    finally:
        trust(False)


def test_what_the_user_has_named_in_this_process_is_loaded_again() -> None:
    name = "mimetypes:MimeTypes"
    with pytest.raises(UserError):
        stored_reference({"text": name, "api": True})
    SubjectReference(name, api=True).load()
    assert stored_reference({"text": name, "api": True}).text == name


def test_a_comparison_that_was_made_here_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swarmtest.subjects.oracles import releases

    monkeypatch.setattr(releases, "cache_directory", lambda *names: tmp_path.joinpath(*names))
    for directory in tmp_path, tmp_path / "x":
        directory.mkdir(exist_ok=True)
    text = "diff shop==1 shop==2 shop:Cart"
    with pytest.raises(UserError, match="shop==1, which is not installed for comparisons here"):
        refuse_harmful(text)
    for release in ("shop==1", "shop==2"):
        done = Path(releases.release_directory(release), ".complete")
        done.parent.mkdir(parents=True)
        done.touch()
    refuse_harmful(text)


def test_a_saved_test_cannot_call_python_s_library(
    tmp_path: Path, swarmtest: Callable[..., Any], refused: Callable[..., str]
) -> None:
    reference = {"text": "code:InteractiveInterpreter", "api": True}
    test = {
        "format": "swarmtest machine test 1",
        "subject": reference["text"],
        "reference": reference,
        "steps": [["runsource", ["open('executed', 'w')"]]],
    }
    (tmp_path / "t.json").write_text(json.dumps(test))
    refused(swarmtest("replay", "t.json", cwd=tmp_path), "add --trust")
    assert not (tmp_path / "executed").exists()


def test_the_id_of_a_fault_is_no_path(
    tmp_path: Path, swarmtest: Callable[..., Any], refused: Callable[..., str]
) -> None:
    (tmp_path / "words.py").write_text(WORDS)
    swarmtest("run", "words.py", "-n", 20, "-q", "--store", "s.db", "-j", 0, cwd=tmp_path)
    found = swarmtest("faults", 1, "--inputs", "inputs", "--store", "s.db", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert any(path.read_bytes() == b"z" for path in (tmp_path / "inputs").iterdir())
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as store:
        store.execute("PRAGMA foreign_keys = OFF")
        for table, column in (("faults", "id"), ("reductions", "fault"), ("block_faults", "fault")):
            store.execute(f"UPDATE {table} SET {column} = '../outside'")
    store.close()
    refused(swarmtest("faults", 1, "--inputs", "inputs", "--store", "s.db", cwd=tmp_path), "id")
    assert not (tmp_path / "outside").exists()
