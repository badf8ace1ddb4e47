"""Which stored version of a file the data about today's file comes from.

A store may have been filled on another machine, from another directory, and before the file was
renamed. What is tried, in this order: the same place or name, an earlier name that git knows, a
name that ends alike, and at last the content of files whose names are no longer there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from swarmtest.focus.earlier_names import earlier_names
from swarmtest.focus.line_mapping import share_in_common
from swarmtest.instrument.scope import project_root, shown_path
from swarmtest.instrument.versions import place_of, text_of
from swarmtest.targets import Source

_known_names = lru_cache(maxsize=1024)(earlier_names)
"""Asked again for the files of every campaign in a store."""
_ALIKE = 0.6
"""The share of lines that make two files versions of the same one, whatever they are called."""


@dataclass(frozen=True)
class Earlier:
    """A stored version of a file that is on disk now."""

    source: Source
    name_then: str = ""
    """What it was called, if that was something else; empty otherwise."""


def matching_source(
    place: str | Path,
    sources: Sequence[Source],
    renamed: Callable[[str], tuple[str, ...]] = _known_names,
) -> Earlier | None:
    """The stored version that a file comes from; None when there is none, or no such file.

    Of several, the one whose text is the same, or most like it; among equals the last in `sources`.
    """
    real = Path(os.path.realpath(place))
    known = [source for source in sources if source.text]
    if not known or not real.is_file():
        return None
    shown, text = shown_path(str(real)), text_of(real, real.name)
    for candidates in _tried(str(real), shown, text, known, renamed):
        if candidates:
            best = max(reversed(candidates), key=lambda source: _nearness(source, text))
            same_place = best.path == shown or place_of(best) == str(real)
            return Earlier(best, "" if same_place else best.path)
    return None


def _tried(
    real: str, shown: str, text: str, known: list[Source], renamed: Callable[[str], tuple[str, ...]]
) -> Iterator[list[Source]]:
    yield [one for one in known if one.path == shown or place_of(one) == real]
    elsewhere = [one for one in known if not _is_another_file(one, real)]
    names = renamed(real) if elsewhere else ()
    yield [one for one in elsewhere if any(_end_alike(one.path, name) for name in names)]
    alike = [one for one in elsewhere if share_in_common(one.text, text) >= _ALIKE]
    yield [one for one in alike if _end_alike(one.path, shown)]
    yield alike


def _nearness(source: Source, text: str) -> float:
    return 2.0 if source.text == text else share_in_common(source.text, text)


def _is_another_file(source: Source, real: str) -> bool:
    """Whether a stored file is still there under its own name, beside the one in question.

    It may have been stored on another machine, where the project was somewhere else.
    """
    places = {place_of(source), os.path.realpath(project_root() / source.path)}
    return any(place != real and os.path.exists(place) for place in places)


def _end_alike(one: str, other: str) -> bool:
    """Whether one path is the end of the other: they were named from different directories.

    >>> _end_alike("src/shop/cart.py", "shop/cart.py"), _end_alike("a/cart.py", "b/cart.py")
    (True, False)
    """
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
