"""From an exception to a fault: the part of a failure that stays the same when it shows again.

A signature is the exception's type, its message with what varies from run to run taken out, and the
innermost frames in the code under test. Line numbers are not part of it: an edit above the bug does
not make a new fault. Frames of swarmtest and of the standard library are not the user's code.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from swarmtest.core.result import Fault

_OWN = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD = tuple(
    {str(Path(sysconfig.get_paths()[key])) + os.sep for key in ("stdlib", "platstdlib")}
)
_FRAMES = 3
_CYCLE = 20
_LONGEST = 160
_LONGEST_MESSAGE = 4_000
_LONGEST_DETAILS = 20_000

_VARYING = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x?"),
    (re.compile(r"(?<!\w)b?'[^'\n]*'(?!\w)|(?<!\w)b?\"[^\"\n]*\"(?!\w)"), "'…'"),
    (re.compile(r"(?<![A-Za-z_0-9])-?(?!0x\?)\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "#"),
    (re.compile(r"([\[({])(?:(?:#|'…'|None|True|False)(?:, |: )?){2,}(?=[\])}])"), r"\1…"),
    (re.compile(r"([\[({])(?:#|'…')(?=[\])}])"), r"\1…"),
    (re.compile(r"\s+"), " "),
)
"""What varies from run to run: addresses, quoted values, numbers, and how many of them."""
_EXPLANATION = re.compile(r"^assert .*", re.MULTILINE | re.DOTALL)
"""What pytest adds to an assert of a test module: the same assert has one signature everywhere."""


def normalised(message: str) -> str:
    """A message without what varies from run to run: numbers, quoted values, addresses.

    >>> normalised("index 17 out of range for <Stack at 0x7f3a>")
    'index # out of range for <Stack at 0x?>'
    """
    for pattern, instead in _VARYING:
        message = pattern.sub(instead, message)
    message = _encodable(message)
    message = message.strip()
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"


def fault_of_exception(error: BaseException, kind: str = "exception", label: str = "") -> Fault:
    """The fault that an exception shows.

    >>> try:
    ...     [][7]
    ... except IndexError as error:
    ...     print(fault_of_exception(error).signature)
    IndexError: list index out of range [<module>]
    """
    frames = _frames_under_test(error)
    words = [label] if label else []
    words.append(exception_text(error))
    if frames:
        words.append(f"[{' < '.join(frames)}]")
    return Fault(kind, " ".join(words), _details(error))


def message_of(error: BaseException) -> str:
    """Type and message in one line, as a person wants to read it."""
    try:
        text = " ".join(str(error).split())[:300]
    except BaseException:
        text = "(its message cannot be printed)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def exception_text(error: BaseException) -> str:
    """Type and normalised message."""
    name = type(error).__name__
    try:
        text = str(error)[:_LONGEST_MESSAGE]
        if isinstance(error, AssertionError):
            text = _EXPLANATION.sub("", text)
        message = normalised(text)
    except BaseException:
        message = "(its message cannot be printed)"
    return f"{name}: {message}" if message else name


_known_details: dict[tuple[Any, ...], tuple[str, list[CodeType]]] = {}
"""Tracebacks that were printed before, with the code they are of: an id is only good with it."""
_MOST_DETAILS = 256


def _details(error: BaseException) -> str:
    """The traceback as text.

    A campaign may fail in the same place ten thousand times, and printing a traceback takes longer
    than most tests, so one that differs in nothing that is printed is not printed again.
    """
    place = _place(error)
    if place is None:
        return _printed(error)
    key, codes = place
    known = _known_details.get(key)
    if known is None:
        if len(_known_details) >= _MOST_DETAILS:
            _known_details.clear()
        known = _known_details[key] = _printed(error), codes
    return known[0]


def _place(error: BaseException) -> tuple[tuple[Any, ...], list[CodeType]] | None:
    """All that a plain exception's traceback prints; None for those that print more."""
    if (
        error.__cause__ is not None
        or error.__context__ is not None
        or hasattr(error, "__notes__")
        or isinstance(error, SyntaxError | BaseExceptionGroup | NameError | AttributeError)
    ):
        return None
    try:
        text = str(error)
    except BaseException:
        return None
    frames: list[int] = []
    codes: list[CodeType] = []
    tb = error.__traceback__
    while tb is not None:
        codes.append(tb.tb_frame.f_code)
        frames += (id(codes[-1]), tb.tb_lasti)
        tb = tb.tb_next
    return (type(error), text, *frames), codes


def _printed(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(error, limit=-30))
    except BaseException:
        # An exception whose own methods raise must still become a recorded fault.
        frames = traceback.format_tb(error.__traceback__, limit=-30)
        text = "".join([*frames, f"{type(error).__name__} (it cannot be printed)\n"])
    if len(text) > _LONGEST_DETAILS:
        half = _LONGEST_DETAILS // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half:,} characters ...\n{text[-half:]}"
    return _encodable(text)


def _encodable(text: str) -> str:
    """Random text may hold lone surrogates, which neither UTF-8 nor a store takes."""
    return text.encode(errors="backslashreplace").decode()


def _frames_under_test(error: BaseException) -> list[str]:
    names: list[str] = []
    library: list[str] = []  # counts only if there is nothing else: the library itself is tested
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not _is_foreign(code.co_filename):
            names.append(code.co_qualname)
        elif not code.co_filename.startswith(("<swarmtest", _OWN)):
            library.append(code.co_qualname)
        tb = tb.tb_next
    innermost = (names or library)[::-1]
    if isinstance(error, RecursionError):
        # Which of the functions that call each other hits the limit is a matter of depth.
        return sorted(set(innermost[:_CYCLE]))[:_FRAMES]
    return [n for i, n in enumerate(innermost) if i == 0 or n != innermost[i - 1]][:_FRAMES]


def _is_foreign(filename: str) -> bool:
    if filename.startswith("<"):
        return filename.startswith(("<frozen", "<swarmtest"))
    if filename.startswith(_OWN):
        return True
    return filename.startswith(_STANDARD) and "site-packages" not in filename


def python_stack_of_dump(dump: str, *, outermost: bool = False) -> list[str]:
    """The innermost function names of a `faulthandler` dump that are in the code under test.

    `outermost`: instead, the two that the test called first.

    >>> python_stack_of_dump('''Current thread 0x1 (most recent call first):
    ...   File "/home/me/parser.py", line 3 in parse
    ...   File "/home/me/machine.py", line 9 in step
    ... ''')
    ['parse', 'step']
    """
    names = []
    for line in dump.splitlines():
        found = re.match(r'\s+File "([^"]+)", line \d+ in (\S+)', line)
        if found and found[1].startswith(("<swarmtest", _OWN)):
            break  # from here on it is the engine that called the test
        if found and not _is_foreign(found[1]):
            names.append(found[2])
        elif names and not found:
            break
    return names[:-3:-1] if outermost else names[:_FRAMES]
