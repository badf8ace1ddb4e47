"""`swarmtest cc`: a compiler's command line with the flags and runtime of the fast path added.

In every other respect the command is the compiler's: same inputs, outputs, messages and exit
status, so that it can be used as CC in a build. Our flags come first, so that the user's own take
precedence. The runtime is compiled once per compiler and cached. It is added when the compiler
links, as the last object, so that its constructor runs last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.coverage.native.sanitizers import names_sanitizer, options_source, sanitizer_flags
from swarmtest.processes.caches import built_file, cache_directory

RUNTIME = Path(__file__).with_name("runtime.c")
_RUNTIME_FILES = (RUNTIME, *map(RUNTIME.with_name, ("runtime_server.c", "runtime_stack.c")))
FUZZ_MAIN = RUNTIME.with_name("fuzz_main.c")
_NO_LINKING = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r", "--help", "--version"}
"""Options with which the compiler does not link a program."""
_TAKES_VALUE = {
    *("-o", "-x", "-I", "-L", "-D", "-U", "-T", "-u", "-z", "-MF", "-MT", "-MQ", "-include"),
    *("-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-isysroot", "-Xlinker"),
    *("-Xassembler", "-Xpreprocessor", "-Xclang", "-target", "-aux-info", "-wrapper", "--param"),
}
_MACHINE = ("-m32", "-m64", "-mx32", "-target", "--target", "--sysroot")


@dataclass(frozen=True)
class Compiler:
    """A compiler: the words with which the user names it, and what ``--version`` prints.

    >>> Compiler(("gcc",), "gcc (Debian) 12.2.0").flags[0]
    '-fsanitize-coverage=trace-pc'
    """

    words: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether the compiler accepts clang's flags."""
        return "clang" in self.version

    @property
    def flags(self) -> list[str]:
        """The flags that make a program call the runtime at the start of every block."""
        # DWARF 4, because with DWARF 5 some versions of addr2line name wrong files for headers.
        common = ["-gdwarf-4", "-DSWARMTEST=1"]
        if self.is_clang:
            return ["-fsanitize-coverage=trace-pc-guard,pc-table,no-prune", *common]
        # A callback that is reached by a jump instead of a call would see its caller's caller.
        return ["-fsanitize-coverage=trace-pc", "-fno-optimize-sibling-calls", *common]


def compiler_command(words: Sequence[str], sanitize: str = "") -> list[str]:
    """Return the command to run for the words after `swarmtest cc`.

    `sanitize` names sanitizers, with commas between them.

    >>> compiler_command(["no-such-cc", "-c", "a.c"])
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no compiler 'no-such-cc' on the PATH: install it, or name another
    """
    if sys.platform != "linux":
        raise UserError(
            "swarmtest cc works on Linux only (x86-64 and aarch64): use a container with Linux"
        )
    sanitizing = sanitizer_flags(sanitize) if sanitize else []
    count = _compiler_words(words)
    compiler = _compiler(tuple(words[:count]))
    arguments, is_harness = without_fuzzer(words[count:])
    if not _has_input(arguments):
        return list(words)
    command = [*compiler.words, *compiler.flags, *sanitizing, *arguments]
    if compiler.is_clang and not names_sanitizer([*sanitizing, *arguments]):
        # Clang would link its own runtime for coverage, which may not be installed.
        command.insert(len(compiler.words), "-fno-sanitize-link-runtime")
    if not _NO_LINKING.intersection(arguments):
        if any(word.startswith("-x") for word in arguments):
            command += ["-x", "none"]
        if is_harness:
            command.append(str(_cached_object(compiler, arguments, str(FUZZ_MAIN), [])))
        command.append(str(_runtime(compiler, arguments)))
        if sanitizing and "-shared" not in arguments:
            command.append(str(_sanitizer_options(compiler, arguments)))
    return command


def without_fuzzer(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return a compiler's arguments without libFuzzer, and whether it was among them.

    A harness of libFuzzer gets our own main function, which runs one input after another.

    >>> without_fuzzer(["-O1", "-fsanitize=fuzzer,address", "fuzz.c"])
    (['-O1', '-fsanitize=address', 'fuzz.c'], True)
    """
    left, found = [], False
    for word in arguments:
        names = word.removeprefix("-fsanitize=").split(",") if word.startswith("-fsan") else []
        if "fuzzer" in names or "fuzzer-no-link" in names:
            found = found or "fuzzer" in names
            rest = [name for name in names if not name.startswith("fuzzer")]
            left += [f"-fsanitize={','.join(rest)}"] if rest else []
        else:
            left.append(word)
    return left, found


def _compiler_words(words: Sequence[str]) -> int:
    """Return how many words name the compiler: `gcc` is one, `ccache gcc` two."""
    launchers = {"ccache", "distcc", "sccache", "env", "nice"}
    count = 0
    while count < len(words) and os.path.basename(words[count]) in launchers:
        count += 1
    return count + 1


def _compiler(words: tuple[str, ...]) -> Compiler:
    if not words or words[-1].startswith("-"):
        raise UserError("swarmtest cc needs a compiler: swarmtest cc gcc -o prog prog.c")
    for word in words:
        if not shutil.which(word):
            raise UserError(f"no compiler {word!r} on the PATH: install it, or name another")
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, errors="replace")
    version = done.stdout
    if "clang" not in version and "see the source for copying conditions" not in version:
        raise UserError(f"{' '.join(words)} is neither gcc nor clang: swarmtest cc needs one")
    return Compiler(words, version)


def _has_input(arguments: Sequence[str]) -> bool:
    """Return whether a file is compiled or linked, rather than the compiler asked about itself."""
    is_value = False
    for word in arguments:
        if is_value:
            is_value = False
        elif word in _TAKES_VALUE:
            is_value = True
        elif word == "-" or word.startswith(("-l", "@")) or not word.startswith("-"):
            return True
    return False


def _runtime(compiler: Compiler, arguments: Sequence[str]) -> Path:
    """Return the runtime's object file for this compiler and machine; build it if needed."""
    texts = [file.read_text() for file in _RUNTIME_FILES]
    return _cached_object(compiler, arguments, str(RUNTIME), texts)


def _sanitizer_options(compiler: Compiler, arguments: Sequence[str]) -> Path:
    """Return the object file that gives a program the options of its sanitizers."""
    return _cached_object(compiler, arguments, "-", [options_source(weak=not compiler.is_clang)])


def _cached_object(
    compiler: Compiler, arguments: Sequence[str], source: str, texts: Sequence[str]
) -> Path:
    """Return an object file for this compiler and machine; `source` "-" is the first of `texts`."""
    machine = [word for word in arguments if word.startswith(_MACHINE)]
    recipe = [*compiler.words, "-O2", "-fPIC", *machine, "-x", "c", "-c", source]
    read = texts or [Path(source).read_text()]
    key = "\0".join([*recipe, compiler.version, *read])
    name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    cached = cache_directory("runtime", f"{name}.o")

    def build(file: str) -> None:
        text = texts[0] if source == "-" else ""
        done = subprocess.run([*recipe, "-o", file], input=text, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise UserError(f"{' '.join(compiler.words)} cannot build the runtime: {reason}")

    try:
        return built_file(cached, build)
    except OSError as error:
        raise UserError(
            f"cannot make {cached.parent} for the runtime ({error.strerror}): set XDG_CACHE_HOME"
        ) from None
