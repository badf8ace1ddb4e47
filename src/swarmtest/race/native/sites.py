"""Names for the sites of a native program, from debug information and symbol tables."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Catalogue, Source, Target, content_hash

_SYSTEM_FOLDERS = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")
_UNKNOWN = "??"


class NativeSite(NamedTuple):
    """The location of a call or an access.

    >>> NativeSite("bank.c", 12, "transfer").place
    'bank.c:12'
    >>> NativeSite("", 0, "", "libz.so+0x1234").inside
    'libz.so+0x1234'
    """

    path: str
    line: int
    function: str
    code: str = ""
    """The module and the address in it, for use if nothing else is known."""

    @property
    def place(self) -> str:
        """The file and line; without these the module with the function or address in it."""
        if self.line:
            return f"{self.path}:{self.line}"
        module = self.code.rpartition("+")[0]
        return f"{module}:{self.function}" if self.function else self.code

    @property
    def inside(self) -> str:
        """The function around the site, which stays the same when lines move."""
        return self.function or self.place


class SiteNames:
    """The names of sites, each looked up once, and the texts of the files that contain them."""

    def __init__(self, catalogue: Catalogue, root: str = "") -> None:
        self.catalogue = catalogue
        self._root = (root or os.getcwd()).rstrip("/") + "/"
        self._sites: dict[tuple[str, int], NativeSite] = {}
        self._sources: dict[str, tuple[Source, list[str]]] = {}
        self._targets: dict[tuple[str, NativeSite, str], Target] = {}
        self._symbols: dict[str, list[tuple[int, int, str]]] = {}

    def learn(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Look up all sites that are not known yet, with one process per module."""
        by_module: dict[str, list[int]] = {}
        for module, address in wanted:
            if (module, address) not in self._sites:
                by_module.setdefault(module, []).append(address)
        for module, addresses in by_module.items():
            for address, site in zip(addresses, self._look_up(module, addresses), strict=True):
                self._sites[module, address] = site

    def __getitem__(self, key: tuple[str, int]) -> NativeSite:
        return self._sites[key]

    def target(self, kind: str, site: NativeSite, words: str) -> Target:
        """Return a target at a site, with its file if that is known."""
        target = self._targets.get((kind, site, words))
        if target is None:
            target = self._targets[kind, site, words] = self._target(kind, site, words)
        return target

    def _target(self, kind: str, site: NativeSite, words: str) -> Target:
        if not site.line:
            return Target(kind, f"{site.place} {words}", function=site.function)
        source, texts = self._source(site.path)
        text = texts[site.line - 1] if site.line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return source.target(kind, f"{site.line} {words}", site.line, site.function, content)

    def _look_up(self, module: str, addresses: list[int]) -> Iterator[NativeSite]:
        name = os.path.basename(module)
        answers = _addr2line(module, addresses)
        for address in addresses:
            path, line, function = _best_frame(answers.get(address, []))
            if not line:
                function = self._enclosing_function(function, address, module)
            yield NativeSite(
                self._shown(path) if line else "", line, function, f"{name}+{address:#x}"
            )

    def _enclosing_function(self, function: str, address: int, module: str) -> str:
        """Return the function if it really contains the address, else an empty string.

        Without debug information, addr2line names the nearest symbol before the address, which in a
        stripped library can be any exported function.
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
            path = os.path.join(self._root, shown)
            try:
                text = Path(path).read_text(errors="replace")
            except OSError:
                text = ""
            source = Source(shown, text, path)
            self.catalogue.add_source(source)
            self._sources[shown] = source, text.splitlines()
        return self._sources[shown]


_Frame = tuple[str, int, str]


def _best_frame(frames: list[_Frame]) -> _Frame:
    """Return the innermost frame of the user's own code, which excludes system headers."""
    placed = [frame for frame in frames if frame[1]]
    own = [frame for frame in placed if not frame[0].startswith(_SYSTEM_FOLDERS)]
    return (own or placed or frames or [("", 0, "")])[0]


def _symbols(module: str) -> list[tuple[int, int, str]]:
    """Return the start, size and name of functions: the program's own and those it exports."""
    symbols = []
    for option in ("--debug-syms", "--dynamic"):
        command = ["nm", "-S", "-C", "--defined-only", option, module]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        for line in done.stdout.splitlines():
            words = line.split(maxsplit=3)
            if len(words) == 4 and words[2] in "tTwWiu":
                symbols.append((int(words[0], 16), int(words[1], 16), words[3].partition("(")[0]))
    return symbols


def _addr2line(module: str, addresses: list[int]) -> dict[int, list[_Frame]]:
    """Return the frames at each address, innermost first."""
    for tool in ("addr2line", "nm"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is not on the PATH: install binutils")
    if not os.path.isfile(module):
        return {}  # it belongs to the kernel, or has been deleted
    words = "\n".join(f"{address:#x}" for address in addresses)
    command = ["addr2line", "-a", "-f", "-C", "-i", "-e", module]
    done = subprocess.run(command, input=words, capture_output=True, text=True, errors="replace")
    frames_at: dict[int, list[_Frame]] = {}
    lines = iter(done.stdout.splitlines())
    frames: list[_Frame] = []
    for text in lines:
        if text.startswith("0x"):
            frames = frames_at.setdefault(int(text, 16), [])
            continue
        location = next(lines, "").partition(" (discriminator")[0]
        path, _, number = location.rpartition(":")
        line = int(number) if number.isdigit() and path != _UNKNOWN else 0
        function = "" if text == _UNKNOWN else text.partition("(")[0]
        frames.append((path if line else "", line, function))
    return frames_at
