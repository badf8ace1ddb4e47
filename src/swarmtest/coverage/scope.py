"""Which modules are the program under test, and how their files are named."""

from __future__ import annotations

import difflib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.targets import Source
from swarmtest.coverage.interchange.formats import is_python

# -------------------------------------------------------------------------------------------------
# Whether a watched file is still what was tested.


def place_of(source: Source) -> str:
    """Where a file is, as far as that is known, without links."""
    return os.path.realpath(source.place or os.path.join(project_root(), source.path))


def text_of(place: Path, path: str) -> str:
    """A file's text as coverage reads it: Python in the encoding that it declares."""
    if is_python(path):
        try:
            return importlib.util.decode_source(place.read_bytes())
        except (SyntaxError, UnicodeDecodeError):
            pass
    return place.read_text(encoding="utf-8", errors="replace")


def is_as_it_was(source: Source) -> bool:
    """Whether a file has the text that was tested; one that is gone has not changed."""
    try:
        return not source.text or text_of(Path(place_of(source)), source.path) == source.text
    except OSError:
        return True


# -------------------------------------------------------------------------------------------------

ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_INSTALLED = ("site-packages", "dist-packages")
_DEPTH = 3
"""How far below the project's top a module may lie that is not on the path yet (src, tests)."""


@dataclass(frozen=True)
class Scope:
    """The modules to watch: by name (``shop``, ``shop.cart``) or by where their files are.

    >>> Scope(names=("shop",)).chooses("shop.cart", "anywhere/cart.py")
    True
    """

    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Absolute files and directories."""
    own_code_only: bool = False
    """Leave out what is installed below the places: a virtual environment in the project."""

    def chooses(self, name: str, origin: str) -> bool:
        """Whether a module is chosen; `origin` is its file."""
        if any(name == one or name.startswith(f"{one}.") for one in self.names):
            return True
        if self.own_code_only and any(mark in origin for mark in _INSTALLED):
            return False
        real = os.path.realpath(origin) if self.places else origin  # places have no links in them
        return any(real == place or real.startswith(place + os.sep) for place in self.places)

    def may_choose(self, name: str) -> bool:
        """Whether it is worth looking for a module's file: most imports are none of ours."""
        top = name.partition(".")[0]
        if any(one == name or name.startswith(f"{one}.") for one in self.names):
            return True
        return bool(self.places) and top not in sys.stdlib_module_names and top != "swarmtest"


def parse_scope(
    given: Iterable[str], beside: str = "", package: str = "", check_names: bool = False
) -> Scope:
    """The scope that a user wrote, as names of modules and paths; one may be a plain string.

    `check_names`: refuse names that no module has. In a program of one's own, modules may appear
    later than the wish to watch them.

    With nothing given: the subject's `package`, and every module in the directory `beside` it and
    in the current directory, without what is installed there.
    """
    names, places = [], []
    for text in [given] if isinstance(given, str) else given:
        path = Path(text)
        if not text.strip():
            raise UserError("--cover needs a name: a module, a package or a path")
        if path.exists() and (os.sep in text or text.endswith(".py") or path.is_dir()):
            if _is_package_here(path):
                names.append(path.name)
            else:
                places.append(str(path.resolve()))
        elif all(part.isidentifier() for part in text.split(".")):
            if check_names:
                _check_module(text, beside)
            names.append(text)
        else:
            raise UserError(f"--cover {text}: neither the name of a module nor a path that exists")
    if not names and not places:
        here = {str(Path.cwd()), *([str(Path(beside).resolve())] if beside else [])}
        return Scope((package,) if package else (), tuple(sorted(here)), own_code_only=True)
    return Scope(tuple(names), tuple(places))


def _check_module(name: str, beside: str) -> None:
    """Refuse a name that no module can have when the program runs; nothing is imported.

    What puts directories on the path (pytest, the program) may do so later: a module anywhere near
    the top of the project will do.
    """
    top = name.partition(".")[0]
    if top in sys.modules or _can_be_found(top, beside):
        return
    near = {
        module.removesuffix(".py")
        for folders, files in _project_folders()
        for module in (*folders, *(file for file in files if file.endswith(".py")))
    }
    if top in near:
        return
    here = {module.name for module in pkgutil.iter_modules([*_directories(beside), *sys.path])}
    likely = difflib.get_close_matches(top, [one for one in near | here if one.isidentifier()], n=1)
    hint = did_you_mean(top, likely) if likely else "; give its path?"
    raise UserError(f"--cover {name}: there is no module {top!r}{hint}")


def _can_be_found(top: str, beside: str) -> bool:
    try:
        if importlib.util.find_spec(top) is not None:
            return True
    except (ImportError, ValueError):
        return True  # a finder that gives up has heard of it
    return PathFinder.find_spec(top, _directories(beside)) is not None


def _directories(beside: str) -> list[str]:
    """Where the program will look for its modules, as `swarmtest.languages.user_objects` has it."""
    root = Path(beside or ".").resolve()
    while (root / "__init__.py").exists() and root != root.parent:
        root = root.parent
    return list(dict.fromkeys([beside or ".", str(root), "."]))


def _project_folders() -> Iterator[tuple[list[str], list[str]]]:
    """What lies at most `_DEPTH` below the project's top, hidden and installed files left out."""
    top = str(project_root())
    for directory, folders, files in os.walk(top):
        below = os.path.relpath(directory, top)
        depth = 0 if below == "." else below.count(os.sep) + 1
        folders[:] = [
            one
            for one in folders
            if not one.startswith((".", "__")) and one not in ("node_modules", *_INSTALLED)
        ]
        yield folders, files
        if depth >= _DEPTH:
            folders.clear()


def _is_package_here(path: Path) -> bool:
    """Whether a plain name is that of a package in the current directory, not a mere folder."""
    return path.name == str(path) and (path / "__init__.py").exists()


def shown_path(file: str) -> str:
    """A file as a person would name it: relative to the project, or to where it is installed.

    It does not depend on the directory within a project from which a command is started.
    """
    path = Path(file).resolve()
    root = project_root()
    if path.is_relative_to(root) and not any(mark in path.parts for mark in _INSTALLED):
        return path.relative_to(root).as_posix()
    roots = [Path(entry).resolve() for entry in sys.path if entry]
    above = [entry for entry in roots if path.is_relative_to(entry)]
    if above:
        return path.relative_to(max(above, key=lambda entry: len(entry.parts))).as_posix()
    return str(path)


def project_root() -> Path:
    """The nearest directory, from the current one upwards, that looks like a project's top."""
    here = Path.cwd().resolve()
    for directory in (here, *here.parents):
        if any((directory / mark).exists() for mark in ROOT_MARKS):
            return directory
    return here
