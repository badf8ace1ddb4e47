"""Compile the C accelerator when a wheel is built, or when it is first needed.

This module imports nothing from the package, because `hatch_build.py` loads it by its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).with_name("_probe.c")
NAME = "_swarmtest_probe"
FILE = NAME + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
_FLAGS = ("-O2", "-fPIC", "-shared", "-std=gnu11")


class CannotBuild(Exception):
    """Raised when the accelerator cannot be built; the message says why in one line."""


def recipe() -> list[str]:
    """Return the compiler command without the output file.

    >>> try:
    ...     recipe()[-1].endswith("_probe.c")
    ... except CannotBuild:  # there is no compiler here
    ...     True
    True
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise CannotBuild("the C probe relies on the GIL, and this Python is built without")
    if sys.implementation.name != "cpython":
        raise CannotBuild(f"the C probe is for CPython, not for {sys.implementation.name}")
    words = (os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), "")).split()
    if not words or not shutil.which(words[0]):
        raise CannotBuild("no C compiler on the PATH: install gcc or clang, or name one in CC")
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise CannotBuild(
            f"no Python.h in {include}: install Python's header files, "
            "on Debian and Ubuntu with apt-get install python3-dev"
        )
    return [*words, *_FLAGS, f"-I{include}", str(SOURCE)]


def build(made: str | Path) -> None:
    """Compile the accelerator to a file."""
    command = [*recipe(), "-o", str(made)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        reason = lines[0] if lines else "no message"
        raise CannotBuild(f"the C probe cannot be built: {reason}") from None
