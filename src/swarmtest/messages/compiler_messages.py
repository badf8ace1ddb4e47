"""What compilers print when they fail: GCC, Clang and tcc."""

from __future__ import annotations

import re

from swarmtest.faults import normalised
from swarmtest.messages.mangled_names import function_name
from swarmtest.messages.stack_frames import plain_name, telling_frames, with_frames

_GCC_PLACE = re.compile(r"internal compiler error: in (?P<function>[^\n]+?), at (?P<file>\S+?):\d+")
_GCC_PLAIN = re.compile(r"internal compiler error: (?P<what>[^\n]+)")
_GCC_PASS = re.compile(r"^during (?P<pass>\w+ pass: \S+)", re.MULTILINE)
_GCC_FRAME = re.compile(r"^0x[0-9a-f]+ (?P<name>[^\n]+)\n\t", re.MULTILINE)
_GCC_CONFUSED = re.compile(r"confused by earlier errors, bailing out")
_GCC_DEBUG = re.compile(r"error: [^\n]*: .(?P<what>-fcompare-debug. failure(?: \(\w+\))?)")
"""The quotes around the option are curly or straight, as the locale has them."""

_ASSERTION = re.compile(
    r"^(?:[^\n:]+: )?(?P<file>[^\n:]+):\d+: (?P<function>[^\n]+?): "
    r"Assertion [`'](?P<what>[^\n]+)' failed",
    re.MULTILINE,
)
_BACKEND = re.compile(r"(?:fatal error: error in backend|LLVM ERROR): (?P<what>[^\n]+)")
_UNREACHABLE = re.compile(r"UNREACHABLE executed(?: at (?P<file>[^\n]+?):\d+)?!")
_STACK = re.compile(r"^(?:PLEASE submit a bug report|Stack dump:)", re.MULTILINE)
_CLANG_FRAME = re.compile(
    r"^ ?#\d+ 0x[0-9a-f]+ (?!\()(?P<name>[^\n]+?)(?: \(?/[^\n]*| [\w.+-]+:\d+:\d+[^\n]*)?$",
    re.MULTILINE,
)
_CLANG_FRAME_WITHOUT_SYMBOLS = re.compile(
    r"^[^\n(]+\((?P<symbol>[\w.$]+)\+0x[0-9a-f]+\)\[0x[0-9a-f]+\]$", re.MULTILINE
)
"""As LLVM prints a stack where it finds no llvm-symbolizer."""
_HEADERS = (".h", ".hpp", ".inc", ".def")

_TCC = re.compile(r"^(?:[^\n:]+:\d+|tcc): error: (?P<what>[^\n]+)", re.MULTILINE)
_LONGEST = 160


def gcc(output: str) -> str | None:
    """An internal compiler error, by function and file; by pass and stack where it tells neither.

    >>> gcc("a.c:3:1: internal compiler error: in expand_expr, at expr.c:8093")
    'internal compiler error: in expand_expr, at expr.c'
    """
    if found := _GCC_PLACE.search(output):
        function, file = plain_name(found["function"]), _base(found["file"])
        return f"internal compiler error: in {function}, at {file}"
    if found := _GCC_PLAIN.search(output):
        what = normalised(found["what"])
        during = _GCC_PASS.search(output)
        if during and not what.startswith("in "):
            what += f", during {during['pass']}"
        frames = telling_frames(frame["name"] for frame in _GCC_FRAME.finditer(output))
        return with_frames(f"internal compiler error: {what}", frames)
    if found := _GCC_DEBUG.search(output):
        return re.sub(r"debug. ", "debug ", found["what"])
    if _GCC_CONFUSED.search(output):
        return "confused by earlier errors, bailing out"
    return None


def clang(output: str) -> str | None:
    """A failed assertion, an error in the backend, or the stack dump of any other crash.

    >>> clang("clang: /src/Value.h:104: bool llvm::f(int): Assertion `Val > 0' failed.")
    "Assertion `Val > 0' failed in llvm::f (Value.h)"
    """
    frames = telling_frames(_clang_frames(output))
    if found := _ASSERTION.search(output):
        text = assertion_text(found)
        # An assertion in a header is shared by all who include it: its callers tell bugs apart.
        own = plain_name(found["function"])
        callers = [name for name in frames if name != own]
        return with_frames(text, callers if found["file"].endswith(_HEADERS) else [])
    if found := _BACKEND.search(output):
        return f"error in backend: {_numberless(found['what'])}"
    if found := _UNREACHABLE.search(output):
        at = f" at {_base(found['file'])}" if found["file"] else ""
        return with_frames(f"UNREACHABLE executed{at}", frames[:1])
    return with_frames("crash", frames) if _STACK.search(output) else None


def _clang_frames(output: str) -> list[str]:
    names = [frame["name"] for frame in _CLANG_FRAME.finditer(output)]
    if names:
        return names
    symbols = [frame["symbol"] for frame in _CLANG_FRAME_WITHOUT_SYMBOLS.finditer(output)]
    return [name for name in map(function_name, symbols) if name]


def tcc(output: str) -> str | None:
    """An error that tcc reports, without the numbers of the program at hand.

    What is quoted stays: tcc quotes the tokens that it expected, and they tell errors apart.

    >>> tcc("t.c:12: error: 'l_201' undeclared")
    "error: 'l_#' undeclared"
    """
    found = _TCC.search(output)
    return f"error: {re.sub(r'[0-9]+', '#', found['what'].strip())[:_LONGEST]}" if found else None


def assertion_text(found: re.Match[str]) -> str:
    """The signature of a match with `what`, `function` and `file`.

    The condition is the programmer's text, so numbers in it are not what varies.
    """
    what = " ".join(found["what"].split())
    what = what if len(what) <= _LONGEST else what[: _LONGEST - 1] + "…"
    function = plain_name(found["function"]) if found["function"] else ""
    where = f" in {function} ({_base(found['file'])})" if function else f" ({_base(found['file'])})"
    return f"Assertion `{what}' failed{where}"


def _numberless(message: str) -> str:
    """Without addresses and numbers; types such as i64 stay."""
    message = re.sub(r"0x[0-9a-f]+", "0x?", message)
    return re.sub(r"(?<!\w)(?!0x)[0-9]+", "#", " ".join(message.split()))[:_LONGEST]


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
