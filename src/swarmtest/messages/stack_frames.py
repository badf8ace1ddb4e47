"""The functions of a printed stack that tell one bug from another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FRAMES = 3

_FOREIGN = re.compile(
    r"\?\?\?$|_?_?libc_start|_start$|__restore_rt|(__)?(GI_)?raise$|gsignal$|abort$|__assert_fail"
    r"|__pthread_kill|pthread_kill|__interceptor_|__(asan|msan|tsan|ubsan|lsan|sanitizer)_"
    r"|(mem|str)(set|cpy|move|cmp|len|chr|cat)$|(m|c|re)alloc$|free$|operator (new|delete)"
    r"|llvm::sys::|SignalHandler|CrashRecovery|llvm::report_fatal_error|llvm::CrashRecovery"
    r"|llvm::llvm_unreachable_internal|crash_signal|internal_error|fancy_abort|diagnostic_"
    r"|main$|cc1_main|runtime\.|panic$",
)
"""What is on everyone's stack: handlers of the crash, the C library, the start of the program."""


def telling_frames(names: Iterable[str]) -> list[str]:
    """The innermost few functions that are not on everyone's stack.

    `main` is left out unless nothing else is left: it tells no two bugs apart.

    >>> telling_frames(["abort", "llvm::isel(llvm::SDNode*)", "(anonymous namespace)::run()", ""])
    ['llvm::isel', 'run']
    """
    plain = [name for name in map(plain_name, names) if name]
    own = [name for name in plain if not _FOREIGN.match(name)]
    if not own and "main" in plain:
        own = ["main"]
    return [name for i, name in enumerate(own) if i == 0 or name != own[i - 1]][:_FRAMES]


def plain_name(function: str) -> str:
    """A function's name without result, parameters, template arguments and clones' suffixes.

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
    """A signature with the functions that it is about, as `swarmtest.faults` writes them.

    >>> with_frames("SEGV", ["parse", "read"])
    'SEGV [parse < read]'
    """
    return f"{text} [{' < '.join(frames)}]" if frames else text
