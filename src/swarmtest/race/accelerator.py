"""The C versions of what runs most: probes with pair coverage, locks, batons.

A wheel brings them along if there was a C compiler where it was made. Otherwise they are built
once with the user's compiler, and kept. Without one, or without Python's header files, the Python
versions do the same, more slowly; `accelerator_status` says which are used, and why.
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
"""Set this in the environment to do without."""


def accelerator() -> Any:
    """The module in C; None where it cannot be had."""
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
    shipped = SOURCE.with_name(FILE)
    try:
        return _imported(shipped if shipped.exists() else _built()), ""
    except CannotBuild as error:
        return None, str(error)
    except (OSError, ImportError) as error:
        return None, f"the C probe cannot be loaded: {error}"


def _built() -> Path:
    """The extension for this compiler and interpreter."""
    key = "\0".join([*recipe(), sys.version, FILE, SOURCE.read_text()])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    kept = cache_directory("probe", name, FILE)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as directory:
            made = os.path.join(directory, kept.name)
            build(made)
            os.replace(made, kept)
    return kept


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
