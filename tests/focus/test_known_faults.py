"""Whether tests can be seen in a file, and what is said if they cannot."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from swarmtest.coverage.scope import Scope
from swarmtest.focus.base_run import _imported_from
from swarmtest.focus.known_faults import WatchedCode, is_imported


def imported(monkeypatch: pytest.MonkeyPatch, name: str, file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    module = ModuleType(name)
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, name, module)
    return str(file)


def test_an_installed_copy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copy = imported(monkeypatch, "shopx.cart", tmp_path / "site-packages/shopx/cart.py")
    ours = str(tmp_path / "src/shopx/cart.py")
    watched_code = WatchedCode(Scope(places=(str(tmp_path),), own_code_only=True))
    assert watched_code.why_unseen(ours).startswith(f"{copy} is tested instead")
    assert not is_imported(ours)


def test_a_file_beside_what_is_watched_may_be_imported_later(tmp_path: Path) -> None:
    later = str(tmp_path / "shopx/later.py")
    assert not WatchedCode(Scope(places=(str(tmp_path),))).why_unseen(later)
    assert not WatchedCode(Scope(names=("shopx",))).why_unseen(later)
    assert "--cover" in WatchedCode(Scope(names=("shopx.cart",))).why_unseen(later)


def test_the_harness_is_seen_only_if_something_was_named(tmp_path: Path) -> None:
    harness = str(tmp_path / "machine.py")
    beside = (str(tmp_path),)
    assert "harness" in WatchedCode(Scope(places=beside, own_code_only=True), harness).why_unseen(
        harness
    )
    assert not WatchedCode(Scope(places=beside), harness).why_unseen(harness)


def test_a_module_is_known_by_its_whole_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    imported(monkeypatch, "libx.machinex", tmp_path / "libx/machinex.py")
    assert not _imported_from(str(tree / "machinex.py"))
    copy = imported(monkeypatch, "shopx.cart", tmp_path / "installed/shopx/cart.py")
    assert _imported_from(str(tree / "src/shopx/cart.py")) == copy
    real = imported(monkeypatch, "odd name", tree / "src/shopx/cart.py")
    assert _imported_from(str(tree / "src/shopx/cart.py")) == real
