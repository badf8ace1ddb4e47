"""Build and load C versions of the code that runs most often: pair coverage, locks, batons.

A wheel contains them if there was a C compiler when it was built. Otherwise they are built once
with the user's compiler and cached. Without a compiler or Python's header files, Python versions do
the same more slowly; `accelerator_status` says which are used and why.

`hatch_build.py` loads this module by its path when a wheel is built, so it imports nothing from the
package at its top.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

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


def build(file: str | Path) -> None:
    """Compile the accelerator to a file."""
    command = [*recipe(), "-o", str(file)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        reason = lines[0] if lines else "no message"
        raise CannotBuild(f"the C probe cannot be built: {reason}") from None


# Loading.

OFF = "SWARMTEST_NO_ACCELERATOR"
"""Set this environment variable to use the Python versions."""


def accelerator() -> Any:
    """Return the extension module, or None if it is not available."""
    return None if os.environ.get(OFF) else _loaded()[0]


def accelerator_status() -> str:
    """Say in one line which implementation is used for pair coverage.

    >>> accelerator_status().startswith(("C", "Python"))
    True
    """
    if os.environ.get(OFF):
        return f"Python: {OFF} is set"
    module, reason = _loaded()
    return f"C: {module.__file__}" if module is not None else f"Python: {reason}"


@functools.cache
def _loaded() -> tuple[ModuleType | None, str]:
    shipped = SOURCE.with_name(FILE)
    try:
        return _import_extension(shipped if shipped.exists() else _build_once()), ""
    except CannotBuild as error:
        return None, str(error)
    except (OSError, ImportError) as error:
        return None, f"the C probe cannot be loaded: {error}"


def _build_once() -> Path:
    """Return the extension for this compiler and interpreter; build it if it is not cached."""
    from swarmtest.processes.caches import built_file, cache_directory

    key = "\0".join([*recipe(), sys.version, FILE, SOURCE.read_text()])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    return built_file(cache_directory("probe", name, FILE), build)


def _import_extension(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
