"""Faults from exceptions that went through Hypothesis, whose frames are not the user's code."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import hypothesis

from swarmtest.faults import fault_of_exception
from swarmtest.result import Fault

_HYPOTHESIS = str(Path(hypothesis.__file__).parent)
_PROXY = "accept.<locals>."
"""Decorated functions are called through one that Hypothesis compiles under the user's file."""


def fault_in_own_frames(error: BaseException, kind: str = "exception", label: str = "") -> Fault:
    """The fault that an exception shows, as if Hypothesis had not been in between."""
    whole = error.__traceback__
    try:
        return fault_of_exception(error.with_traceback(_own(whole)), kind, label)
    finally:
        error.__traceback__ = whole


def _own(whole: TracebackType | None) -> TracebackType | None:
    frames: list[TracebackType] = []
    proxy = None
    tb = whole
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith(_HYPOTHESIS):
            if proxy is not None and frames[-1:] == [proxy]:
                frames.pop()
        else:
            frames.append(tb)
            proxy = tb if code.co_qualname.startswith(_PROXY) else None
        tb = tb.tb_next
    kept: TracebackType | None = None
    for tb in reversed(frames):
        kept = TracebackType(kept, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return kept or whole
