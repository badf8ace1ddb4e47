"""What programs print when they fail: sanitizers, assertions, glibc, and languages' runtimes."""

from __future__ import annotations

import re

from swarmtest.faults import normalised
from swarmtest.messages.compiler_messages import assertion_text
from swarmtest.messages.stack_frames import telling_frames, with_frames

_SANITIZER = re.compile(
    r"(?:ERROR|WARNING): (?P<who>(?:HW)?\w+Sanitizer): "
    r"(?P<what>[^\n]+?)(?= on (?:unknown )?address| on 0x|:? \(pid| \(0x| 0x|$)",
    re.MULTILINE,
)
_SUMMARY = re.compile(
    r"SUMMARY: (?P<who>\w+Sanitizer): (?P<what>[\w-]+)[^\n]*?(?: in (?P<in>[^\s(]+)\S*)?$",
    re.MULTILINE,
)
"""The last line of a report, which is all there is of one that was cut."""
_SANITIZER_FRAME = re.compile(
    r"^ +#\d+ (?:0x[0-9a-f]+ in )?(?P<name>[A-Za-z_~(<][^\n]*?)"
    r"(?= \(|\s+<null>| [^\s(]*[/.][^\s]*(?::\d+| \()|$)",
    re.MULTILINE,
)
_UNDEFINED = re.compile(
    r"(?P<file>[^\s:]+):\d+(?::\d+)?: runtime error: (?P<what>[^\n]+)", re.MULTILINE
)

_ASSERT = (
    re.compile(
        r"^(?:[^\n:]+: )?(?P<file>[^\s:]+):\d+: (?:(?P<function>[^\n]+?): )?"
        r"Assertion [`'](?P<what>[^\n]+)' failed",
        re.MULTILINE,
    ),
    re.compile(
        r"Assertion failed: \(?(?P<what>[^\n]+?)\)?(?:, function (?P<function>[^\n,]+))?"
        r",(?: file)? (?P<file>[^\s,]+), line \d+",
    ),
)
"""As glibc writes them, and as the BSDs and musl do."""

_GLIBC = re.compile(
    r"^(?:\*\*\* (?P<fatal>[^\n*]+ detected) \*\*\*"
    r"|(?:\*\*\* Error in `[^\n]*': )?(?P<heap>(?:\w+\(\): |malloc: )[a-z][^\n]*?"
    r"|double free or corruption[^\n]*?|corrupted (?:size|double-linked)[^\n]*?"
    r"|break adjusted [^\n]*?"
    r")(?:: 0x[0-9a-f]+ \*\*\*)?"
    r"|Fatal glibc error: (?P<error>[^\n]+?))(?:: terminated)?$",
    re.MULTILINE,
)
_CXX = re.compile(
    r"terminate called (?:after throwing an instance of '(?P<type>[^\n]+)'"
    r"(?:\s+what\(\): +(?P<what>[^\n]+))?|(?P<without>without an active exception|recursively))"
)

_RUST = re.compile(
    r"thread '(?P<thread>[^'\n]*)'(?: \(\d+\))? panicked at (?:'(?P<old>[^\n]+)', "
    r"(?P<old_file>[^\s:]+):\d+|(?P<file>[^\s:]+):\d+:\d+:\n(?P<what>[^\n]+))"
)
_RUST_OWN = ("rust_", "__rust", "core::", "std::", "alloc::", "<alloc::", "<core::")
_RUST_FRAME = re.compile(r"^ +\d+: (?:0x[0-9a-f]+ - )?(?P<name>[^\n]+)$", re.MULTILINE)

_GO = re.compile(r"^(?P<what>(?:panic|fatal error): [^\n]+)\n", re.MULTILINE)
_GO_FRAME = re.compile(
    r"^(?P<name>[\w./%-]+(?:\.\(\*?\w+\))?[\w.]*)\([^\n]*\)\n\t[^\n]+:\d+", re.MULTILINE
)
_GO_STATE = re.compile(r" \[recovered\]$|\s*\(goroutine \d+\)")

_PYTHON = re.compile(
    r"^Traceback \(most recent call last\):\n(?P<stack>(?:[ \t][^\n]*\n)+)(?P<what>\S[^\n]*)",
    re.MULTILINE,
)
_PYTHON_FRAME = re.compile(r'^  File "[^"\n]+", line \d+, in (?P<name>[^\n]+)$', re.MULTILINE)


def sanitizers(output: str) -> str | None:
    """A sanitizer's report: its kind, and the innermost functions that are not the sanitizer's.

    >>> sanitizers("a.c:2:36: runtime error: division by zero")
    'UndefinedBehaviorSanitizer: division by zero (a.c)'
    """
    if found := _SANITIZER.search(output):
        frames = _stack_after(output[found.end() :], _SANITIZER_FRAME)
        return with_frames(f"{found['who']}: {normalised(found['what'])}", frames)
    if found := _UNDEFINED.search(output):
        frames = _stack_after(output[found.end() :], _SANITIZER_FRAME)
        text = f"UndefinedBehaviorSanitizer: {normalised(found['what'])}"
        return with_frames(text, frames) if frames else f"{text} ({_base(found['file'])})"
    if found := _SUMMARY.search(output):
        return with_frames(f"{found['who']}: {found['what']}", [found["in"]] if found["in"] else [])
    return None


def assertion(output: str) -> str | None:
    """A failed assertion of a C program: its condition, function and file.

    >>> assertion("prog: src/half.c:2: half: Assertion `x % 2 == 0' failed.")
    "Assertion `x % 2 == 0' failed in half (half.c)"
    """
    for form in _ASSERT:
        if found := form.search(output):
            return assertion_text(found)
    return None


def glibc(output: str) -> str | None:
    """What glibc says before it aborts a program.

    >>> glibc("*** stack smashing detected ***: terminated")
    'stack smashing detected'
    """
    found = _GLIBC.search(output)
    if found is None:
        return None
    return found["fatal"] or found["heap"] or normalised(found["error"])


def cxx(output: str) -> str | None:
    """An exception that ended a C++ program.

    >>> cxx("terminate called after throwing an instance of 'std::bad_alloc'")
    'uncaught std::bad_alloc'
    """
    found = _CXX.search(output)
    if found is None:
        return None
    if found["without"]:
        return f"terminate called {found['without']}"
    what = f": {normalised(found['what'])}" if found["what"] else ""
    return f"uncaught {found['type']}{what}"


def rust(output: str) -> str | None:
    """A panic: its message, and its functions if a backtrace is there, else its file.

    >>> rust("thread 'main' panicked at 'no entry', src/main.rs:1:40")
    'panic: no entry (main.rs)'
    """
    found = _RUST.search(output)
    if found is None:
        return None
    text = f"panic: {normalised(found['old'] or found['what'])}"
    frames = _stack_after(output[found.end() :], _RUST_FRAME, _RUST_OWN)
    file = _base(found["old_file"] or found["file"])
    return with_frames(text, frames) if frames else f"{text} ({file})"


def go(output: str) -> str | None:
    """A panic or a fatal error with the innermost functions of the goroutine that ended.

    >>> go("panic: no such key\\n\\ngoroutine 1 [running]:\\nmain.main()\\n\\t/src/a.go:7 +0x45")
    'panic: no such key [main.main]'
    """
    found = _GO.search(output)
    if found is None or "\ngoroutine " not in output:
        return None
    stack = output[found.end() :].split("\n\ngoroutine ", 2)[0]
    frames = telling_frames(frame["name"] for frame in _GO_FRAME.finditer(stack))
    return with_frames(normalised(_GO_STATE.sub("", found["what"])), frames)


def python(output: str) -> str | None:
    """The last traceback: the exception, and the innermost functions.

    >>> python('Traceback (most recent call last):\\n  File "a.py", line 1, in f\\nKeyError: 5')
    'KeyError: # [f]'
    """
    all_found = list(_PYTHON.finditer(output))
    if not all_found:
        return None
    names = [frame["name"] for frame in _PYTHON_FRAME.finditer(all_found[-1]["stack"])]
    return with_frames(normalised(all_found[-1]["what"]), names[:-4:-1])


def _stack_after(
    text: str, frame: re.Pattern[str], library: tuple[str, ...] = ("std::",)
) -> list[str]:
    """The telling functions of the first stack in a text: further ones say who freed, or who
    started the thread."""
    first = frame.search(text)
    if first is None:
        return []
    stack = re.split(r"\n[ \t]*\n", text[first.start() :], maxsplit=1)[0]
    names = [one["name"] for one in frame.finditer(stack)]
    return telling_frames(name for name in names if not name.startswith(library))


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
