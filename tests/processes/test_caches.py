"""Caches on disk belong to the user alone, or are not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from swarmtest.processes import caches
from swarmtest.processes.caches import built_file, cache_directory, is_usable, make_private, write


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "base"))
    caches._say_unused.cache_clear()
    return tmp_path / "base"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def make_text(file: str) -> None:
    Path(file).write_text("made")


def test_a_cache_is_for_the_user_alone_also_one_that_was_open_to_read(base: Path) -> None:
    (base / "swarmtest").mkdir(parents=True)
    (base / "swarmtest").chmod(0o755)
    write(cache_directory("texts", "a.json"), "{}")
    assert mode(base / "swarmtest") == mode(base / "swarmtest" / "texts") == 0o700
    assert mode(base / "swarmtest" / "texts" / "a.json") == 0o600


@pytest.mark.parametrize("open_to", [0o777, 0o770 | stat.S_IWOTH, 0o1777])
def test_a_cache_that_others_can_write_is_not_used_and_told_once(
    base: Path, capfd: pytest.CaptureFixture[str], open_to: int
) -> None:
    place = cache_directory("probe")
    place.mkdir(parents=True)
    (place / "it.so").write_text("planted")
    place.chmod(open_to)
    assert not is_usable(place / "it.so")
    file = built_file(place / "it.so", make_text)
    assert file.read_text() == "made"
    assert not file.is_relative_to(base)
    assert mode(file.parent) == 0o700
    assert (place / "it.so").read_text() == "planted"
    err = capfd.readouterr().err
    assert err.count("the cache is not used: others can write") == 1
    assert err.count("\n") == 1


def test_no_cache_is_made_right_below_a_directory_of_everybody(base: Path) -> None:
    base.mkdir()
    base.chmod(0o1777)
    assert make_private(cache_directory("probe")) == f"others can write {base}"
    assert not cache_directory().exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("owned", ["", "probe", "probe/it.so"])
def test_a_cache_of_another_user_is_not_used(base: Path, owned: str) -> None:
    place = cache_directory("probe")
    built_file(place / "it.so", make_text)
    os.chown(cache_directory(owned), 12345, 12345)
    (place / "it.so").chmod(0o755)
    assert not is_usable(place / "it.so")
    assert not built_file(place / "it.so", make_text).is_relative_to(base)


def test_a_built_file_is_kept_and_made_again_if_it_is_damaged(base: Path) -> None:
    made = []

    def build(file: str) -> None:
        made.append(file)
        make_text(file)

    file = built_file(cache_directory("probe", "it.so"), build)
    assert built_file(cache_directory("probe", "it.so"), build) == file
    assert len(made) == 1
    file.write_text("ma")
    assert built_file(file, build).read_text() == "made"
    assert len(made) == 2
