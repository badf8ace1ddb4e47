"""Sites of a native program by name: file, line and function where there is debug information."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Source, Target, content_hash

_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")
_UNKNOWN = "??"


class Site(NamedTuple):
    """Where a call or an access lies.

    >>> Site("bank.c", 12, "transfer").place
    'bank.c:12'
    >>> Site("", 0, "", "libz.so+0x1234").inside
    'libz.so+0x1234'
    """

    path: str
    line: int
    function: str
    code: str = ""
    """How it is called where nothing else is known: the module, and where in it."""

    @property
    def place(self) -> str:
        """Its file and line; else its module, and the function or the address in it."""
        if self.line:
            return f"{self.path}:{self.line}"
        module = self.code.rpartition("+")[0]
        return f"{module}:{self.function}" if self.function else self.code

    @property
    def inside(self) -> str:
        """The function around it: what stays the same when lines move."""
        return self.function or self.place


class SiteNames:
    """Looks up sites, each once, and keeps the text of the files that they lie in."""

    def __init__(self, catalogue: Catalogue, root: str = "") -> None:
        self.catalogue = catalogue
        self._root = (root or os.getcwd()).rstrip("/") + "/"
        self._sites: dict[tuple[str, int], Site] = {}
        self._sources: dict[str, tuple[Source, list[str]]] = {}
        self._targets: dict[tuple[str, Site, str], Target] = {}
        self._symbols: dict[str, list[tuple[int, int, str]]] = {}

    def learn(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Look up all sites that are not known yet: a process per module, not per site."""
        by_module: dict[str, list[int]] = {}
        for module, address in wanted:
            if (module, address) not in self._sites:
                by_module.setdefault(module, []).append(address)
        for module, addresses in by_module.items():
            for address, site in zip(addresses, self._look_up(module, addresses), strict=True):
                self._sites[module, address] = site

    def __getitem__(self, key: tuple[str, int]) -> Site:
        return self._sites[key]

    def target(self, kind: str, site: Site, words: str) -> Target:
        """A target at a site; it knows its file where that is known."""
        known = self._targets.get((kind, site, words))
        if known is None:
            known = self._targets[kind, site, words] = self._target(kind, site, words)
        return known

    def _target(self, kind: str, site: Site, words: str) -> Target:
        if not site.line:
            return Target(kind, f"{site.place} {words}", function=site.function)
        source, texts = self._source(site.path)
        text = texts[site.line - 1] if site.line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return source.target(kind, f"{site.line} {words}", site.line, site.function, content)

    def _look_up(self, module: str, addresses: list[int]) -> Iterator[Site]:
        name = os.path.basename(module)
        answers = _addr2line(module, addresses)
        for address in addresses:
            path, line, function = _best(answers.get(address, []))
            if not line:
                function = self._exact(function, address, module)
            yield Site(self._shown(path) if line else "", line, function, f"{name}+{address:#x}")

    def _exact(self, function: str, address: int, module: str) -> str:
        """The function, if it really is around the address.

        Without debug information the nearest symbol before it is named, which of a stripped library
        is any that it exports.
        """
        if module not in self._symbols:
            self._symbols[module] = _symbols(module)
        for start, size, name in self._symbols[module]:
            if start <= address < start + size:
                return function or name
        return ""

    def _shown(self, path: str) -> str:
        path = os.path.normpath(path)
        return path[len(self._root) :] if path.startswith(self._root) else path

    def _source(self, shown: str) -> tuple[Source, list[str]]:
        if shown not in self._sources:
            place = os.path.join(self._root, shown)
            try:
                text = Path(place).read_text(errors="replace")
            except OSError:
                text = ""
            source = Source(shown, text, place)
            self.catalogue.add_source(source)
            self._sources[shown] = source, text.splitlines()
        return self._sources[shown]


_Frame = tuple[str, int, str]


def _best(frames: list[_Frame]) -> _Frame:
    """The innermost frame of the user's own code: what is inlined from a header is not."""
    placed = [frame for frame in frames if frame[1]]
    own = [frame for frame in placed if not frame[0].startswith(_SYSTEM)]
    return (own or placed or frames or [("", 0, "")])[0]


def _symbols(module: str) -> list[tuple[int, int, str]]:
    """Where functions begin, their sizes and names: the program's own, and those it exports."""
    found = []
    for option in ("--debug-syms", "--dynamic"):
        command = ["nm", "-S", "-C", "--defined-only", option, module]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        for line in done.stdout.splitlines():
            words = line.split(maxsplit=3)
            if len(words) == 4 and words[2] in "tTwWiu":
                found.append((int(words[0], 16), int(words[1], 16), words[3].partition("(")[0]))
    return found


def _addr2line(module: str, addresses: list[int]) -> dict[int, list[_Frame]]:
    """The frames at each address, the innermost first."""
    for tool in ("addr2line", "nm"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is not on the PATH: install binutils")
    if not os.path.isfile(module):
        return {}  # the kernel's own, or gone since
    words = "\n".join(f"{address:#x}" for address in addresses)
    command = ["addr2line", "-a", "-f", "-C", "-i", "-e", module]
    done = subprocess.run(command, input=words, capture_output=True, text=True, errors="replace")
    found: dict[int, list[_Frame]] = {}
    lines = iter(done.stdout.splitlines())
    frames: list[_Frame] = []
    for text in lines:
        if text.startswith("0x"):
            frames = found.setdefault(int(text, 16), [])
            continue
        place = next(lines, "").partition(" (discriminator")[0]
        path, _, number = place.rpartition(":")
        line = int(number) if number.isdigit() and path != _UNKNOWN else 0
        function = "" if text == _UNKNOWN else text.partition("(")[0]
        frames.append((path if line else "", line, function))
    return found
