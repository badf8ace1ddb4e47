"""Find earlier faults and where they showed, and say which files tests can be seen to reach.

`place_of_fault` reads the place of a fault from its traceback or stack. `known_fault` finds a
fault of an earlier campaign by the beginning of its id. `WatchedCode` says whether tests can be
seen to reach a file, and if not, why not and what would help.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.campaign.reduced_faults import EXPLAINED
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.coverage.scope import Scope, shown_path
from swarmtest.store.interface import Store

_FRAMES = (
    re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)'),
    re.compile(r"(?P<file>[\w./+-]+\.(?:c|cc|cpp|cxx|h|hpp|py)):(?P<line>\d+)"),
)


def place_of_fault(details: str, watched: Iterable[Source]) -> tuple[str, int] | None:
    """Return path and line of the innermost frame in a watched file; None if there is none.

    >>> place_of_fault('File "/w/cart.py", line 7, in add', [Source("cart.py", "", "/w/cart.py")])
    ('cart.py', 7)
    """
    sources = list(watched)
    python = list(_FRAMES[0].finditer(details))
    # Python prints the innermost frame last, sanitizers and debuggers print it first.
    frames = reversed(python) if python else _FRAMES[1].finditer(details)
    for frame in frames:
        for source in sources:
            if _is_same(frame["file"], source):
                return source.path, int(frame["line"])
    return None


def _is_same(file: str, source: Source) -> bool:
    if source.place and os.path.realpath(file) == os.path.realpath(source.place):
        return True
    return os.path.basename(file) == os.path.basename(source.path) and (
        file.endswith(source.path) or source.path.endswith(file)
    )


@dataclass(frozen=True)
class EarlierFault:
    """A fault that an earlier campaign found.

    >>> EarlierFault("4ee18053", "cart.py::CartMachine", "shop/cart.py", 25).line
    25
    """

    id: str
    subject: str
    path: str = ""
    """The file where it showed, as the store names it; empty if not known."""
    line: int = 0


def known_fault(store: Store, start: str, subject: str) -> EarlierFault:
    """Return the subject's only fault whose id begins with `start`, also of directed campaigns."""
    matches: dict[str, EarlierFault] = {}
    elsewhere: dict[str, str] = {}
    for record in store.campaigns():
        for fault in store.faults(record.id):
            if not fault.id.startswith(start):
                continue
            if record.subject != subject:
                elsewhere[fault.id] = record.subject
                continue
            path, line = place_of_fault(fault.details, store.sources(record.id)) or ("", 0)
            matches[fault.id] = EarlierFault(fault.id, subject, path, line)
    if len(matches) == 1:
        return next(iter(matches.values()))
    if matches:
        raise UserError(f"--fault {start} may be {', '.join(sorted(matches))}: say which")
    if elsewhere:
        id, owner = next(iter(elsewhere.items()))
        raise UserError(f"fault {id} is not one of {subject}: swarmtest focus {owner} --fault {id}")
    raise UserError(f"no campaign of {subject} found a fault {start!r}: see `swarmtest faults`")


_MOST_VALUES = 50


def explained_values(store: Store, fault: str) -> tuple[Any, ...]:
    """Return the numbers and texts in the test of a fault that was explained, each once."""
    for campaign in reversed(store.campaigns()):
        for record in store.reductions(campaign.id):
            if record.fault == fault and record.criterion == EXPLAINED:
                return tuple(dict.fromkeys(_values_in(json.loads(record.test or "{}"))))[
                    :_MOST_VALUES
                ]
    return ()


def _values_in(test: Any) -> Iterator[Any]:
    """Yield the numbers and texts in the arguments of a machine's test, as plain data."""
    steps = test.get("steps", ()) if isinstance(test, dict) else ()
    pending = [step[1] for step in steps if isinstance(step, list) and len(step) > 1]
    while pending:
        part = pending.pop(0)
        if isinstance(part, list):
            pending[:0] = part
        elif isinstance(part, dict):  # a value that JSON does not have, such as a tuple
            pending[:0] = [inner for inner in part.values() if isinstance(inner, list)]
        elif isinstance(part, int | float | str) and not isinstance(part, bool):
            yield part


@dataclass(frozen=True)
class WatchedCode:
    """Which code is watched while tests run.

    >>> WatchedCode(Scope(names=("shop",))).why_unseen("/home/me/bank/account.py")
    'its file is not watched: --cover names what is'
    """

    scope: Scope | None = None
    """The modules that are watched; None if coverage is not measured by Python."""
    harness: str = ""
    """The real path of the file that drives the program; empty if it has no file of its own."""

    def why_unseen(self, place: str) -> str:
        """Say why no test will be seen to reach a file; empty if one may be.

        For files that no earlier test was seen to reach.
        """
        if self.scope is None or not place.endswith(".py"):
            return ""
        if place == self.harness and self.scope.own_code_only:
            return f"it is the harness, which is watched only if named: --cover {shown_path(place)}"
        instead = _imported_instead(place)
        if instead:
            return f"{instead} is tested instead of this file (pip install -e . fixes it)"
        if not _chooses(self.scope, place):
            return "its file is not watched: --cover names what is"
        return ""


def is_imported(place: str) -> bool:
    """Return whether a Python file was imported when the subject was loaded."""
    return any(os.path.realpath(file) == place for file in _imported_files())


def _imported_instead(place: str) -> str:
    """Return another file of the same name: an installed copy of the program."""
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
    """Return whether a scope includes a file; module names are matched with the file's path."""
    if scope.chooses("", place):
        return True
    parts = Path(place).with_suffix("").parts
    return any(_has_within(parts, tuple(name.split("."))) for name in scope.names)


def _has_within(parts: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return any(parts[at : at + len(name)] == name for at in range(len(parts)))
