"""Archives are unpacked into their directory, or refused, on every Python."""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from unpacking import UnsafeArchive, extract_checked, unpack_tar


def _unpack_as_before_3_11_4(archive: Path, directory: Path) -> None:
    directory.mkdir()
    with tarfile.open(archive) as opened:
        extract_checked(opened, directory)


# Python 3.12 and 3.13 warn of extraction without a filter: that is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:Python 3.14 will:DeprecationWarning")
Unpack = Callable[[Path, Path], None]
WAYS = pytest.mark.parametrize("unpack", [unpack_tar, _unpack_as_before_3_11_4])


def _archive(directory: Path, *members: tuple[str, bytes, str]) -> Path:
    """Write an archive; a member is its name, its type, and its text or what it links to."""
    path = directory / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o6777
            if kind == tarfile.REGTYPE:
                member.size = len(content)
            else:
                member.linkname = content
            made.addfile(member, io.BytesIO(content.encode()))
    return path


@WAYS
def test_files_directories_and_links_inside_are_unpacked(unpack: Unpack, tmp_path: Path) -> None:
    archive = _archive(
        tmp_path,
        ("a", tarfile.DIRTYPE, ""),
        ("a/b.py", tarfile.REGTYPE, "b = 1\n"),
        ("a/c.py", tarfile.SYMTYPE, "b.py"),
        ("a/d.py", tarfile.LNKTYPE, "a/b.py"),
        ("a/..b", tarfile.REGTYPE, ""),
    )
    unpack(archive, tmp_path / "out")
    found = tmp_path / "out" / "a"
    assert sorted(path.name for path in found.iterdir()) == ["..b", "b.py", "c.py", "d.py"]
    assert {(found / name).read_text() for name in ("b.py", "c.py", "d.py")} == {"b = 1\n"}
    assert (found / "b.py").stat().st_mode & 0o7022 == 0


UNSAFE = {
    "above": [("../evil", tarfile.REGTYPE, "x")],
    "above, further in": [("a/../../evil", tarfile.REGTYPE, "x")],
    "a link to above": [("a", tarfile.SYMTYPE, "../..")],
    "an absolute link": [("a", tarfile.SYMTYPE, "/")],
    "a hard link to above": [("a", tarfile.LNKTYPE, "../secret")],
    "a device": [("a", tarfile.CHRTYPE, "")],
    "a pipe": [("a", tarfile.FIFOTYPE, "")],
}


@WAYS
@pytest.mark.parametrize("case", UNSAFE)
def test_what_leads_outside_is_refused(case: str, unpack: Unpack, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = _archive(tmp_path, *UNSAFE[case])
    with pytest.raises(UnsafeArchive):
        unpack(archive, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tar.gz", "out", "secret"]


TWO_LINKS = [
    ("a", tarfile.DIRTYPE, ""),
    ("a/up", tarfile.SYMTYPE, ".."),
    ("a/b", tarfile.SYMTYPE, "up/.."),
    ("a/b/evil", tarfile.REGTYPE, "x"),
]


@WAYS
def test_two_links_lead_to_nothing_outside(unpack: Unpack, tmp_path: Path) -> None:
    """Newer Pythons do not refuse them, but make the second link one to its own directory."""
    archive = _archive(tmp_path, *TWO_LINKS)
    with contextlib.suppress(UnsafeArchive):
        unpack(archive, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tar.gz", "out"]


@WAYS
def test_an_absolute_name_is_taken_for_a_relative_one(unpack: Unpack, tmp_path: Path) -> None:
    archive = _archive(tmp_path, (f"{tmp_path}/evil", tarfile.REGTYPE, "x"))
    unpack(archive, tmp_path / "out")
    assert not (tmp_path / "evil").exists()
    assert [path.name for path in (tmp_path / "out").rglob("evil")] == ["evil"]
