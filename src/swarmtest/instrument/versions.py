"""Whether a watched file is still what was tested."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from swarmtest.instrument.interchange.formats import is_python
from swarmtest.instrument.scope import project_root
from swarmtest.targets import Source


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
