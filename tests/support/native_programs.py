"""What the tests of native coverage share: a small program, and what its lines are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmtest.coverage.native.program import ProgramRun

PACKAGES = {
    "gcc": "gcc",
    "g++": "g++",
    "clang": "clang",
    "gcov": "gcc",
    "addr2line": "binutils",
    "strip": "binutils",
    "clang++": "clang",
    "make": "make",
}

CLASSIFY = """\
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int sign(int x) {
  if (x < 0)
    return -1;
  return x > 0;
}
int main(void) {
  int x = 0;
  if (scanf("%d", &x) != 1)
    return 2;
  if (x == 13)
    abort();
  if (x == 17)
    raise(SIGKILL);
  if (x == 19)
    while (1)
      pause();
  if (x == 23)
    _exit(4);
  printf("%d\\n", sign(x));
  return 0;
}
"""
"""Reads a number; 13, 17, 19 and 23 end it in unusual ways."""
NEGATIVE, ABORT, KILL, HANG, QUIT = 7, 15, 17, 20, 22
"""Lines that only some numbers reach."""


def need(*tools: str) -> None:
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed: apt-get install {PACKAGES[tool]}")


def lines(run: ProgramRun) -> set[int]:
    """The lines that a run reached."""
    assert run.hits is not None, run.missing
    return {target.line for target in run.hits.targets()}


def signature(run: ProgramRun) -> str:
    """The fault that a run showed."""
    fault = run.fault()
    assert fault is not None
    return fault.signature


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


Build = Callable[..., Path]
"""The fixture `build`: source text and flags in, the program's path out."""
