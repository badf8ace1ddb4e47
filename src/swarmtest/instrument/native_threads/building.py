"""The preloaded library: built once per compiler from our C source, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.symbols import cache_directory

RUNTIME = Path(__file__).with_name("runtime")
PLAIN = "libswarmtest-threads.so"
"""Its name for programs that were not built with ``-fsanitize=thread``."""
_FLAGS = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-std=gnu11")


def library(name: str = PLAIN, compiler: str = "") -> Path:
    """The library under a name; one called like ThreadSanitizer's own stands in for it.

    `compiler`: gcc, clang or what takes their options; default: $CC, else the first on the PATH.
    """
    words = _compiler(compiler)
    hooks = [] if name == PLAIN else ["-DACCESSES"]
    source = str(RUNTIME / "library.c")
    recipe = [*words, *_FLAGS, *hooks, f"-Wl,-soname,{name}", source, "-ldl", "-lpthread"]
    texts = [file.read_text() for file in sorted(RUNTIME.iterdir())]
    key = "\0".join([*recipe, _version(words), *texts])
    kept = cache_directory("threads", hashlib.blake2b(key.encode(), digest_size=12).hexdigest())
    file = kept / name
    if " " in str(file) or ":" in str(file):
        raise UserError(
            f"{kept} has a space or a colon in its path, which LD_PRELOAD cannot name: set "
            "XDG_CACHE_HOME to another directory"
        )
    if not file.exists():
        _build(recipe, file)
    return file


def _compiler(named: str) -> list[str]:
    chosen = named or os.environ.get("CC", "")
    if chosen:
        if not shutil.which(chosen.split()[0]):
            raise UserError(f"no compiler {chosen!r} on the PATH: install it, or name another")
        return chosen.split()
    for name in ("gcc", "cc", "clang"):
        if shutil.which(name):
            return [name]
    raise UserError(
        "threads of native programs need a C compiler to build a small library: install gcc or "
        "clang, or name one in CC"
    )


def _version(words: list[str]) -> str:
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, errors="replace")
    return done.stdout


def _build(recipe: list[str], file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make {file.parent} for the library ({error.strerror}): set XDG_CACHE_HOME"
        ) from None
    with tempfile.TemporaryDirectory(dir=file.parent) as directory:
        made = os.path.join(directory, file.name)
        done = subprocess.run([*recipe, "-o", made], capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise UserError(f"{recipe[0]} cannot build the library for threads: {reason}")
        os.replace(made, file)
