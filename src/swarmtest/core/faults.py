"""From an exception to a fault: the part of a failure that stays the same when it happens again.

A signature is the type of the exception at the root of the chain of causes, the innermost function
of the code under test, and the text of the statement that it was executing. So two asserts in one
function are two faults, and an edit above them creates no new one. The message counts only if the
statement does not contain it: if C code or a library raised the exception, or if the message is
computed elsewhere. Then its shape is part of the signature (`messages.shapes`). If the statement is
a check in the harness, many bugs end there, and the caller says after which operation it was.

Frames of swarmtest and of the standard library are not the user's code. `benchmarks/identity.py`
compares these rules with those of other tools.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections import Counter
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from swarmtest.core.messages.shapes import first_line, shape_of
from swarmtest.core.result import Fault
from swarmtest.core.statements import Statement, place_of, statement_at

_SWARMTEST = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD_LIBRARY = tuple(
    {str(Path(sysconfig.get_paths()[key])) + os.sep for key in ("stdlib", "platstdlib")}
)
_MAX_FRAMES = 3
_LEAST_REPEATED = 3
"""A function that is so often on a stack that overflowed is part of the cycle."""
_MAX_MESSAGE = 4_000
_MAX_DETAILS = 20_000
VALUES = "values:"
"""The line in the details of a fault after which the values of its failed assert are listed."""
_PRINTED_FRAMES = 30

_PYTEST_EXPLANATION = re.compile(r"^assert .*", re.MULTILINE | re.DOTALL)
"""What pytest adds to the message of an assert in a test module; without it, the same assert has
the same signature in pytest and elsewhere."""


class RaisedAt(NamedTuple):
    """Where an exception was raised, as its signature tells."""

    code: CodeType
    function: str
    statement: Statement | None
    is_innermost: bool
    """Whether the frame itself raised it, and not C code or a library that it called."""


def fault_of_exception(
    error: BaseException, kind: str = "exception", label: str = "", operation: str = ""
) -> Fault:
    """Return the fault that an exception stands for.

    `label` comes first in the signature, `operation` last: what the test was doing.

    >>> try:
    ...     [][7]
    ... except IndexError as error:
    ...     print(fault_of_exception(error).signature)
    IndexError: list index out of range [<module>: [][7]]
    """
    error = examinable(error)
    words = [label] if label else []
    words.append(_signature(error))
    if operation:
        words.append(operation)
    return Fault(kind, " ".join(words), _details(error))


def _signature(error: BaseException) -> str:
    """Return what identifies an exception: type, message or statement, and function."""
    if isinstance(error, BaseExceptionGroup):
        inside = sorted({_signature(examinable(each)) for each in error.exceptions})
        return f"{type(error).__name__} of {' and '.join(inside[:_MAX_FRAMES])}"
    if hasattr(type(error), "swarmtest_kind"):  # our own oracles: the message says what differs
        at = raised_at(root_of(error))
        place = at and (f"{at.function}: {at.statement.text}" if at.statement else at.function)
        return exception_text(error) + (f" [{place}]" if place else "")
    raised, error = error, root_of(error)
    name = type(error).__name__
    if raised is not error and type(raised) is not type(error):
        return f"{type(raised).__name__} from {_signature(error)}"
    at = raised_at(error)
    if isinstance(error, RecursionError) and not _is_raised_by_statement(at):
        cycle = _cycle(error)
        return f"{name} [{', '.join(cycle)}]" if cycle else name
    if at is None:
        return exception_text(error)
    statement = at.statement
    if statement is None:
        return f"{exception_text(error)} [{at.function}]"
    if at.is_innermost and statement.kind == "assert" and isinstance(error, AssertionError):
        if statement.message:
            return f"{name}: {statement.message} [{at.function}: {statement.condition}]"
        if statement.text == statement.condition:
            return f"{name} [{at.function}: {statement.text}]"
    if at.is_innermost and statement.kind == "raise" and statement.message:
        return f"{name}: {statement.message} [{at.function}]"
    return f"{exception_text(error)} [{at.function}: {statement.text}]"


def root_of(error: BaseException) -> BaseException:
    """Return the exception at the root of the chain of causes (``raise ... from ...``).

    An exception that was merely being handled (``__context__``) is not the cause: it is often an
    expected one, and a check in the handler failed.
    """
    seen = {id(error)}
    while (cause := error.__cause__) is not None and id(cause) not in seen:
        cause = examinable(cause)
        if cause.__traceback__ is None:
            break
        seen.add(id(cause))
        error = cause
    return error


def raised_at(error: BaseException) -> RaisedAt | None:
    """Return the innermost frame of the code under test; None if there is none.

    If there are only frames of the standard library, that is what is tested.
    """
    own: TracebackType | None = None
    library: TracebackType | None = None
    last: TracebackType | None = None
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if not is_foreign(file):
            own = tb
        elif not is_internal(file):
            library = tb
        last, tb = tb, tb.tb_next
    chosen = own or library
    if chosen is None:
        return None
    code = chosen.tb_frame.f_code
    statement = statement_at(code, chosen.tb_lasti, chosen.tb_lineno)
    return RaisedAt(code, place_of(code), statement, chosen is last)


def _is_raised_by_statement(at: RaisedAt | None) -> bool:
    """Return whether the program raised an exception with ``raise``."""
    return (
        at is not None
        and at.is_innermost
        and at.statement is not None
        and at.statement.kind == "raise"
    )


def operation_of_check(harness: type, error: BaseException, last: str) -> str:
    """Return what the test was doing if a check of its harness failed, like ``in remove``.

    Many bugs end in the same check, so the operation after which it failed tells them apart. It is
    empty if the operation itself raised the exception, or the program: then the place says enough.
    """
    at = raised_at(root_of(examinable(error)))
    if at is None or not last:
        return ""
    owner, _, method = at.function.rpartition(".")
    owners = {base.__qualname__ for base in harness.__mro__}
    if method in (last, "start", "stop", "setup", "teardown") or owner not in owners:
        return ""
    return f"in {last}"


def _cycle(error: BaseException) -> list[str]:
    """Return the functions that called each other until the stack was full, in a fixed order.

    Which of them reaches the limit depends on the depth at the start.
    """
    names: Counter[str] = Counter()
    tb = error.__traceback__
    while tb is not None:
        if not is_internal(tb.tb_frame.f_code.co_filename):
            names[place_of(tb.tb_frame.f_code)] += 1
        tb = tb.tb_next
    often = max(names.values(), default=0)
    least = max(_LEAST_REPEATED, often // 2)
    repeated = sorted(name for name, count in names.items() if count >= least)
    return (repeated or sorted(names))[:_MAX_FRAMES]


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
        text = "" if isinstance(error, KeyError) and _is_key(error) else str(error)
        if isinstance(error, AssertionError):
            text = _PYTEST_EXPLANATION.sub("", text)
        message = shape_of(first_line(text[:_MAX_MESSAGE]))
    except BaseException:
        message = "(its message cannot be printed)"
    return f"{name}: {message}" if message else name


def _is_key(error: KeyError) -> bool:
    """Return whether the message of a KeyError is only the key, which varies."""
    return len(error.args) == 1 and not (
        isinstance(error.args[0], str) and " " in error.args[0].strip()
    )


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
        described = traceback.TracebackException.from_exception(error)
        _leave_out_internals(described)
        text = "".join(described.format())
    except BaseException:
        # An exception whose own methods raise must still become a recorded fault.
        frames = _without_internals(traceback.extract_tb(error.__traceback__))
        lines = traceback.format_list(frames)
        text = "".join([*lines, f"{type(error).__name__} (it cannot be printed)\n"])
    if len(text) > _MAX_DETAILS:
        half = _MAX_DETAILS // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half:,} characters ...\n{text[-half:]}"
    return _encodable(text)


def _leave_out_internals(described: traceback.TracebackException) -> None:
    """Remove frames of swarmtest from a traceback, and from those of its causes."""
    pending, seen = [described], set[int]()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        each.stack = _without_internals(each.stack)
        related = [each.__cause__, each.__context__, *(each.exceptions or ())]
        pending += [other for other in related if other is not None]


def _without_internals(stack: traceback.StackSummary) -> traceback.StackSummary:
    """Return the frames that are not swarmtest's; all of them if there are no others."""
    own = [frame for frame in stack if not is_internal(frame.filename)]
    return traceback.StackSummary.from_list((own or list(stack))[-_PRINTED_FRAMES:])


def _encodable(text: str) -> str:
    """Escape lone surrogates, which neither UTF-8 nor a store accepts.

    Random text may contain them.
    """
    return text.encode(errors="backslashreplace").decode()


def is_internal(filename: str) -> bool:
    """Return whether a file belongs to swarmtest, or is code that it has generated."""
    return filename.startswith(("<swarmtest", _SWARMTEST))


def is_foreign(filename: str) -> bool:
    """Return whether a file belongs to swarmtest or to the standard library."""
    if is_internal(filename):
        return True
    if filename.startswith("<"):
        return filename.startswith("<frozen")
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
        if frame and is_internal(frame[1]):
            break  # the remaining frames are those of swarmtest, which called the test
        if frame and not is_foreign(frame[1]):
            names.append(frame[2])
        elif names and not frame:
            break
    return names[:-3:-1] if outermost else names[:_MAX_FRAMES]
