"""Whose code it is that a thread runs: the program's, the standard library's, or ours."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

_OWN = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD = tuple({sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")
_EVENT_LOOP = os.path.join("asyncio", "base_events.py")

_is_library: dict[str, bool] = {}


def is_library(code: CodeType) -> bool:
    """Whether code is of the standard library or of this package: how it uses locks is its affair.

    >>> import queue
    >>> is_library(queue.Queue.put.__code__)
    True
    """
    name = code.co_filename
    known = _is_library.get(name)
    if known is None:
        standard = name.startswith(_STANDARD) and not any(mark in name for mark in _INSTALLED)
        known = standard or name.startswith(("<frozen", _OWN))
        _is_library[name] = known
    return known


def is_own(code: CodeType) -> bool:
    """Whether code is of this package."""
    return code.co_filename.startswith(_OWN)


def is_event_loop(code: CodeType) -> bool:
    """Whether code is that of an asyncio event loop."""
    return code.co_filename.endswith(_EVENT_LOOP)


def code_of(function: Any) -> CodeType | None:
    """The code of a Python function or method; None for all else that can be called.

    >>> code_of(len) is None
    True
    """
    if isinstance(function, MethodType):
        function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else None


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is the program's own."""
    known = _is_library.get
    while frame is not None:
        inside = known(frame.f_code.co_filename)  # a call less for what happens most
        if not (is_library(frame.f_code) if inside is None else inside):
            return frame
        frame = frame.f_back
    return None
