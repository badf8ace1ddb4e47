"""Sanitizers: which programs were built with one, and the options with which they report best.

A report is complete if it has a stack with functions, and reproducible if the same test gives the
same report: the program ends at its first error, in the same state of memory. The options are put
into programs that ``swarmtest cc --sanitize`` builds, and into the environment of others that were
built with a sanitizer. Variables like ASAN_OPTIONS in the environment go before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean

_ADDRESS = (
    "detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1:handle_abort=1:"
    "allocator_may_return_null=1:malloc_context_size=20:print_legend=0"
)
OPTIONS: Mapping[str, str] = {
    "asan": _ADDRESS,
    "ubsan": "print_stacktrace=1:halt_on_error=1",
    "msan": "halt_on_error=1:handle_abort=1:allocator_may_return_null=1",
    "tsan": "halt_on_error=1:second_deadlock_stack=1:history_size=7",
}
"""The options of each sanitizer, by the prefix of its functions. Leaks are not looked for: what a
program does not free at its end is seldom a fault, and looking takes longer than a test."""

_FLAGS = {
    "address": (),
    "undefined": ("-fno-sanitize-recover=undefined",),
    "memory": ("-fsanitize-memory-track-origins",),
    "thread": (),
    "leak": (),
}
"""The sanitizers that `swarmtest cc` knows, and what each needs besides its name."""

_MARKS = (b"__asan_init", b"__msan_init", b"__tsan_init", b"__hwasan_init")
_ELF = b"\x7fELF"


def sanitizer_flags(names: str) -> list[str]:
    """Return the compiler's flags for sanitizers that are named with commas between them.

    >>> sanitizer_flags("address,undefined")[0]
    '-fsanitize=address,undefined'
    >>> sanitizer_flags("adress")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no sanitizer 'adress'; did you mean 'address'?
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in _FLAGS:
            raise UserError(f"no sanitizer {name!r}{did_you_mean(name, [*_FLAGS])}")
    if not chosen:
        raise UserError(f"--sanitize needs one or more of {', '.join(_FLAGS)}")
    alone = {"address", "memory", "thread"}.intersection(chosen)
    if len(alone) > 1:
        raise UserError(f"--sanitize: {' and '.join(sorted(alone))} cannot be in one program")
    more = [flag for name in chosen for flag in _FLAGS[name]]
    # Without frame pointers, the stacks of a report end early.
    return [f"-fsanitize={','.join(chosen)}", "-fno-omit-frame-pointer", *more]


def options_source(*, weak: bool) -> str:
    """Return the C source of functions that give a program its options.

    If they are `weak`, a program may have its own. Clang links weak ones of its runtime before.
    """
    how = 'weak, visibility("default")' if weak else 'visibility("default")'
    return "".join(
        f"__attribute__(({how})) const char *__{name}_default_options(void)"
        f' {{ return "{options}"; }}\n'
        for name, options in OPTIONS.items()
    )


def options_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a sanitized program gets, unless the environment has them.

    >>> sorted(options_in({"ASAN_OPTIONS": "detect_leaks=1"}))
    ['MSAN_OPTIONS', 'TSAN_OPTIONS', 'UBSAN_OPTIONS']
    """
    variables = {f"{name.upper()}_OPTIONS": options for name, options in OPTIONS.items()}
    return {name: text for name, text in variables.items() if name not in environment}


def is_sanitized(content: bytes, environment: Mapping[str, str]) -> bool:
    """Return whether a program with this content reserves memory for a sanitizer.

    >>> is_sanitized(b"\\x7fELF...__asan_init...", {}), is_sanitized(b"\\x7fELF", {})
    (True, False)
    """
    preloaded = environment.get("LD_PRELOAD", "")
    return any(mark in content for mark in _MARKS) or any(
        f"lib{name}" in preloaded for name in OPTIONS
    )


def limits_resident_memory(program: str, environment: Mapping[str, str]) -> bool:
    """Return whether a program's memory has to be limited by what it holds.

    A script may start a program with a sanitizer; only a program that has none is limited by its
    address space, which the kernel does for us.
    """
    try:
        content = Path(program).read_bytes()
    except OSError:
        return False
    return not content.startswith(_ELF) or is_sanitized(content, environment)


def names_sanitizer(arguments: Sequence[str]) -> bool:
    """Return whether a compiler's arguments ask for a sanitizer."""
    return any(word.startswith("-fsanitize=") for word in arguments)
