"""What a campaign sends to its workers: the subject by reference, and what the reference needs.

An installed package travels by its name and version. What is not installed is packed: the
directory of a file or of a TOML, the packages that it imports from elsewhere.
"""

from __future__ import annotations

import os
import pickle
import shlex
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from types import ModuleType
from typing import Any

from swarmtest.campaign.cluster.packing import files_below, packed
from swarmtest.campaign.cluster.versions import versions_of
from swarmtest.campaign.host import Setup
from swarmtest.campaign.spawning import interpreter_flags
from swarmtest.instrument.scope import project_root
from swarmtest.loading import split_reference
from swarmtest.subjects.loading import SubjectReference

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Cargo:
    """What has to be where the tests run."""

    places: tuple[str, ...]
    """Files, and directories with all that is in them."""
    packages: dict[str, str]
    """Installed packages, and their versions."""

    @property
    def path(self) -> list[str]:
        """The entries of this process's module path that lead to the places."""
        entries = dict.fromkeys(os.path.realpath(entry or os.curdir) for entry in sys.path)
        return [one for one in entries if any(_is_below(place, one) for place in self.places)]


def cargo_of(reference: SubjectReference) -> Cargo:
    """What the subject of this process needs elsewhere; it has been loaded here."""
    own = _own_modules()
    places = dict.fromkeys([*_places_of(reference), *(_top_of(module) for module in own)])
    whole = [
        place for place in places if not any(_is_below(place, p) for p in places if p != place)
    ]
    names = {split_reference(reference.text)[0].partition(".")[0], *_names_used_by(own)}
    return Cargo(tuple(whole), _versions(names))


def movable(reference: SubjectReference) -> SubjectReference:
    """The same subject, named from the current directory: that is somewhere else on a worker."""
    where, name = split_reference(reference.text)
    if not os.path.isabs(where):
        return reference
    mark = reference.text[len(where) : len(reference.text) - len(name)]
    moved = os.path.relpath(os.path.realpath(where), os.path.realpath(os.curdir))
    return replace(reference, text=f"{moved}{mark}{name}")


def shipment_of(
    cargo: Cargo, setup: Setup, coverage: dict[str, Any] | None, memory: int | None
) -> dict[str, Any]:
    """Everything that a worker needs to make hosts, as plain data; `memory` None: its share."""
    digest, pack = packed(file for place in cargo.places for file in files_below(place))
    return versions_of(cargo.packages) | {
        "hash": digest,
        "pack": pack,
        "path": cargo.path,
        "directory": os.path.realpath(os.curdir),
        "project": os.path.realpath(project_root()),
        "setup": pickle.dumps(setup),
        "coverage": coverage,
        "memory": memory,
        "flags": interpreter_flags(),
    }


def _places_of(reference: SubjectReference) -> Iterator[str]:
    """What is packed whole: a plain file may read what lies beside it."""
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
    """What is imported here and installed nowhere: the user's program and harness."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] in ("swarmtest", "__main__", "conftest"):
            continue
        if os.path.isfile(file) and not _is_library(os.path.realpath(file)):
            found.append(module)
    return found


def _top_of(module: ModuleType) -> str:
    """The file of a plain module, the directory of the outermost package of another."""
    path = os.path.realpath(str(module.__file__))
    folder = os.path.dirname(path)
    while os.path.exists(os.path.join(folder, "__init__.py")):
        path, folder = folder, os.path.dirname(folder)
    return path


def _is_library(path: str) -> bool:
    if any(mark in path.split(os.sep) for mark in _INSTALLED):
        return True
    libraries = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return any(_is_below(path, os.path.realpath(one)) for one in libraries)


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


def _names_used_by(modules: Iterable[ModuleType]) -> set[str]:
    """The top-level names of the modules whose objects these modules use."""
    found = set()
    for module in modules:
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
            found.add(name.partition(".")[0])
    return found


def _module_of(value: object) -> str:
    name = getattr(type(value) if not hasattr(value, "__module__") else value, "__module__", "")
    return name if isinstance(name, str) else ""


def _versions(names: set[str]) -> dict[str, str]:
    """Of the installed packages that these top-level modules belong to."""
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
