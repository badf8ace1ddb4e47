"""Lines of source files as targets: which files matter, how they are named, what they hold.

All ways of native coverage (fast path, gcov, hit files) number their lines here, so that the same
line of the same file is the same target whoever reported it.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from swarmtest.targets import Catalogue, Source, content_hash

_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")


class Lines:
    """Numbers lines of the source files that matter in a catalogue.

    Without `wanted` every file matters but for the system's headers.

    >>> lines = Lines(Catalogue(), wanted=["src"], root="/home/me/project")
    >>> lines.number("/home/me/project/src/a.c", 12, "main")
    0
    >>> lines.catalogue.targets[0].name
    'src/a.c:12'
    >>> lines.number("/usr/include/stdio.h", 3, "") is None
    True
    """

    def __init__(
        self, catalogue: Catalogue, wanted: Iterable[str | Path] | None = None, root: str = ""
    ) -> None:
        self.catalogue = catalogue
        self.root = root or os.getcwd()
        self.wanted = None if wanted is None else [self._absolute(str(path)) for path in wanted]
        self._files: dict[str, tuple[Source, list[str]] | None] = {}

    def number(self, path: str, line: int, function: str) -> int | None:
        """The target's number; None when the file does not matter."""
        file = self._file(path)
        if file is None:
            return None
        source, texts = file
        text = texts[line - 1] if 0 < line <= len(texts) else ""
        content = content_hash(text) if texts else ""
        return self.catalogue.number(source.target("line", f"{line}", line, function, content))

    def matters(self, path: str) -> bool:
        """Whether lines of a file are targets."""
        return self._file(path) is not None

    def _file(self, path: str) -> tuple[Source, list[str]] | None:
        if path not in self._files:
            self._files[path] = self._read(self._absolute(path))
        return self._files[path]

    def _read(self, path: str) -> tuple[Source, list[str]] | None:
        if not self._is_wanted(path):
            return None
        try:
            text = Path(path).read_text(errors="replace")
        except OSError:
            text = ""
        inside = path.startswith(self.root.rstrip("/") + "/")
        shown = os.path.relpath(path, self.root) if inside else path
        source = Source(shown, text, path)
        self.catalogue.add_source(source)
        return source, text.splitlines()

    def _is_wanted(self, path: str) -> bool:
        if self.wanted is None:
            return not path.startswith(_SYSTEM)
        return any(
            path == one or path.startswith(one + "/") or fnmatch.fnmatch(path, one)
            for one in self.wanted
        )

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.root, path))
