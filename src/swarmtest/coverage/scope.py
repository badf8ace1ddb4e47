"""Which modules are the program under test, how their files are named, and where they are."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.targets import Source
from swarmtest.coverage.interchange.formats import is_python

ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""A directory with one of these is the root of a project."""
_INSTALLED = ("site-packages", "dist-packages")
_TEST_TOOLS = ("swarmtest", "pytest", "_pytest", "hypothesis")
DEPENDENCIES = ("numpy", "pyroaring", "click", "rich")
"""Packages that swarmtest itself imports, so that they cannot be imported after coverage begins."""
_DEPTH = 3
"""How far below the project's root to look for a module that is not on the path (src, tests)."""


@dataclass(frozen=True)
class Scope:
    """The modules to watch, chosen by name (``shop``, ``shop.cart``) or by path.

    >>> Scope(names=("shop",)).chooses("shop.cart", "anywhere/cart.py")
    True
    """

    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Absolute files and directories, without symbolic links."""
    own_code_only: bool = False
    """Leave out installed packages below the places, as in a project's virtual environment."""

    def chooses(self, name: str, origin: str) -> bool:
        """Return whether a module is chosen; `origin` is its file."""
        if self._names_module(name):
            return True
        if self.own_code_only and any(mark in origin for mark in _INSTALLED):
            return False
        real = os.path.realpath(origin) if self.places else origin
        return any(real == place or real.startswith(place + os.sep) for place in self.places)

    def may_choose(self, name: str) -> bool:
        """Return whether a module might be chosen, so that its file must be looked up.

        Most imports are not part of the program; for those the look-up is saved.
        """
        top = name.partition(".")[0]
        if self._names_module(name):
            return True
        return bool(self.places) and top not in sys.stdlib_module_names and top != "swarmtest"

    def _names_module(self, name: str) -> bool:
        return any(name == chosen or name.startswith(f"{chosen}.") for chosen in self.names)


def parse_scope(
    given: Iterable[str],
    beside: str = "",
    package: str = "",
    check_names: bool = False,
    imports: Iterable[str] = (),
) -> Scope:
    """Return the scope for a user's names of modules and paths; a single one may be a string.

    `check_names` refuses names that no module has. Programs that use the Python API do not check,
    because a module may be created after the scope.

    If nothing is given, the scope is the subject's `package`, the modules that its file `imports`,
    and every module in the directory `beside` and in the current directory, without packages that
    are installed there.
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
        chosen = (*((package,) if package else ()), *imports)
        return Scope(chosen, tuple(sorted(here)), own_code_only=True)
    return Scope(tuple(names), tuple(places))


def _check_module(name: str, beside: str) -> None:
    """Raise `UserError` for a name that no module can have when the program runs.

    Nothing is imported. pytest or the program may put directories on the path later, so a module
    anywhere near the project's root is accepted.
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
    modules = [module for module in near | here if module.isidentifier()]
    likely = difflib.get_close_matches(top, modules, n=1)
    hint = did_you_mean(top, likely) if likely else "; give its path?"
    raise UserError(f"--cover {name}: there is no module {top!r}{hint}")


def _can_be_found(top: str, beside: str) -> bool:
    try:
        if importlib.util.find_spec(top) is not None:
            return True
    except (ImportError, ValueError):
        return True  # a finder that fails knows the module
    return PathFinder.find_spec(top, _directories(beside)) is not None


def _directories(beside: str) -> list[str]:
    """Return where the program will look for modules, as `languages.user_objects` sets it up."""
    root = Path(beside or ".").resolve()
    while (root / "__init__.py").exists() and root != root.parent:
        root = root.parent
    return list(dict.fromkeys([beside or ".", str(root), "."]))


def _project_folders() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the folders and files at most `_DEPTH` below the project's root.

    Hidden folders and installed packages are left out.
    """
    top = str(project_root())
    for directory, folders, files in os.walk(top):
        below = os.path.relpath(directory, top)
        depth = 0 if below == "." else below.count(os.sep) + 1
        folders[:] = [
            folder
            for folder in folders
            if not folder.startswith((".", "__")) and folder not in ("node_modules", *_INSTALLED)
        ]
        yield folders, files
        if depth >= _DEPTH:
            folders.clear()


# What a file of tests imports: by default, that is the program.


@dataclass(frozen=True)
class ImportedProgram:
    """The modules that a test file imports, without the standard library and tools for tests."""

    names: tuple[str, ...] = ()
    """The program: the user's own modules, or else installed packages."""
    left_out: tuple[str, ...] = ()
    """Installed packages that are not watched by default, because the file imports own modules."""


def imported_program(file: str) -> ImportedProgram:
    """Return what a Python file imports, by its text: nothing is imported for it.

    >>> imported_program(__file__)
    ImportedProgram(names=(), left_out=())
    """
    try:
        tree = ast.parse(text_of(Path(file), file))
    except (OSError, SyntaxError, ValueError):
        return ImportedProgram()
    beside = os.path.dirname(os.path.realpath(file))
    own, installed, unknown = [], [], []
    itself = Path(file).stem
    for name in dict.fromkeys(_imported_names(tree, Path(file).resolve())):
        top = name.partition(".")[0]
        if top in (*sys.stdlib_module_names, *_TEST_TOOLS, itself):
            continue
        places = _places_of_module(top, beside)
        if not places:
            unknown.append(name)
        elif not any(mark in Path(place).parts for place in places for mark in _INSTALLED):
            own.append(name)
        elif top not in DEPENDENCIES:
            installed.append(name)
    if own:
        return ImportedProgram((*own, *unknown), tuple(installed))
    return ImportedProgram((*installed, *unknown))


def _imported_names(tree: ast.Module, file: Path) -> Iterator[str]:
    """Yield the packages of absolute imports, and the modules of relative ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            above = _package_parts(file)
            parts = above[: len(above) - node.level + 1] + (node.module or "").split(".")
            within = ".".join(filter(None, parts))
            yield from [within] if node.module else (f"{within}.{a.name}" for a in node.names)


def _package_parts(file: Path) -> list[str]:
    """Return the names of the packages that a file is in, the outermost first."""
    parts: list[str] = []
    directory = file.parent
    while (directory / "__init__.py").exists() and directory != directory.parent:
        parts.insert(0, directory.name)
        directory = directory.parent
    return parts


def _places_of_module(top: str, beside: str) -> list[str]:
    """Return the file or the directories of a module without dots; empty if it is not found."""
    try:
        spec = PathFinder.find_spec(top, _directories(beside)) or importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    return [spec.origin] if spec.has_location and spec.origin else [*_locations(spec)]


def _locations(spec: ModuleSpec) -> Iterable[str]:
    return spec.submodule_search_locations or ()


def is_installed(file: str) -> bool:
    """Return whether a file belongs to an installed package.

    >>> is_installed("/usr/lib/python3/dist-packages/yaml/__init__.py"), is_installed("cart.py")
    (True, False)
    """
    return any(mark in Path(file).parts for mark in _INSTALLED)


def file_of_module(name: str) -> str:
    """Return the source file of a module, without importing it or its packages; empty if unknown.

    >>> file_of_module("json.decoder").endswith("decoder.py")
    True
    >>> file_of_module("no_such_module")
    ''
    """
    spec: ModuleSpec | None = None
    within = ""
    for part in name.split("."):
        within = f"{within}.{part}" if within else part
        places = [*_locations(spec)] if spec else [*_directories(""), *sys.path]
        spec = PathFinder.find_spec(within, places)
        if spec is None:
            return ""
    return spec.origin if spec and spec.origin and spec.origin.endswith(".py") else ""


def _is_package_here(path: Path) -> bool:
    """Return whether a path is the plain name of a package in the current directory."""
    return path.name == str(path) and (path / "__init__.py").exists()


def shown_path(file: str) -> str:
    """Return a file's path relative to the project, or to where it is installed.

    It is the same whichever directory of the project a command is started from.
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
    """Return the nearest directory, from the current one upwards, that has a project's marks."""
    here = Path.cwd().resolve()
    for directory in (here, *here.parents):
        if any((directory / mark).exists() for mark in ROOT_MARKS):
            return directory
    return here


# Whether a watched file is still what was tested.


def is_as_it_was(source: Source) -> bool:
    """Return whether a file has the text that was tested; a missing file counts as unchanged."""
    try:
        return not source.text or text_of(Path(place_of(source)), source.path) == source.text
    except OSError:
        return True


def place_of(source: Source) -> str:
    """Return the path of a file, as far as it is known, without symbolic links."""
    return os.path.realpath(source.place or os.path.join(project_root(), source.path))


def text_of(place: Path, path: str) -> str:
    """Return a file's text as coverage reads it: Python in the encoding that it declares."""
    if is_python(path):
        try:
            return importlib.util.decode_source(place.read_bytes())
        except (SyntaxError, UnicodeDecodeError):
            pass
    return place.read_text(encoding="utf-8", errors="replace")
