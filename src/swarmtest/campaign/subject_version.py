"""Which version of a subject is tested: the commit of its repository, and its packages.

A version is one line: ``3f2a1bc40d17``, or ``3f2a1bc40d17+changes`` if files of the repository were
changed since the commit, followed by the installed packages that are tested: ``, intervaltree
3.1.0``. It is empty if nothing is known.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from swarmtest.core.errors import UserError
from swarmtest.coverage.scope import file_of_module, imported_program, is_installed
from swarmtest.languages.git import GitError, ask_text, is_ancestor
from swarmtest.languages.user_objects import split_reference
from swarmtest.store.fault_lives import CHANGED
from swarmtest.subjects.loading import module_of, package_of
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_COMMIT = re.compile(r"[0-9a-f]{7,40}(?=\+|,|$)")
_NUMBERS = re.compile(r"\d+(\.\d+)*$")
_DESCRIBE = ("describe", "--always", f"--dirty={CHANGED}", "--exclude=*", "--abbrev=12")


def subject_version(subject: Subject, covered: Iterable[str] = ()) -> str:
    """Return the version of a subject; `covered` are names of packages that are watched."""
    harness = str(getattr(subject, "harness", "") or "")
    commit = _commit(directory_of(subject.name, harness))
    packages = _packages(subject.name, harness, covered)
    return ", ".join(filter(None, [commit, *packages]))


def directory_of(name: str, harness: str = "") -> str:
    """Return the directory of a subject's file, or the current one if that is not known.

    >>> directory_of("/usr/stack.py::StackMachine"), directory_of("stack.py")
    ('/usr', '.')
    """
    file = harness
    if not file:
        where, _ = split_reference(name.removeprefix("race ").split(" ")[-1])
        is_path = where.endswith((".py", ".toml")) or os.sep in where
        file = where if is_path else file_of_module(module_of(where))
    directory = os.path.dirname(file)
    return directory if os.path.isdir(directory) and not is_installed(file) else os.curdir


def is_older(version: str, fix: str, directory: str) -> bool:
    """Return whether a version comes before that of a fix.

    Its commit comes before the other one in the history of git; or the commit is the same, and a
    package has a lower version.

    >>> is_older("intervaltree 3.0.2", "intervaltree 3.1.0", "")
    True
    """
    commit, fixed = commit_of(version), commit_of(fix)
    if commit == fixed:
        return _has_older_packages(_packages_in(version), _packages_in(fix))
    return bool(commit and fixed) and is_ancestor(commit, fixed, directory)


def _packages_in(version: str) -> dict[str, tuple[int, ...] | None]:
    """Return the versions of the packages that a version names; None for one without order."""
    named = (part.partition(" ") for part in version.split(", "))
    return {
        name: tuple(map(int, number.split("."))) if _NUMBERS.match(number) else None
        for name, _, number in named
        if number
    }


def _has_older_packages(
    packages: Mapping[str, tuple[int, ...] | None], fixed: Mapping[str, tuple[int, ...] | None]
) -> bool:
    """Return whether the same packages have versions of which some are lower, and none higher."""
    if packages.keys() != fixed.keys():
        return False
    pairs = [(packages[name], fixed[name]) for name in packages if packages[name] != fixed[name]]
    return bool(pairs) and all(a is not None and b is not None and a < b for a, b in pairs)


def commit_of(version: str) -> str:
    """Return the commit in a version; empty if there is none.

    >>> commit_of("3f2a1bc40d17+changes, intervaltree 3.1.0")
    '3f2a1bc40d17'
    """
    commit = _COMMIT.match(version)
    return commit[0] if commit else ""


def _commit(directory: str) -> str:
    """Return the commit with a mark for changes; empty without git, a repository or a commit."""
    try:
        return ask_text(directory, *_DESCRIBE)
    except (GitError, UserError):
        return ""


def _packages(name: str, harness: str, covered: Iterable[str]) -> list[str]:
    """Return the installed packages that a subject tests, each with its version."""
    names = [each.partition(".")[0] for each in covered if each.replace(".", "_").isidentifier()]
    if harness.endswith(".py"):
        program = imported_program(harness)
        names += [*program.names, *program.left_out]
    elif not harness and ".py" not in name and ":" in name and " " not in name:
        names.append(package_of(split_reference(name)[0]))
    modules = (sys.modules.get(each) for each in dict.fromkeys(names))
    return [text for module in modules if module is not None and (text := _installed(module))]


def _installed(module: ModuleType) -> str:
    """Return name and version of the package that installed a module; empty if none did.

    Other directories than `site-packages` count if a package was installed there (`pip install
    --target`). The package may have another name than its module: `PyYAML` installs `yaml`.
    """
    from importlib import metadata  # here, because most subjects test no installed package

    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    levels = 2 if getattr(module, "__file__", None) and hasattr(module, "__path__") else 1
    directory = file
    for _ in range(levels):
        directory = os.path.dirname(directory)
    if not directory or not (is_installed(file) or _has_packages(directory)):
        return ""
    name = module.__name__
    try:
        for found in metadata.distributions(name=name, path=[directory]):
            return f"{name} {found.version}"
        version = getattr(module, "__version__", "")
        if isinstance(version, str) and version:
            return f"{name} {version}"
        for found in metadata.distributions(path=[directory]):
            if name in _top_levels(found):
                return f"{found.name} {found.version}"
    except (OSError, ValueError, TypeError, KeyError):
        pass  # damaged metadata
    return ""


def _has_packages(directory: str) -> bool:
    try:
        return any(entry.endswith(".dist-info") for entry in os.listdir(directory))
    except OSError:
        return False


def _top_levels(package: Distribution) -> set[str]:
    """Return the modules that a package installs at the top."""
    listed = package.read_text("top_level.txt")
    if listed is not None:
        return set(listed.split())
    return {file.parts[0].partition(".")[0] for file in package.files or ()}
