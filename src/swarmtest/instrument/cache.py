"""Instrumented code on disk, beside the bytecode that Python keeps, so that weaving is done once.

A file is found by the source's place and the options, and used only if the source's hash (and the
version of the weaver) is the one it was made from. As with bytecode, a cache that cannot be read or
written is no error: the work is done again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import marshal
import os
import sys
import tempfile
from pathlib import Path
from types import CodeType

from swarmtest.instrument.facts import Plan

FORMAT = b"swarmtest\n"


def stamp(source: bytes, file: str, kinds: tuple[str, ...]) -> bytes:
    """What instrumented code was made from: 32 bytes."""
    python = (sys.version_info[:3], sys.flags.optimize)
    options = repr((file, kinds, python, _weaver())).encode()
    return hashlib.blake2b(FORMAT + options + b"\0" + source, digest_size=32).digest()


def load(path: str, kinds: tuple[str, ...], made_from: bytes) -> tuple[CodeType, Plan] | None:
    """The code and plan kept for a source, if they were made from just that."""
    try:
        data = _place(path, kinds).read_bytes()
        if not data.startswith(FORMAT + made_from):
            return None
        code, plan = marshal.loads(data[len(FORMAT) + len(made_from) :])
        return code, Plan.from_plain(plan)
    except (OSError, EOFError, ValueError, TypeError, NotImplementedError):
        return None


def keep(path: str, kinds: tuple[str, ...], made_from: bytes, code: CodeType, plan: Plan) -> None:
    """Keep code and plan; another process never sees half of them."""
    if sys.dont_write_bytecode:
        return
    with contextlib.suppress(OSError, NotImplementedError):  # a Python may have no such places
        place = _place(path, kinds)
        place.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=place.parent)
        try:
            with os.fdopen(fd, "wb") as out:
                out.write(FORMAT + made_from + marshal.dumps((code, plan.to_plain())))
            os.replace(temporary, place)
        except OSError:
            os.unlink(temporary)


@functools.cache
def _weaver() -> str:
    """A hash of the code that weaves: what another version of it made is of no use."""
    digest = hashlib.blake2b(digest_size=16)
    for module in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def _place(path: str, kinds: tuple[str, ...]) -> Path:
    options = hashlib.blake2b(repr(kinds).encode(), digest_size=4).hexdigest()
    beside = Path(importlib.util.cache_from_source(path))
    return beside.with_name(f"{beside.name.removesuffix('.pyc')}.swarmtest-{options}.pyc")
