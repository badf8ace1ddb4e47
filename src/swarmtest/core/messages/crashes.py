"""What programs print when they crash, and the part of it that identifies the bug.

There is a function for each family of messages: compilers (`gcc`, `clang`, `tcc`), sanitizers,
assertions, glibc and the runtimes of languages. `RECOGNISERS` lists them by name, and `recognise`
applies some of them in turn.

A signature says what went wrong and in which functions. It has no line numbers (nor has that of a
Python fault, see `swarmtest.core.faults`), so an edit above the bug, or the next version, does not
create a new fault. The price is that two assertions that differ only in their line count as one
fault, which is the safer of the two errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.messages.mangled_names import function_name
from swarmtest.core.messages.shapes import normalised

# Functions of a printed stack.

_MAX_FRAMES = 3

_FOREIGN = re.compile(
    r"\?\?\?$|__GI_|swarmtest_"
    r"|_?_?libc_start|_start$|__restore_rt|(__)?(GI_)?raise$|gsignal$|abort$|__assert_fail"
    r"|__pthread_kill|pthread_kill|__interceptor_|__(asan|msan|tsan|ubsan|lsan|sanitizer)_"
    r"|(mem|str)(set|cpy|move|cmp|len|chr|cat)$|(m|c|re)alloc$|free$|operator (new|delete)"
    r"|llvm::sys::|SignalHandler|CrashRecovery|llvm::report_fatal_error|llvm::CrashRecovery"
    r"|llvm::llvm_unreachable_internal|crash_signal|internal_error|fancy_abort|diagnostic_"
    r"|main$|cc1_main|runtime\.|panic$",
)
"""Functions on every stack: handlers of the crash, the C library, the start of the program."""


def telling_frames(names: Iterable[str], most: int = _MAX_FRAMES) -> list[str]:
    """Return the innermost few functions that are not on every stack.

    `main` is left out unless nothing else is left, because it does not distinguish any two bugs.

    >>> telling_frames(["abort", "llvm::isel(llvm::SDNode*)", "(anonymous namespace)::run()", ""])
    ['llvm::isel', 'run']
    """
    plain = [name for name in map(plain_name, names) if name]
    own = [name for name in plain if not _FOREIGN.match(name)]
    if not own and "main" in plain:
        own = ["main"]
    return [name for i, name in enumerate(own) if i == 0 or name != own[i - 1]][:most]


def plain_name(function: str) -> str:
    """Return a function's name without result, parameters, template arguments and clone suffixes.

    >>> plain_name("static bool llvm::isa_cl<To, const From*>::doit(const From*) [with To = A]")
    'llvm::isa_cl::doit'
    >>> plain_name("clang::Parser::run(clang::Token&) (.part.0)")
    'clang::Parser::run'
    """
    name = function.replace("(anonymous namespace)::", "").replace("operator()", "operator")
    while "<" in name:
        shorter = re.sub(r"<[^<>]*>", "", name)
        if shorter == name:
            break
        name = shorter
    name = name.split("(", 1)[0].split(" [", 1)[0].strip()
    if not name.startswith("operator "):
        name = name.rsplit(" ", 1)[-1].lstrip("*&")
    return re.sub(r"(\.(part|isra|constprop|cold|llvm)(\.\d+)*)+$|::h[0-9a-f]{16}$", "", name)


def with_frames(text: str, frames: list[str]) -> str:
    """Return a signature with its functions, in the form that `swarmtest.core.faults` uses.

    >>> with_frames("SEGV", ["parse", "read"])
    'SEGV [parse < read]'
    """
    return f"{text} [{' < '.join(frames)}]" if frames else text


DEEP = 32
"""A stack of so many frames is taken for endless recursion: the runtime notes no more."""


def with_stack(text: str, stack: Sequence[str]) -> str:
    """Return the signature of a crash with the functions that it interrupted, innermost first.

    A text that has functions, or says which assertion failed, stays as it is. Where endless
    recursion meets the end of the stack varies, so its functions are sorted.

    >>> with_stack("SIGSEGV", ["parse", "read", "main"])
    'SIGSEGV [parse < read]'
    >>> with_stack("SIGSEGV", ["odd", "even"] * 16)
    'SIGSEGV [even < odd]'
    """
    if "[" in text or "Assertion" in text:
        return text
    if len(stack) < DEEP:
        return with_frames(text, telling_frames(stack))
    return with_frames(text, sorted(set(telling_frames(stack, most=len(stack))))[:_MAX_FRAMES])


# Compilers: GCC, Clang and tcc.

_GCC_PLACE = re.compile(r"internal compiler error: in (?P<function>[^\n]+?), at (?P<file>\S+?):\d+")
_GCC_PLAIN = re.compile(r"internal compiler error: (?P<what>[^\n]+)")
_GCC_PASS = re.compile(r"^during (?P<pass>\w+ pass: \S+)", re.MULTILINE)
_GCC_FRAME = re.compile(r"^0x[0-9a-f]+ (?P<name>[^\n]+)\n\t", re.MULTILINE)
_GCC_CONFUSED = re.compile(r"confused by earlier errors, bailing out")
_GCC_DEBUG = re.compile(r"error: [^\n]*: .(?P<what>-fcompare-debug. failure(?: \(\w+\))?)")
"""The quotes around the option are curly or straight, depending on the locale."""

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
"""A frame as LLVM prints it if it finds no llvm-symbolizer."""
_HEADERS = (".h", ".hpp", ".inc", ".def")

_TCC = re.compile(r"^(?:[^\n:]+:\d+|tcc): error: (?P<what>[^\n]+)", re.MULTILINE)
_LONGEST = 160


def gcc(output: str) -> str | None:
    """Recognise an internal compiler error by function and file, or else by pass and stack.

    >>> gcc("a.c:3:1: internal compiler error: in expand_expr, at expr.c:8093")
    'internal compiler error: in expand_expr, at expr.c'
    """
    if match := _GCC_PLACE.search(output):
        function, file = plain_name(match["function"]), _base(match["file"])
        return f"internal compiler error: in {function}, at {file}"
    if match := _GCC_PLAIN.search(output):
        what = normalised(match["what"])
        during = _GCC_PASS.search(output)
        if during and not what.startswith("in "):
            what += f", during {during['pass']}"
        frames = telling_frames(frame["name"] for frame in _GCC_FRAME.finditer(output))
        return with_frames(f"internal compiler error: {what}", frames)
    if match := _GCC_DEBUG.search(output):
        return re.sub(r"debug. ", "debug ", match["what"])
    if _GCC_CONFUSED.search(output):
        return "confused by earlier errors, bailing out"
    return None


def clang(output: str) -> str | None:
    """Recognise a failed assertion, an error in the backend, or the stack dump of any other crash.

    >>> clang("clang: /src/Value.h:104: bool llvm::f(int): Assertion `Val > 0' failed.")
    "Assertion `Val > 0' failed in llvm::f (Value.h)"
    """
    frames = telling_frames(_clang_frames(output))
    if match := _ASSERTION.search(output):
        text = assertion_text(match)
        # Every file that includes a header shares its assertions, so callers distinguish bugs.
        own = plain_name(match["function"])
        callers = [name for name in frames if name != own]
        return with_frames(text, callers if match["file"].endswith(_HEADERS) else [])
    if match := _BACKEND.search(output):
        return f"error in backend: {_numberless(match['what'])}"
    if match := _UNREACHABLE.search(output):
        at = f" at {_base(match['file'])}" if match["file"] else ""
        return with_frames(f"UNREACHABLE executed{at}", frames[:1])
    return with_frames("crash", frames) if _STACK.search(output) else None


def _clang_frames(output: str) -> list[str]:
    names = [frame["name"] for frame in _CLANG_FRAME.finditer(output)]
    if names:
        return names
    symbols = [frame["symbol"] for frame in _CLANG_FRAME_WITHOUT_SYMBOLS.finditer(output)]
    return [name for name in map(function_name, symbols) if name]


def tcc(output: str) -> str | None:
    """Recognise an error that tcc reports, without the numbers of this program.

    Quoted text stays: tcc quotes the tokens that it expected, and they distinguish errors.

    >>> tcc("t.c:12: error: 'l_201' undeclared")
    "error: 'l_#' undeclared"
    """
    match = _TCC.search(output)
    return f"error: {re.sub(r'[0-9]+', '#', match['what'].strip())[:_LONGEST]}" if match else None


def assertion_text(match: re.Match[str]) -> str:
    """Return the signature of a match with `what`, `function` and `file`.

    The condition is the programmer's text, so its numbers do not vary and stay.
    """
    what = " ".join(match["what"].split())
    what = what if len(what) <= _LONGEST else what[: _LONGEST - 1] + "…"
    function = plain_name(match["function"]) if match["function"] else ""
    where = f" in {function} ({_base(match['file'])})" if function else f" ({_base(match['file'])})"
    return f"Assertion `{what}' failed{where}"


def _numberless(message: str) -> str:
    """Return a message without addresses and numbers; types such as i64 stay."""
    message = re.sub(r"0x[0-9a-f]+", "0x?", message)
    return re.sub(r"(?<!\w)(?!0x)[0-9]+", "#", " ".join(message.split()))[:_LONGEST]


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


# Sanitizers, C libraries and the runtimes of languages.

_SANITIZER = re.compile(
    r"(?:ERROR|WARNING): (?P<who>(?:HW)?\w+Sanitizer): "
    r"(?P<what>[^\n]+?)(?= on (?:unknown )?address| on 0x|:? \(pid| \(0x| 0x|$)",
    re.MULTILINE,
)
_SUMMARY = re.compile(
    r"SUMMARY: (?P<who>\w+Sanitizer): (?P<what>[\w-]+)[^\n]*?(?: in (?P<in>[^\s(]+)\S*)?$",
    re.MULTILINE,
)
"""The last line of a report, which is all that is left if the report was cut."""
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
"""The formats of glibc, and of the BSDs and musl."""

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
    """Recognise a sanitizer's report by its kind and the innermost functions of the program.

    >>> sanitizers("a.c:2:36: runtime error: division by zero")
    'UndefinedBehaviorSanitizer: division by zero (a.c)'
    """
    if match := _SANITIZER.search(output):
        frames = _stack_after(output[match.end() :], _SANITIZER_FRAME)
        return with_frames(f"{match['who']}: {normalised(match['what'])}", frames)
    if match := _UNDEFINED.search(output):
        frames = _stack_after(output[match.end() :], _SANITIZER_FRAME)
        text = f"UndefinedBehaviorSanitizer: {normalised(match['what'])}"
        return with_frames(text, frames) if frames else f"{text} ({_base(match['file'])})"
    if match := _SUMMARY.search(output):
        return with_frames(f"{match['who']}: {match['what']}", [match["in"]] if match["in"] else [])
    return None


def assertion(output: str) -> str | None:
    """Recognise a failed assertion of a C program by its condition, function and file.

    >>> assertion("prog: src/half.c:2: half: Assertion `x % 2 == 0' failed.")
    "Assertion `x % 2 == 0' failed in half (half.c)"
    """
    for form in _ASSERT:
        if match := form.search(output):
            return assertion_text(match)
    return None


def glibc(output: str) -> str | None:
    """Recognise what glibc prints before it aborts a program.

    >>> glibc("*** stack smashing detected ***: terminated")
    'stack smashing detected'
    """
    match = _GLIBC.search(output)
    if match is None:
        return None
    return match["fatal"] or match["heap"] or normalised(match["error"])


def cxx(output: str) -> str | None:
    """Recognise an exception that ended a C++ program.

    >>> cxx("terminate called after throwing an instance of 'std::bad_alloc'")
    'uncaught std::bad_alloc'
    """
    match = _CXX.search(output)
    if match is None:
        return None
    if match["without"]:
        return f"terminate called {match['without']}"
    what = f": {normalised(match['what'])}" if match["what"] else ""
    return f"uncaught {match['type']}{what}"


def rust(output: str) -> str | None:
    """Recognise a panic by its message and its functions, or without a backtrace by its file.

    >>> rust("thread 'main' panicked at 'no entry', src/main.rs:1:40")
    'panic: no entry (main.rs)'
    """
    match = _RUST.search(output)
    if match is None:
        return None
    text = f"panic: {normalised(match['old'] or match['what'])}"
    frames = _stack_after(output[match.end() :], _RUST_FRAME, _RUST_OWN)
    file = _base(match["old_file"] or match["file"])
    return with_frames(text, frames) if frames else f"{text} ({file})"


def go(output: str) -> str | None:
    """Recognise a panic or fatal error, with the innermost functions of the goroutine that ended.

    >>> go("panic: no such key\\n\\ngoroutine 1 [running]:\\nmain.main()\\n\\t/src/a.go:7 +0x45")
    'panic: no such key [main.main]'
    """
    match = _GO.search(output)
    if match is None or "\ngoroutine " not in output:
        return None
    stack = output[match.end() :].split("\n\ngoroutine ", 2)[0]
    frames = telling_frames(frame["name"] for frame in _GO_FRAME.finditer(stack))
    return with_frames(normalised(_GO_STATE.sub("", match["what"])), frames)


def python(output: str) -> str | None:
    """Recognise the last traceback by its exception and its innermost functions.

    >>> python('Traceback (most recent call last):\\n  File "a.py", line 1, in f\\nKeyError: 5')
    'KeyError: # [f]'
    """
    tracebacks = list(_PYTHON.finditer(output))
    if not tracebacks:
        return None
    names = [frame["name"] for frame in _PYTHON_FRAME.finditer(tracebacks[-1]["stack"])]
    return with_frames(normalised(tracebacks[-1]["what"]), names[:-4:-1])


def _stack_after(
    text: str, frame: re.Pattern[str], library: tuple[str, ...] = ("std::",)
) -> list[str]:
    """Return the telling functions of the first stack in a text.

    Further stacks only say who freed the memory or started the thread.
    """
    first = frame.search(text)
    if first is None:
        return []
    stack = re.split(r"\n[ \t]*\n", text[first.start() :], maxsplit=1)[0]
    names = [match["name"] for match in frame.finditer(stack)]
    return telling_frames(name for name in names if not name.startswith(library))


# The recognisers by name.


@dataclass(frozen=True)
class Recogniser:
    """A recogniser of one family of messages.

    >>> recogniser_named("glibc").find("free(): invalid pointer")
    'free(): invalid pointer'
    """

    name: str
    description: str
    find: Callable[[str], str | None]
    """Return the signature of the first such message in a text, or None."""


@dataclass(frozen=True)
class RecognisedCrash:
    """A message that a recogniser found."""

    name: str
    """The recogniser's name."""
    signature: str


_LONGEST_LINE = 2_000
_TOO_LONG = re.compile(rf"([^\n]{{{_LONGEST_LINE}}})[^\n]+")


def _recogniser(
    name: str, description: str, search: Callable[[str], str | None], *marks: str
) -> Recogniser:
    """Return a recogniser that searches only texts with one of the marks.

    It searches only the start of long lines: programs print megabytes without a line break, and a
    regular expression would take hours on them.
    """

    def find(output: str) -> str | None:
        if not any(mark in output for mark in marks):
            return None
        return search(_TOO_LONG.sub(r"\1", output))

    return Recogniser(name, description, find)


RECOGNISERS: Mapping[str, Recogniser] = {
    recogniser.name: recogniser
    for recogniser in (
        _recogniser(
            *("gcc", "GCC's internal compiler errors, -fcompare-debug failures", gcc),
            *("internal compiler error", "-fcompare-debug", "confused by earlier errors"),
        ),
        _recogniser(
            *("clang", "Clang's and LLVM's assertions, backend errors and stack dumps"),
            clang,
            *("Assertion ", "error in backend", "LLVM ERROR", "UNREACHABLE executed", "Stack dump"),
        ),
        _recogniser("tcc", "every error that tcc reports", tcc, ": error: "),
        _recogniser(
            "sanitizers",
            "reports of Address-, Leak-, Memory-, Thread- and UndefinedBehaviorSanitizer",
            sanitizers,
            *("Sanitizer: ", ": runtime error: "),
        ),
        _recogniser(
            *("assert", "failed assertions of C and C++: assert(3)", assertion),
            "Assertion ",
        ),
        _recogniser(
            *("glibc", "what glibc says of broken heaps and stacks", glibc),
            *("*** ", "(): ", "malloc: ", "corrupt", "break adjusted", "Fatal glibc error"),
        ),
        _recogniser("c++", "C++ exceptions that nothing caught", cxx, "terminate called "),
        _recogniser("rust", "Rust's panics, rustc's own among them", rust, " panicked at "),
        _recogniser("go", "Go's panics and fatal errors", go, "goroutine "),
        _recogniser("python", "Python's tracebacks", python, "Traceback (most recent"),
    )
}
"""All recognisers, by name."""


def recogniser_named(name: str) -> Recogniser:
    """Return the recogniser with a name.

    >>> recogniser_named("sanitizer")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no recogniser 'sanitizer'; did you mean 'sanitizers'?
    """
    recogniser = RECOGNISERS.get(name)
    if recogniser is None:
        raise UserError(f"no recogniser {name!r}{did_you_mean(name, RECOGNISERS)}")
    return recogniser


def recognise(output: str, names: Sequence[str]) -> RecognisedCrash | None:
    """Return the message that the first of these recognisers finds in a text, or None.

    >>> recognise("x.c:1:2: internal compiler error: in lower_stmt, at tree.cc:7", ["tcc", "gcc"])
    RecognisedCrash(name='gcc', signature='internal compiler error: in lower_stmt, at tree.cc')
    """
    for name in names:
        signature = recogniser_named(name).find(output)
        if signature is not None:
            return RecognisedCrash(name, signature)
    return None


_KILLED = re.compile(
    rb"(?:Killed|Terminated) signal terminated program"  # gcc
    rb"|unable to execute command: (?:Killed|Terminated)"  # clang
    rb"|signal: (?:9, SIGKILL|15, SIGTERM|killed|terminated)"  # rustc, cargo, go
    rb"|died with <Signals\.SIG(?:KILL|TERM): "  # Python
    rb"|^make[^\n]*: \*\*\* [^\n]* (?:Killed|Terminated)$"
    rb"|^(?:[^\n]* \d+ )?(?:Killed|Terminated)\b",  # shells
    re.MULTILINE,
)


def tells_of_kill(output: bytes) -> bool:
    """Return whether a program says that a process which it had started was killed.

    >>> tells_of_kill(b"clang: error: unable to execute command: Killed")
    True
    >>> tells_of_kill(b"make: *** [Makefile:2: all] Killed")
    True
    >>> tells_of_kill(b"error: Killed is not declared")
    False
    """
    return _KILLED.search(output) is not None
