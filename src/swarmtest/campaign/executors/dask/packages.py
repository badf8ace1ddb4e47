"""What a campaign sends to its workers: the subject by reference, and what the reference needs.

An installed package travels by its name and version. What is not installed is packed: the
directory of a file or of a TOML, the packages that it imports from elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import pickle
import platform
import shlex
import shutil
import stat
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest.campaign.executors.host import HostSetup
from swarmtest.campaign.executors.host_start import interpreter_flags
from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import ROOT_MARKS, project_root
from swarmtest.languages.user_objects import split_reference
from swarmtest.processes.caches import why_unsafe
from swarmtest.subjects.loading import SubjectReference

# Whether a worker may run a campaign's tests: the same swarmtest, Python and packages.
#
# Results are the same everywhere only if the programs are.


def own_versions() -> dict[str, str]:
    """Return the versions that must be the same in any case."""
    return {"swarmtest": _installed_version("swarmtest"), "python": _python()}


def versions_of(packages: dict[str, str]) -> dict[str, Any]:
    """Return the versions in a bundle: our own, and those of installed packages."""
    return own_versions() | {"packages": packages}


def version_mismatch(bundle: dict[str, Any], reported: dict[str, str | None]) -> str:
    """Return what is wrong with a worker's versions, as Dask reports them; empty if nothing is.

    >>> version_mismatch({"python": "3.12", "swarmtest": "1.0"}, {"python": "3.11.7.final.0"})
    'has Python 3.11, and the campaign runs under Python 3.12: results could differ'
    """
    python = ".".join((reported.get("python") or "").split(".")[:2])
    return _difference(bundle, {"python": python, "swarmtest": reported.get("swarmtest") or ""})


def reason_to_refuse(bundle: dict[str, Any]) -> str:
    """Return why this process must not run a bundle; empty if it may.

    >>> reason_to_refuse(versions_of({}))
    ''
    >>> reason_to_refuse(versions_of({"swarm-of-bees": "1.2"}))
    'has no swarm-of-bees, and the campaign tests swarm-of-bees 1.2: install that on the worker'
    """
    mismatch = _difference(bundle, own_versions())
    if mismatch:
        return mismatch
    packages: dict[str, str] = bundle["packages"]
    for name, there in packages.items():
        here = _installed_version(name)
        if not here:
            return (
                f"has no {name}, and the campaign tests {name} {there}: install that on the worker"
            )
        if here != there:
            return f"has {name} {here}, and the campaign tests {name} {there}: results would differ"
    return ""


def _difference(bundle: dict[str, Any], own: dict[str, str]) -> str:
    for name, here in own.items():
        there = bundle[name]
        shown = name.replace("python", "Python")
        if not here:
            return f"has no {shown}: install {shown} {there} on it"
        if here != there:
            return (
                f"has {shown} {here}, and the campaign runs under {shown} {there}: "
                "results could differ"
            )
    return ""


def _installed_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


# Files on their way to workers: which of a directory travel, and how they are packed.

_LARGEST = 64 << 20
_MOST_FILES = 5000
_LEFT_OUT = ("__pycache__", "node_modules", "site-packages", "dist-packages", "dask-scratch-space")
_LEFT_OUT_FILES = (".pyc", ".pyo", ".db", ".db-wal", ".db-shm", ".db-journal")
"""Bytecode, and stores: they are not the program, and they change."""


def pack_files(files: Iterable[str]) -> tuple[str, bytes]:
    """Return files, by their absolute paths, as one archive, and the hash of its contents."""
    entries = []
    size = 0
    for name in sorted(set(files)):
        content = Path(name).read_bytes()
        size += len(content)
        if size > _LARGEST:
            raise UserError(
                f"the files for the workers are larger than {_LARGEST >> 20} MB (with {name}): "
                f"{_ADVICE}"
            )
        entries.append((name, stat.S_IMODE(os.stat(name).st_mode), content))
    plain = marshal.dumps(entries)
    return hashlib.sha256(plain).hexdigest()[:20], zlib.compress(plain, 1)


def unpack_files(pack: bytes) -> list[tuple[str, int, bytes]]:
    """Return the path, mode and content of each file."""
    entries: list[tuple[str, int, bytes]] = marshal.loads(zlib.decompress(pack))
    return entries


def files_below(top: str) -> Iterator[str]:
    """Yield a file, or the files of a directory but hidden, installed, compiled ones and stores.

    >>> any(name.endswith("packages.py") for name in files_below(os.path.dirname(__file__)))
    True
    """
    if os.path.isfile(top):
        yield top
        return
    count = 0
    for directory, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not _is_left_out(directory, name)]
        for name in files:
            path = os.path.join(directory, name)
            hidden = name.startswith(".") or name.endswith(_LEFT_OUT_FILES)
            if not hidden and os.path.isfile(path) and os.access(path, os.R_OK):
                count += 1
                yield path
        if count > _MOST_FILES:
            raise UserError(
                f"{top} has more than {_MOST_FILES:,} files, which would all go to the workers: "
                f"{_ADVICE}"
            )


_ADVICE = (
    "put what is tested into a directory of its own, or install it as a package on the workers"
)


def _is_left_out(directory: str, name: str) -> bool:
    if name.startswith(".") or name in _LEFT_OUT:
        return True
    return os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))


_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Requirements:
    """What must be present where the tests run."""

    paths: tuple[str, ...]
    """Files, and directories with everything in them."""
    packages: dict[str, str]
    """Installed packages, and their versions."""

    @property
    def path(self) -> list[str]:
        """Return the entries of this process's module path that lead to the files."""
        entries = dict.fromkeys(os.path.realpath(entry or os.curdir) for entry in sys.path)
        return [entry for entry in entries if any(_is_below(path, entry) for path in self.paths)]


def requirements_of(reference: SubjectReference) -> Requirements:
    """Return what the subject, which was loaded here, needs on another machine."""
    own = _own_modules()
    paths = dict.fromkeys([*_folders_of(reference), *(_top_of(module) for module in own)])
    whole = [path for path in paths if not any(_is_below(path, p) for p in paths if p != path)]
    names = {split_reference(reference.text)[0].partition(".")[0], *_names_used_by(own)}
    return Requirements(tuple(whole), _versions(names))


def relative_reference(reference: SubjectReference) -> SubjectReference:
    """Return the same subject, named from the current directory, which differs on a worker."""
    where, name = split_reference(reference.text)
    if not os.path.isabs(where):
        return reference
    mark = reference.text[len(where) : len(reference.text) - len(name)]
    moved = os.path.relpath(os.path.realpath(where), os.path.realpath(os.curdir))
    return replace(reference, text=f"{moved}{mark}{name}")


def bundle_of(
    requirements: Requirements,
    setup: HostSetup,
    coverage: dict[str, Any] | None,
    memory: int | None,
) -> dict[str, Any]:
    """Return everything that a worker needs to start hosts; `memory` None: its share."""
    digest, pack = pack_files(file for path in requirements.paths for file in files_below(path))
    return versions_of(requirements.packages) | {
        "hash": digest,
        "pack": pack,
        "path": requirements.path,
        "directory": os.path.realpath(os.curdir),
        "project": os.path.realpath(project_root()),
        "setup": pickle.dumps(setup),
        "coverage": coverage,
        "memory": memory,
        "flags": interpreter_flags(),
    }


def _folders_of(reference: SubjectReference) -> Iterator[str]:
    """Return what is packed whole: a plain file may read the files beside it."""
    if reference.text.startswith("race "):
        words = [split_reference(word)[0] for word in shlex.split(reference.text)[1:]]
    else:
        words = [split_reference(reference.text)[0]]
    for word in words:
        file = os.path.realpath(word)
        folder = os.path.dirname(file)
        packaged = os.path.exists(os.path.join(folder, "__init__.py"))
        if os.path.isfile(file) and not packaged and not _is_library(file):
            yield folder


def _own_modules() -> list[ModuleType]:
    """Return imported modules that are not installed: the user's program and harness."""
    modules = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] in ("swarmtest", "__main__", "conftest"):
            continue
        if os.path.isfile(file) and not _is_library(os.path.realpath(file)):
            modules.append(module)
    return modules


def _top_of(module: ModuleType) -> str:
    """Return the file of a plain module, or the directory of the outermost package."""
    path = os.path.realpath(str(module.__file__))
    folder = os.path.dirname(path)
    while os.path.exists(os.path.join(folder, "__init__.py")):
        path, folder = folder, os.path.dirname(folder)
    return path


def _is_library(path: str) -> bool:
    if any(mark in path.split(os.sep) for mark in _INSTALLED):
        return True
    libraries = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return any(_is_below(path, os.path.realpath(library)) for library in libraries)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _names_used_by(modules: Iterable[ModuleType]) -> set[str]:
    """Return the top-level names of the modules whose objects these modules use."""
    names = set()
    for module in modules:
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
            names.add(name.partition(".")[0])
    return names


def _module_of(value: object) -> str:
    name = getattr(type(value) if not hasattr(value, "__module__") else value, "__module__", "")
    return name if isinstance(name, str) else ""


def _versions(names: set[str]) -> dict[str, str]:
    """Return the versions of the installed packages that these top-level modules belong to."""
    wanted = {
        name
        for name in names - {"swarmtest", *sys.stdlib_module_names}
        if _is_library(os.path.realpath(getattr(sys.modules.get(name), "__file__", None) or ""))
    }
    if not wanted:
        return {}
    packages = metadata.packages_distributions()
    return {
        package: metadata.version(package)
        for name in sorted(wanted)
        for package in packages.get(name, ())
    }


# A bundle on a worker: it is unpacked once, under a directory of the worker's own.
#
# Files lie there at the paths that they have at home, so one prefix translates between the two.


class UnpackedBundle:
    """Where a bundle's files are on a worker, and how a host must start to find them."""

    def __init__(self, bundle: dict[str, Any], directory: str) -> None:
        self.prefix = _place_of(bundle, os.path.realpath(directory))
        self.directory = self.prefix + bundle["directory"]
        self.path = [self.prefix + entry for entry in bundle["path"]]
        self.coverage = self._translated(bundle["coverage"])

    def _translated(self, coverage: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the coverage options, with paths that are valid here."""
        if coverage is None:
            return None
        beside = coverage["beside"] and self._here(coverage["beside"])
        return coverage | {
            "beside": beside,
            "cover": [self._here(path) for path in coverage["cover"]],
        }

    def _here(self, path: str) -> str:
        moved = self.prefix + path
        return moved if os.path.isabs(path) and os.path.exists(moved) else path


def _place_of(bundle: dict[str, Any], directory: str) -> str:
    """Return where a bundle is unpacked: only the user can have written what is there.

    All processes of a worker share a directory. Its name can be guessed, and what is in it will be
    executed. So if it is not private, or not what was sent, a directory of a random name is used.
    """
    shared = os.path.join(directory, f"swarmtest-{bundle['hash']}")
    fresh = "" if os.path.lexists(shared) else _unpack(bundle, directory)
    if fresh and not why_unsafe(Path(fresh)):
        # If several processes try, the directory of the first one stays.
        with contextlib.suppress(OSError):
            os.rename(fresh, shared)
            fresh = ""
    if _is_private(shared) and _is_as_sent(bundle, shared):
        shutil.rmtree(fresh, ignore_errors=True)
        return shared
    return fresh or _unpack(bundle, directory)


def _is_private(directory: str) -> bool:
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_own and stat.S_IMODE(found.st_mode) == 0o700 and not why_unsafe(Path(directory))


def _is_as_sent(bundle: dict[str, Any], directory: str) -> bool:
    try:
        return all(
            Path(directory + name).read_bytes() == content
            for name, _, content in unpack_files(bundle["pack"])
        )
    except OSError:
        return False


def _unpack(bundle: dict[str, Any], directory: str) -> str:
    """Unpack the files into a new directory that only the user can enter; return its path."""
    fresh = tempfile.mkdtemp(prefix=f"swarmtest-{bundle['hash']}-", dir=directory)
    for name, mode, content in unpack_files(bundle["pack"]):
        file = Path(fresh + name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    os.makedirs(fresh + bundle["directory"], exist_ok=True)
    project = Path(fresh + bundle["project"])
    project.mkdir(parents=True, exist_ok=True)
    if not any((project / mark).exists() for mark in ROOT_MARKS):
        # Files are named from the project's top, and the worker's own may lie above.
        (project / "setup.cfg").touch()
    return fresh
