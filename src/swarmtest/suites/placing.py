"""Where a suite is written, and what is never overwritten: files that somebody else has made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swarmtest.errors import UserError

MARK = "made by swarmtest"
"""In the first line of every file that may be overwritten."""


@dataclass(frozen=True)
class SuiteFile:
    """What is written."""

    text: str
    data: dict[str, bytes]
    """Files in the directory of data, by name."""
    names: dict[int, str]
    """The functions, by trial."""


def data_directory(path: Path) -> Path:
    """Where the files of data are that a suite needs.

    >>> data_directory(Path("tests/test_shop.py")).as_posix()
    'tests/test_shop_data'
    """
    return path.with_name(f"{path.stem}_data")


def check_place(path: Path, force: bool = False) -> None:
    """Say at once why a suite cannot be written there."""
    if path.suffix != ".py":
        raise UserError(f"{path}: a suite is a Python file (.py)")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no directory {path.parent}")
    if path.is_dir():
        raise UserError(f"{path} is a directory")
    if path.exists() and not force and not _is_ours(path):
        raise UserError(
            f"{path} was not made by `swarmtest suite`: --force overwrites it all the same"
        )


def write_suite(file: SuiteFile, path: Path, force: bool = False) -> None:
    """Write a suite; files that we have not made stay, unless `force`."""
    check_place(path, force)
    data = data_directory(path)
    ours = path.exists() and _is_ours(path)
    old = {one.name for one in data.iterdir() if one.is_file()} if data.is_dir() else set[str]()
    taken = sorted(old & file.data.keys())
    if taken and not ours and not force:
        raise UserError(
            f"{data / taken[0]} was not made by `swarmtest suite`: --force overwrites it all the "
            "same"
        )
    try:
        for name in old - file.data.keys():
            if ours and Path(name).stem.isdigit():
                (data / name).unlink()
        path.write_text(file.text, encoding="utf-8")
        if file.data:
            data.mkdir(exist_ok=True)
        for name, content in file.data.items():
            (data / name).write_bytes(content)
        if data.is_dir() and not any(data.iterdir()):
            data.rmdir()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def files_at(path: Path) -> dict[Path, bytes]:
    """What is there now, where a suite will be."""
    data = data_directory(path)
    places = [path, *(data.iterdir() if data.is_dir() else ())]
    return {one: one.read_bytes() for one in places if one.is_file()}


def restore(path: Path, files: Mapping[Path, bytes]) -> None:
    """Put everything back as it was."""
    data = data_directory(path)
    for one in [path, *(data.iterdir() if data.is_dir() else ())]:
        if one.is_file() and one not in files:
            one.unlink()
    if data.is_dir() and not any(data.iterdir()):
        data.rmdir()
    for one, content in files.items():
        one.parent.mkdir(exist_ok=True)
        one.write_bytes(content)


def _is_ours(path: Path) -> bool:
    try:
        return MARK.encode() in path.read_bytes().partition(b"\n")[0]
    except OSError:
        return False
