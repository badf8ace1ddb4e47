"""Where in the program a fault showed, from the traceback or stack that came with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from swarmtest.targets import Source

_FRAMES = (
    re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)'),
    re.compile(r"(?P<file>[\w./+-]+\.(?:c|cc|cpp|cxx|h|hpp|py)):(?P<line>\d+)"),
)


def place_of_fault(details: str, watched: Iterable[Source]) -> tuple[str, int] | None:
    """The innermost frame in a file that was watched, as path and line; None if there is none.

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
