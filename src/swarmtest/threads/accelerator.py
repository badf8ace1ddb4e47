"""The C version of the probe with pair coverage: built once with the user's compiler, and kept.

Without a compiler or Python's header files the Python version does the same, more slowly;
`accelerator_status` says which is used, and why.
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
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest.instrument.native.symbols import cache_directory

SOURCE = Path(__file__).with_name("_probe.c")
MODULE = "_swarmtest_probe"
OFF = "SWARMTEST_NO_ACCELERATOR"
"""Set this in the environment to do without."""
_FLAGS = ("-O2", "-fPIC", "-shared", "-std=gnu11")


def accelerator() -> Any:
    """The module with the C probe; None where it cannot be had."""
    return None if os.environ.get(OFF) else _loaded()[0]


def accelerator_status() -> str:
    """Which probe is used for pair coverage, in one line.

    >>> accelerator_status().startswith(("C", "Python"))
    True
    """
    if os.environ.get(OFF):
        return f"Python: {OFF} is set"
    module, reason = _loaded()
    return f"C: {module.__file__}" if module is not None else f"Python: {reason}"


@functools.cache
def _loaded() -> tuple[ModuleType | None, str]:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None, "the C probe relies on the GIL, and this Python is built without"
    if sys.implementation.name != "cpython":
        return None, f"the C probe is for CPython, not for {sys.implementation.name}"
    words = (os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), "")).split()
    if not words or not shutil.which(words[0]):
        return None, "no C compiler on the PATH: install gcc or clang, or name one in CC"
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        return None, f"no Python.h in {include}: install Python's header files"
    try:
        return _imported(_built(words, include)), ""
    except (OSError, ImportError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return None, f"the C probe cannot be built: {lines[0] if lines else 'no message'}"


def _built(words: list[str], include: str) -> Path:
    """The extension for this compiler and interpreter."""
    recipe = [*words, *_FLAGS, f"-I{include}", str(SOURCE)]
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    key = "\0".join([*recipe, sys.version, suffix, SOURCE.read_text()])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    kept = cache_directory("probe", name, MODULE + suffix)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as directory:
            made = os.path.join(directory, kept.name)
            command = [*recipe, "-o", made]
            subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
            os.replace(made, kept)
    return kept


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
