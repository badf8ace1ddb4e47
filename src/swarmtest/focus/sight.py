"""Whether tests can be seen to reach a file, and if not, why not and what would help."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from swarmtest.instrument.scope import Scope, shown_path


@dataclass(frozen=True)
class Sight:
    """What is watched while tests run.

    >>> Sight(Scope(names=("shop",))).why_unseen("/home/me/bank/account.py")
    'its file is not watched: --cover names what is'
    """

    scope: Scope | None = None
    """The modules that are watched; None where that is not for Python to say."""
    harness: str = ""
    """The file that drives the program, without links; empty if there is none of its own."""

    def why_unseen(self, place: str) -> str:
        """Why no test will be seen in a file that no earlier test was seen in; empty if it may."""
        if self.scope is None or not place.endswith(".py"):
            return ""
        if place == self.harness and self.scope.own_code_only:
            return f"it is the harness, which is watched only if named: --cover {shown_path(place)}"
        instead = _imported_instead(place)
        if instead:
            return f"{instead} is tested instead of this file (pip install -e . mends it)"
        if not _chooses(self.scope, place):
            return "its file is not watched: --cover names what is"
        return ""


def is_imported(place: str) -> bool:
    """Whether a Python file was imported when the subject was loaded."""
    return any(os.path.realpath(file) == place for file in _imported_files())


def _imported_instead(place: str) -> str:
    """Another file that goes by the same name: an installed copy of the program."""
    if is_imported(place):
        return ""
    ending = os.sep + os.path.join(*Path(place).parts[-2:])
    copies = (file for file in _imported_files() if file.endswith(ending))
    return next((file for file in copies if _is_installed(file)), "")


def _is_installed(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _imported_files() -> list[str]:
    modules = list(sys.modules.values())
    return [file for module in modules if (file := getattr(module, "__file__", None))]


def _chooses(scope: Scope, place: str) -> bool:
    """Whether a scope has a file in it; a module's name is known by how its path ends."""
    if scope.chooses("", place):
        return True
    parts = Path(place).with_suffix("").parts
    return any(_has_within(parts, tuple(name.split("."))) for name in scope.names)


def _has_within(parts: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return any(parts[at : at + len(name)] == name for at in range(len(parts)))
