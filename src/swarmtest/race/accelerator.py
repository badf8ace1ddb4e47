"""Load the C implementations of the code that runs most often: pair coverage, locks, batons.

A wheel contains them if there was a C compiler when it was built. Otherwise they are built once
with the user's compiler and cached. Without a compiler or Python's header files, Python versions do
the same more slowly; `accelerator_status` says which are used and why.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest.coverage.native.fast import cache_directory
from swarmtest.race.accelerator_build import FILE, NAME, SOURCE, CannotBuild, build, recipe

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
    key = "\0".join([*recipe(), sys.version, FILE, SOURCE.read_text()])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    cached = cache_directory("probe", name, FILE)
    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent) as directory:
            built = os.path.join(directory, cached.name)
            build(built)
            os.replace(built, cached)
    return cached


def _import_extension(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
