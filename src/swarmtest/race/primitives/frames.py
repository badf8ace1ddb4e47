"""Tell whose code a frame runs: the program's, the standard library's, or swarmtest's."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

_OWN_FOLDER = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD_FOLDERS = tuple({sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")
_EVENT_LOOP = os.path.join("asyncio", "base_events.py")

_is_library: dict[str, bool] = {}


def is_library(code: CodeType) -> bool:
    """Return whether code belongs to the standard library or to this package.

    How such code uses locks is not the program's concern.

    >>> import queue
    >>> is_library(queue.Queue.put.__code__)
    True
    """
    name = code.co_filename
    library = _is_library.get(name)
    if library is None:
        standard = name.startswith(_STANDARD_FOLDERS) and not any(
            mark in name for mark in _INSTALLED
        )
        library = standard or name.startswith(("<frozen", _OWN_FOLDER))
        _is_library[name] = library
    return library


def is_own(code: CodeType) -> bool:
    """Return whether code belongs to this package."""
    return code.co_filename.startswith(_OWN_FOLDER)


def is_event_loop(code: CodeType) -> bool:
    """Return whether code belongs to an asyncio event loop."""
    return code.co_filename.endswith(_EVENT_LOOP)


def code_of(function: Any) -> CodeType | None:
    """Return the code of a Python function or method; None for any other callable.

    >>> code_of(len) is None
    True
    """
    if isinstance(function, MethodType):
        function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else None


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that belongs to the program itself."""
    cached = _is_library.get
    while frame is not None:
        library = cached(frame.f_code.co_filename)  # saves a call in the most frequent case
        if not (is_library(frame.f_code) if library is None else library):
            return frame
        frame = frame.f_back
    return None
