"""Mutants that optimisation makes equal to the program, or to each other (dissertation, 3.5.1.2).

Each is compiled alone, with the build's own flags and -O3, to assembler text: it has everything
that an object file has, and nothing of where it was made. Labels are numbered by the order in which
they appear, because a compiler also counts those that it threw away.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.mutation.native.building import Compiled, run
from swarmtest.mutation.native.c_file import CFile
from swarmtest.mutation.native.cache import Cache
from swarmtest.mutation.native.generating import CMutant

_SECONDS = 120.0
_LABEL = re.compile(r"\.L\w+")
_NAMES = re.compile(r"^\s*\.(?:file|ident)\b.*$", re.MULTILINE)
NOT_COMPILED = ""
"""Stands for the code of what does not compile."""
NOT_USED = "not used"
"""Stands for the code of a file that the build leaves out."""


class Objects:
    """The code that mutants of a file are compiled to, remembered between runs."""

    def __init__(self, file: CFile, compiled: Compiled, place: Path) -> None:
        self._file = file
        self._compiled = compiled
        self._place = place
        self._cache = Cache(self._key())
        self.original = self._digest(file.raw)
        if self.original == NOT_COMPILED:
            raise UserError(f"{file.source.path}: it does not compile by itself")

    def digests(self, mutants: Sequence[CMutant], workers: int) -> list[str]:
        """A hash of each mutant's code; `NOT_COMPILED` for one that does not compile."""
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            found = list(pool.map(self._known, mutants))
        self._cache.save()
        return found

    def _known(self, one: CMutant) -> str:
        spot = one.spot
        key = hashlib.blake2b(
            f"{spot.start}:{spot.end}:{one.mutant.change}".encode(errors="surrogatepass"),
            digest_size=12,
        ).hexdigest()
        found = self._cache.get(key)
        if found is None:
            found = self._digest(one.text)
            self._cache.put(key, found)
        return found

    def _digest(self, text: bytes) -> str:
        compiled = self._compiled
        name = os.path.basename(self._place)
        handle, path = tempfile.mkstemp(suffix=".c", prefix=".swarmtest-", dir=self._place.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(f"#line 1 {json.dumps(name)}\n".encode() + text)
        words = [compiled.compiler, *compiled.flags, "-w", "-g0", "-O3", "-S", "-o", "-", path]
        try:
            ended = run(words, compiled.directory, _SECONDS)
        finally:
            os.unlink(path)
        return canonical(ended.output) if ended.status == 0 else NOT_COMPILED

    def _key(self) -> str:
        """What the code of mutants depends on, beside the mutants: headers too."""
        compiled = self._compiled
        version = run([compiled.compiler, "--version"], compiled.directory, _SECONDS).output
        words = [compiled.compiler, *compiled.flags, "-w", "-E", "-P", str(self._place)]
        text = run(words, compiled.directory, _SECONDS).output
        digest = hashlib.blake2b(digest_size=16)
        for part in (version, repr(compiled.flags), text):
            digest.update(part.encode(errors="surrogatepass") + b"\0")
        digest.update(self._file.raw)
        return digest.hexdigest()


def canonical(assembler: str) -> str:
    """A hash of assembler text, whatever its labels and its file are called.

    >>> one = ".file \\"a.c\\"\\njmp .L2\\n.L2:\\n.L7:\\n"
    >>> canonical(one) == canonical(one.replace("L2", "L3").replace("a.c", "b.c"))
    True
    """
    labels: dict[str, str] = {}
    text = _LABEL.sub(
        lambda found: labels.setdefault(found[0], f".L{len(labels)}"), _NAMES.sub("", assembler)
    )
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
