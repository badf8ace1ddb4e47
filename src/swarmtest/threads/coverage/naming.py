"""Names of what was covered, as targets that lie in files."""

from __future__ import annotations

from pathlib import Path

from swarmtest.instrument.scope import shown_path
from swarmtest.targets import Catalogue, Source, Target
from swarmtest.threads.coverage.pairs import parts_of
from swarmtest.threads.coverage.places import Places
from swarmtest.threads.coverage.synchronisation import STATES
from swarmtest.threads.policy import woven_namespaces
from swarmtest.threads.sharing import Variable
from swarmtest.threads.sites import SITES

FIRST_PLACE = 1 << 23
"""Places of synchronisation are numbered from here, where pairs are concerned."""


class Naming:
    """Gives what was covered its numbers in a catalogue; each is named once."""

    def __init__(self, catalogue: Catalogue, places: Places) -> None:
        self._places = places
        self._catalogue = catalogue
        self._sources: dict[str, Source] = {}
        self._pairs: dict[int, int] = {}
        self._states: dict[int, int] = {}

    def pair(self, pair: int) -> int:
        """The catalogue's number of a pair."""
        known = self._pairs.get(pair)
        if known is None:
            first, second, changed = parts_of(pair)
            path, line, function, words = self._site(first)
            other, other_line, _, other_words = self._site(second)
            then = "then another thread:" if changed else "then"
            name = f"{line} {words} {then} {other}:{other_line} {other_words}"
            target = self._source(path).target("pair", name, line, function)
            known = self._pairs[pair] = self._catalogue.number(target)
        return known

    def state(self, seen: int) -> int:
        """The catalogue's number of what happened at a place of synchronisation."""
        known = self._states.get(seen)
        if known is None:
            path, line, function, words = self._site(FIRST_PLACE + (seen >> 2))
            name = f"{line} {words} {STATES[seen & 3]}"
            target = self._source(path).target("sync", name, line, function)
            known = self._states[seen] = self._catalogue.number(target)
        return known

    def shared(self, variable: Variable) -> int:
        """The catalogue's number of a shared variable."""
        first = min((SITES[site] for site in variable.sites), key=lambda one: one.line)
        source = self._source(first.path)
        name = variable.label.removeprefix(f"{first.path}:")
        target: Target = source.target("shared", name, first.line, first.function)
        return self._catalogue.number(target)

    def _site(self, number: int) -> tuple[str, int, str, str]:
        """Where a site is, and what it does."""
        if number < FIRST_PLACE:
            site = SITES[number]
            return site.path, site.line, site.function, f"{site.kind} {site.variable}"
        place = self._places[number - FIRST_PLACE]
        code = place.code
        path = shown_path(code.co_filename)
        if path not in self._sources:
            self._read(path, code.co_filename)
        function = "" if code.co_name == "<module>" else code.co_qualname
        return path, place.line, function, place.kind

    def _source(self, path: str) -> Source:
        if path not in self._sources:
            for namespace in woven_namespaces():
                file = namespace.get("__file__")
                if file and shown_path(file) == path:
                    return self._read(path, file)
            return self._read(path, "")
        return self._sources[path]

    def _read(self, path: str, file: str) -> Source:
        place = Path(file)
        text = place.read_text(errors="replace") if file and place.is_file() else ""
        source = self._sources[path] = Source(path, text, file)
        self._catalogue.add_source(source)
        return source
