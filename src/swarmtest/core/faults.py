"""From an exception to a fault: the part of a failure that stays the same when it happens again.

A signature is the exception's type, its message without the parts that vary from run to run, and
the innermost frames in the code under test. Line numbers are not part of it, so an edit above the
bug does not create a new fault. Frames of swarmtest and of the standard library are not the user's
code.
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

_SWARMTEST = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD_LIBRARY = tuple(
    {str(Path(sysconfig.get_paths()[key])) + os.sep for key in ("stdlib", "platstdlib")}
)
_MAX_FRAMES = 3
_MAX_CYCLE = 20
_MAX_SIGNATURE = 160
_MAX_MESSAGE = 4_000
_MAX_DETAILS = 20_000

_VARYING = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x?"),
    (re.compile(r"(?<!\w)b?'[^'\n]*'(?!\w)|(?<!\w)b?\"[^\"\n]*\"(?!\w)"), "'…'"),
    (re.compile(r"(?<![A-Za-z_0-9])-?(?!0x\?)\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "#"),
    (re.compile(r"([\[({])(?:(?:#|'…'|None|True|False)(?:, |: )?){2,}(?=[\])}])"), r"\1…"),
    (re.compile(r"([\[({])(?:#|'…')(?=[\])}])"), r"\1…"),
    (re.compile(r"\s+"), " "),
)
"""What varies from run to run: addresses, quoted values, numbers, and how many of them."""
_PYTEST_EXPLANATION = re.compile(r"^assert .*", re.MULTILINE | re.DOTALL)
"""What pytest adds to the message of an assert in a test module; without it, the same assert has
the same signature in pytest and elsewhere."""


def normalised(message: str) -> str:
    """Return a message without what varies from run to run: numbers, quoted values, addresses.

    >>> normalised("index 17 out of range for <Stack at 0x7f3a>")
    'index # out of range for <Stack at 0x?>'
    """
    for pattern, instead in _VARYING:
        message = pattern.sub(instead, message)
    message = _encodable(message)
    message = message.strip()
    return message if len(message) <= _MAX_SIGNATURE else message[: _MAX_SIGNATURE - 1] + "…"


def fault_of_exception(error: BaseException, kind: str = "exception", label: str = "") -> Fault:
    """Return the fault that an exception stands for.

    >>> try:
    ...     [][7]
    ... except IndexError as error:
    ...     print(fault_of_exception(error).signature)
    IndexError: list index out of range [<module>]
    """
    error = examinable(error)
    frames = _frames_under_test(error)
    words = [label] if label else []
    words.append(exception_text(error))
    if frames:
        words.append(f"[{' < '.join(frames)}]")
    return Fault(kind, " ".join(words), _details(error))


def examinable(error: BaseException) -> BaseException:
    """Return an exception; in place of one whose attributes raise, a plain one that stands for it.

    >>> class Shy(Exception):
    ...     def __getattribute__(self, name): raise ValueError(name)
    >>> exception_text(examinable(Shy()))
    'Shy: (it cannot be examined)'
    """
    try:
        _ = error.__class__, error.__traceback__, error.__cause__, error.__context__
        _ = getattr(error, "__notes__", None), type(error).__name__, type(error).__qualname__
        isinstance(error, SyntaxError)
    except BaseException:
        name = type.__dict__["__name__"].__get__(type(error))
        stand_in: BaseException = type(name, (Exception,), {})("(it cannot be examined)")
        return stand_in.with_traceback(_TRACEBACK.__get__(error))
    return error


_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def message_of(error: BaseException) -> str:
    """Return type and message in one line, for people to read."""
    try:
        text = " ".join(str(error).split())[:300]
    except BaseException:
        text = "(its message cannot be printed)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def exception_text(error: BaseException) -> str:
    """Return type and normalised message."""
    name = type(error).__name__
    try:
        text = str(error)[:_MAX_MESSAGE]
        if isinstance(error, AssertionError):
            text = _PYTEST_EXPLANATION.sub("", text)
        message = normalised(text)
    except BaseException:
        message = "(its message cannot be printed)"
    return f"{name}: {message}" if message else name


_printed_tracebacks: dict[tuple[Any, ...], tuple[str, list[CodeType]]] = {}
"""Formatted tracebacks, with their code objects, which keep the ids in the keys valid."""
_MAX_CACHED = 256


def _details(error: BaseException) -> str:
    """Return the traceback as text.

    A campaign may fail in the same place ten thousand times, and formatting a traceback takes
    longer than most tests, so a traceback is formatted only if something that is printed differs.
    """
    traceback_key = _traceback_key(error)
    if traceback_key is None:
        return _printed(error)
    key, codes = traceback_key
    cached = _printed_tracebacks.get(key)
    if cached is None:
        if len(_printed_tracebacks) >= _MAX_CACHED:
            _printed_tracebacks.clear()
        cached = _printed_tracebacks[key] = _printed(error), codes
    return cached[0]


def _traceback_key(error: BaseException) -> tuple[tuple[Any, ...], list[CodeType]] | None:
    """Return everything that the traceback of a plain exception prints; None if it prints more."""
    # These print more than their message: other exceptions, notes, a source line, suggestions.
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
    if len(text) > _MAX_DETAILS:
        half = _MAX_DETAILS // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half:,} characters ...\n{text[-half:]}"
    return _encodable(text)


def _encodable(text: str) -> str:
    """Escape lone surrogates, which neither UTF-8 nor a store accepts.

    Random text may contain them.
    """
    return text.encode(errors="backslashreplace").decode()


def _frames_under_test(error: BaseException) -> list[str]:
    """Return the innermost functions of the code under test, without repetitions."""
    names: list[str] = []
    library: list[str] = []  # used only if there is nothing else: then the library is tested
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not _is_foreign(code.co_filename):
            names.append(code.co_qualname)
        elif not code.co_filename.startswith(("<swarmtest", _SWARMTEST)):
            library.append(code.co_qualname)
        tb = tb.tb_next
    innermost = (names or library)[::-1]
    if isinstance(error, RecursionError):
        # Which of the mutually recursive functions reaches the limit depends on the depth at the
        # start, so all of them are named, in a fixed order.
        return sorted(set(innermost[:_MAX_CYCLE]))[:_MAX_FRAMES]
    return [n for i, n in enumerate(innermost) if i == 0 or n != innermost[i - 1]][:_MAX_FRAMES]


def _is_foreign(filename: str) -> bool:
    """Return whether a file belongs to swarmtest or to the standard library."""
    if filename.startswith("<"):
        return filename.startswith(("<frozen", "<swarmtest"))
    if filename.startswith(_SWARMTEST):
        return True
    return filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in filename


def python_stack_of_dump(dump: str, *, outermost: bool = False) -> list[str]:
    """Return the innermost functions of the code under test in a `faulthandler` dump.

    With `outermost`, return the two functions that the test called first instead.

    >>> python_stack_of_dump('''Current thread 0x1 (most recent call first):
    ...   File "/home/me/parser.py", line 3 in parse
    ...   File "/home/me/machine.py", line 9 in step
    ... ''')
    ['parse', 'step']
    """
    names = []
    for line in dump.splitlines():
        frame = re.match(r'\s+File "([^"]+)", line \d+ in (\S+)', line)
        if frame and frame[1].startswith(("<swarmtest", _SWARMTEST)):
            break  # the remaining frames are those of swarmtest, which called the test
        if frame and not _is_foreign(frame[1]):
            names.append(frame[2])
        elif names and not frame:
            break
    return names[:-3:-1] if outermost else names[:_MAX_FRAMES]
