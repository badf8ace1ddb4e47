"""Bytes that gzip compresses as parts of a test: gzip from Debian's source, built twice.

One build is watched (which lines are reached), the other holds mutants of the files that compress.
"""

from __future__ import annotations

import fcntl
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from native_subjects import Unavailable, debian_source

from swarmtest.coverage import Program
from swarmtest.mutate.native.build import BuiltMutants
from swarmtest.mutate.native.generation import c_mutants_of
from swarmtest.subjects.command.subject import load_command_subject
from swarmtest.subjects.command.test import CommandTest

MUTATED = ("bits.c", "deflate.c", "trees.c")
SAMPLE = 100
WORDS = b"swarm test part byte call line gzip tree leaf root node heap".split()
# Debian's patches are newer than what autoconf made of the files: that is as it should be.
NO_TOOLS = " ".join(f"{tool}=:" for tool in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE"))
SUBJECT = f"""\
[generate]
command = "echo {{seed}} {{features}}"
[features]
a = "a"
[[steps]]
name = "gzip"
run = "{{here}}/gzip -c -n"
stdin = "{{test}}"
expect = "any"
[mutate]
build = "make gzip {NO_TOOLS}"
files = {list(MUTATED)}
"""


class GzipBytes:
    """What the study asks of a subject."""

    title = "gzip (C)"
    part = "byte"

    def __init__(self, programs: tuple[Path, Path]) -> None:
        """`programs`: the one that is watched, and the directory of the one to mutate."""
        watched, directory = programs
        self._program = Program([watched, "-c", "-n"], fork_server=True)
        (directory / "gzip.toml").write_text(SUBJECT)
        found = [m for file in MUTATED for m in c_mutants_of(str(directory / file))]
        drawn = random.Random(1).sample(found, SAMPLE)
        self._built = BuiltMutants(load_command_subject(str(directory / "gzip.toml")), drawn)
        self.all_mutants = range(len(self._built.mutants))

    def test(self, seed: int) -> list[bytes]:
        """From 100 to 400 bytes: words that come again, and noise between them."""
        rng = random.Random(seed)
        words = rng.sample(WORDS, 5)
        size = rng.randint(100, 400)
        content = b""
        while len(content) < size:
            content += rng.choice(words) if rng.random() < 0.7 else rng.randbytes(3)
        return [bytes([byte]) for byte in content]

    def reached(self, content: Sequence[bytes]) -> frozenset[int]:
        """The lines that gzip reaches."""
        hits = self._program.run(b"".join(content)).hits
        assert hits is not None
        return frozenset(np.frombuffer(hits.numbers, "<u4").tolist())

    def kills(self, content: Sequence[bytes], mutant: int) -> bool:
        """Whether a mutant writes something else."""
        return self._built.kills_all(_test(content), [self._built.mutants[mutant]])

    def killed(self, content: Sequence[bytes], among: Iterable[int]) -> frozenset[int]:
        """Those of some mutants that write something else."""
        return frozenset(mutant for mutant in among if self.kills(content, mutant))

    def __enter__(self) -> GzipBytes:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.close()
        self._built.close()


def _test(content: Sequence[bytes]) -> dict[str, Any]:
    return CommandTest("gzip.toml", b"".join(content)).to_json()


def built_gzip(work: Path, build: bool = True) -> tuple[Path, Path]:
    """The program that is watched, and the directory of the other; built first if they may be."""
    work.mkdir(parents=True, exist_ok=True)
    watched, mutated = work / "watched-gzip", work / "mutated-gzip"
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of a benchmark may come at once
        if not ((watched / "gzip").exists() and (mutated / "gzip").exists()):
            if not build:
                raise Unavailable("it is not built yet, which a run without --quick does")
            missing = [tool for tool in ("gcc", "make") if not shutil.which(tool)]
            if missing:
                raise Unavailable(f"no {missing[0]} here: apt-get install gcc make")
            source = debian_source("gzip", work)
            _build(source, watched, f"{sys.executable} -m swarmtest cc gcc")
            _build(source, mutated, "gcc")
    return watched / "gzip", mutated


def _build(source: Path, place: Path, compiler: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place, symlinks=True)
    for command in (
        ["./configure", "CFLAGS=-g -O1 -w"],
        ["make", "-C", "lib", f"CC={compiler}", *NO_TOOLS.split()],
        ["make", "version.c", "version.h", "gzip", f"CC={compiler}", *NO_TOOLS.split()],
    ):
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"building gzip failed: {reason}")
