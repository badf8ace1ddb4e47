"""Ready-made recognisers: the message of a crash, and the part of it that stays the same.

A signature says what went wrong and in which functions. It holds no line numbers (nor does a Python
fault's, see `swarmtest.faults`): an edit above the bug, or the next version, does not make a new
fault of it. The price is that two assertions with nothing but their line to tell them apart count
as one fault, which is the error on the careful side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.errors import UserError, did_you_mean
from swarmtest.messages import compiler_messages as compilers
from swarmtest.messages import runtime_messages as runtimes


@dataclass(frozen=True)
class Recogniser:
    """Something that knows one family of messages.

    >>> recogniser_named("glibc").find("free(): invalid pointer")
    'free(): invalid pointer'
    """

    name: str
    description: str
    find: Callable[[str], str | None]
    """The signature of the first such message in a text; None: there is none."""


@dataclass(frozen=True)
class Recognised:
    """A message that a recogniser knew."""

    name: str
    """The recogniser's."""
    signature: str


_LONGEST_LINE = 2_000
_TOO_LONG = re.compile(rf"([^\n]{{{_LONGEST_LINE}}})[^\n]+")


def _recogniser(
    name: str, description: str, search: Callable[[str], str | None], *marks: str
) -> Recogniser:
    """One that searches only texts that hold one of the marks, and only the start of long lines.

    Programs print megabytes without a line break, on which a regular expression takes hours.
    """

    def find(output: str) -> str | None:
        if not any(mark in output for mark in marks):
            return None
        return search(_TOO_LONG.sub(r"\1", output))

    return Recogniser(name, description, find)


RECOGNISERS: Mapping[str, Recogniser] = {
    one.name: one
    for one in (
        _recogniser(
            *("gcc", "GCC's internal compiler errors, -fcompare-debug failures", compilers.gcc),
            *("internal compiler error", "-fcompare-debug", "confused by earlier errors"),
        ),
        _recogniser(
            *("clang", "Clang's and LLVM's assertions, backend errors and stack dumps"),
            compilers.clang,
            *("Assertion ", "error in backend", "LLVM ERROR", "UNREACHABLE executed", "Stack dump"),
        ),
        _recogniser("tcc", "every error that tcc reports", compilers.tcc, ": error: "),
        _recogniser(
            "sanitizers",
            "reports of Address-, Leak-, Memory-, Thread- and UndefinedBehaviorSanitizer",
            runtimes.sanitizers,
            *("Sanitizer: ", ": runtime error: "),
        ),
        _recogniser(
            *("assert", "failed assertions of C and C++: assert(3)", runtimes.assertion),
            "Assertion ",
        ),
        _recogniser(
            *("glibc", "what glibc says of broken heaps and stacks", runtimes.glibc),
            *("*** ", "(): ", "malloc: ", "corrupt", "break adjusted", "Fatal glibc error"),
        ),
        _recogniser("c++", "C++ exceptions that nothing caught", runtimes.cxx, "terminate called "),
        _recogniser(
            "rust", "Rust's panics, rustc's own among them", runtimes.rust, " panicked at "
        ),
        _recogniser("go", "Go's panics and fatal errors", runtimes.go, "goroutine "),
        _recogniser("python", "Python's tracebacks", runtimes.python, "Traceback (most recent"),
    )
}
"""All of them, by name."""


def recogniser_named(name: str) -> Recogniser:
    """The recogniser of a name.

    >>> recogniser_named("sanitizer")
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: no recogniser 'sanitizer'; did you mean 'sanitizers'?
    """
    found = RECOGNISERS.get(name)
    if found is None:
        raise UserError(f"no recogniser {name!r}{did_you_mean(name, RECOGNISERS)}")
    return found


def recognise(output: str, names: Sequence[str]) -> Recognised | None:
    """What the first of these recognisers that knows something in a text makes of it.

    >>> recognise("x.c:1:2: internal compiler error: in lower_stmt, at tree.cc:7", ["tcc", "gcc"])
    Recognised(name='gcc', signature='internal compiler error: in lower_stmt, at tree.cc')
    """
    for name in names:
        signature = recogniser_named(name).find(output)
        if signature is not None:
            return Recognised(name, signature)
    return None
