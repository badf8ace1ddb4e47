"""Bytes that gzip compresses as parts of a test: gzip from Debian's source, built with coverage."""

from __future__ import annotations

import fcntl
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from native_subjects import Unavailable, debian_source

from swarmtest import Program


class GzipBytes:
    """What the study asks of a subject; its mutants are for another day."""

    title = "gzip (C)"
    part = "byte"

    def __init__(self, program: Path) -> None:
        self._program = Program([program, "-c", "-n"], fork_server=True)

    def test(self, seed: int) -> list[bytes]:
        """From 500 to 1,500 bytes: words that come again, and noise between them."""
        rng = random.Random(seed)
        words = [rng.randbytes(rng.randint(2, 12)) for _ in range(12)]
        content = b""
        while len(content) < rng.randint(500, 1_500):
            content += rng.choice(words) if rng.random() < 0.7 else rng.randbytes(3)
        return [bytes([byte]) for byte in content]

    def reached(self, content: Sequence[bytes]) -> frozenset[int]:
        """The lines that gzip reaches."""
        hits = self._program.run(b"".join(content)).hits
        assert hits is not None
        return frozenset(np.frombuffer(hits.numbers, "<u4").tolist())

    def close(self) -> None:
        """End the program's server."""
        self._program.close()


def built_gzip(work: Path, build: bool = True) -> Path:
    """The program; built first if there is none and it may be."""
    work.mkdir(parents=True, exist_ok=True)
    program = work / "gzip"
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of a benchmark may come at once
        if not program.exists():
            if not build:
                raise Unavailable("it is not built yet, which a run without --quick does")
            missing = [tool for tool in ("gcc", "make") if not shutil.which(tool)]
            if missing:
                raise Unavailable(f"no {missing[0]} here: apt-get install gcc make")
            _build(debian_source("gzip", work), program)
    return program


def _build(source: Path, program: Path) -> None:
    compiler = f"{sys.executable} -m swarmtest cc gcc"
    # Debian's patches are newer than what autoconf made of the files: that is as it should be.
    given = [f"{tool}=:" for tool in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE")]
    for command in (
        ["./configure", "CFLAGS=-g -O1 -w"],
        ["make", "-C", "lib", f"CC={compiler}", *given],
        ["make", "version.c", "version.h", "gzip", f"CC={compiler}", *given],
    ):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"building gzip failed: {reason}")
    shutil.copy2(source / "gzip", program)
