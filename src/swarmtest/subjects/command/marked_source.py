"""Features of a generator by deletion: lines of its source that belong to features that are off."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from swarmtest.subjects.command.specification import FeatureForm, MarkedSource

_NAMES = r"(?P<names>[\w.+-]+(?:\s*,\s*[\w.+-]+)*)"


def marker_pattern(marker: str) -> re.Pattern[str]:
    """The regular expression for a marker, in which NAME stands for names of features.

    >>> marker_pattern("// swarm: NAME").search("x(); // swarm: loops, calls")["names"]
    'loops, calls'
    """
    before, _, after = marker.partition("NAME")
    return re.compile(re.escape(before) + _NAMES + re.escape(after))


def marked_names(text: str, marker: str) -> list[str]:
    """The features that markers in a source name, in order of appearance.

    >>> marked_names("a # swarm: x\\nb # swarm: y, x\\n", "# swarm: NAME")
    ['x', 'y']
    """
    found = marker_pattern(marker).finditer(text)
    return list(dict.fromkeys(name for one in found for name in _split(one["names"])))


class SourceLines:
    """A generator's source, and which features each of its lines needs."""

    def __init__(self, source: MarkedSource, forms: Iterable[FeatureForm]) -> None:
        text = source.path.read_text(errors="surrogateescape")
        pattern = marker_pattern(source.marker)
        by_regex = [(form.name, form.lines) for form in forms if form.lines is not None]
        self.lines: list[tuple[str, frozenset[str]]] = []
        for line in text.splitlines(keepends=True):
            marked = pattern.search(line)
            needs = set(_split(marked["names"])) if marked else set()
            needs |= {name for name, regex in by_regex if regex.search(line)}
            self.lines.append((line, frozenset(needs)))
        self.used = frozenset().union(*(needs for _, needs in self.lines))
        """The features that some line needs."""
        self._without = lru_cache(maxsize=64)(self._text)

    def text(self, included: Collection[str]) -> str:
        """The source with only the lines whose features are all included."""
        return self._without(frozenset(included))

    def _text(self, included: frozenset[str]) -> str:
        return "".join(line for line, needs in self.lines if needs <= included)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]
