"""Run a build, learn from it how each C file is compiled, and compile mutants.

A directory of wrapper scripts comes first on PATH: when a build calls a compiler by its name, the
wrapper notes the command line and then runs the compiler. It turns warnings off, because mutants
often contain code that deserves a warning, and a build may treat warnings as errors.

Mutants are compiled to assembler text to find those that optimisation makes equal to the program or
to each other (dissertation, 3.5.1.2). The results are cached on disk between runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.languages.c.syntax_tree import CFile
from swarmtest.mutate.native.generation import CMutant
from swarmtest.processes.caches import cache_directory, is_usable, write
from swarmtest.processes.commands import capture

_COMPILERS = re.compile(r"(?:[\w-]+-)?(?:gcc|cc|clang|c89|c99|tcc)(?:-[\d.]+)?")
_WRAPPER = """\
#!/bin/sh
printf '%s\\0' "$PWD" {compiler} "$@" > "$SWARMTEST_COMPILED/$$"
exec {compiler} "$@" -w
"""
_FLAGS_WITH_ARGUMENT = frozenset(
    {"-D", "-U", "-I", "-include", "-imacros", "-isystem", "-iquote", "-idirafter"}
)
_KEPT_FLAGS = (
    "-D", "-U", "-I", "-f", "-m", "-std=", "-include", "-i", "-pthread", "-ansi", "-trad"
)  # fmt: skip
_DROPPED_FLAGS = (
    "-flto",
    "-fprofile",
    "-ftest-coverage",
    "-fsanitize",
    "-fdiagnostics",
    "-fplugin",
)
_ERROR = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_MENTIONS_ERROR = re.compile(r"\berror: |\bundefined reference\b|\*\*\* |: not found$")


@dataclass(frozen=True)
class CompileCommand:
    """How a file is compiled."""

    compiler: str
    flags: tuple[str, ...]
    """The flags that decide what the file means, not those of optimisation or output."""
    directory: Path
    path: str
    """The file, as on the compiler's command line."""


@dataclass(frozen=True)
class CompilerOutput:
    """How a command ended, and what it printed."""

    status: int
    output: str

    @property
    def first_error(self) -> str:
        """The first line that mentions an error, or else the last line."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if _MENTIONS_ERROR.search(line)]
        return (errors or lines[-1:] or [f"exit status {self.status}"])[0]

    def error_lines(self, name: str) -> set[int]:
        """Return the line numbers of a compiler's errors in a file of this name."""
        return {
            int(line) for path, line, _ in _ERROR.findall(self.output) if Path(path).name == name
        }


class Builder:
    """Runs a build command in copies of a program's directory."""

    def __init__(self, command: str, seconds: float, directory: Path) -> None:
        self._command = command
        self._seconds = seconds
        self._wrappers = directory / "compilers"
        self._notes = directory / "compiled"
        self._wrappers.mkdir()
        self._notes.mkdir()
        _write_wrappers(self._wrappers)

    def build(self, where: Path) -> CompilerOutput:
        """Build in a directory."""
        environment = {
            **os.environ,
            "PATH": f"{self._wrappers}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "SWARMTEST_COMPILED": str(self._notes),
            "LC_ALL": "C",
        }
        return run(["sh", "-c", self._command], where, self._seconds, environment)

    def compiled(self, files: list[Path]) -> dict[Path, CompileCommand]:
        """Return how files were compiled, for those that were."""
        by_path: dict[Path, CompileCommand] = {}
        wanted = {path.resolve(): path for path in files}
        for note in sorted(self._notes.iterdir()):
            directory, compiler, *words = (
                note.read_bytes().decode(errors="replace").split("\0")[:-1]
            )
            if "-E" in words:
                continue
            for word in words:
                if word.endswith(".c"):
                    path = wanted.get((Path(directory) / word).resolve())
                    if path is not None:
                        flags = kept_flags(words)
                        by_path[path] = CompileCommand(compiler, flags, Path(directory), word)
        return by_path


def run(
    words: list[str], where: Path, seconds: float, environment: dict[str, str] | None = None
) -> CompilerOutput:
    """Run a command to its end, with its output and errors in one text."""
    ended = capture(
        words,
        seconds,
        directory=where,
        environment=environment,
        merge_output=True,
        kill_strays=False,
    )
    if ended.status is None:
        return CompilerOutput(-9, f"not done after {seconds:g} s")
    return CompilerOutput(ended.status, ended.stdout.decode(errors="replace"))


def kept_flags(words: list[str]) -> tuple[str, ...]:
    """Return the flags of a compiler's command line that decide what a file means.

    >>> kept_flags(["-O2", "-I", "lib", "-DN=1", "-flto", "-c", "a.c", "-o", "a.o", "-lm"])
    ('-I', 'lib', '-DN=1')
    """
    kept: list[str] = []
    left = iter(words)
    for word in left:
        if word in _FLAGS_WITH_ARGUMENT:
            kept += [word, next(left, "")]
        elif word in ("-o", "-MF", "-MT", "-MQ", "-x", "-T", "-L", "-l"):
            next(left, "")
        elif word.startswith(_KEPT_FLAGS) and not word.startswith(_DROPPED_FLAGS):
            kept.append(word)
    return tuple(kept)


def _write_wrappers(directory: Path) -> None:
    """Write a wrapper for each C compiler on PATH."""
    seen: set[str] = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            real = os.path.join(os.path.abspath(folder), name)
            if name not in seen and _COMPILERS.fullmatch(name) and os.access(real, os.X_OK):
                seen.add(name)
                script = directory / name
                script.write_text(_WRAPPER.format(compiler=shlex.quote(real)))
                script.chmod(0o755)
    if not seen:
        raise UserError(
            "mutants of C programs are compiled, and there is no gcc: apt-get install gcc"
        )


# The cache of what mutants compile to. If it cannot be read or written, that is not an error: the
# work is done again.

MOST = 64 << 20
"""The size limit of the cache in bytes; the files that were used least recently are removed."""


class Cache:
    """Texts by key, for one version of one file of a program."""

    def __init__(self, name: str) -> None:
        self._path = cache_directory("c-mutants", f"{name}.json")
        self._texts: dict[str, str] = {}
        self._new = False
        with contextlib.suppress(OSError, ValueError):
            texts = json.loads(self._path.read_text()) if is_usable(self._path) else None
            if isinstance(texts, dict):
                self._texts = texts
            os.utime(self._path)

    def get(self, key: str) -> str | None:
        """Return the text of a key, if there is one."""
        return self._texts.get(key)

    def put(self, key: str, text: str) -> None:
        """Set the text of a key; it is not on disk before `save`."""
        self._texts[key] = text
        self._new = True

    def save(self) -> None:
        """Write the cache to disk atomically."""
        if not self._new:
            return
        with contextlib.suppress(OSError):
            write(self._path, json.dumps(self._texts))
            self._new = False
            _limit_size(self._path.parent, MOST)


def _limit_size(directory: Path, most: int) -> None:
    """Remove the files that were used least recently, until `most` bytes are left."""
    newest_first = sorted(
        (
            (entry.stat().st_mtime, entry.stat().st_size, entry.path)
            for entry in os.scandir(directory)
        ),
        reverse=True,
    )
    total = 0
    for _, size, path in newest_first:
        total += size
        if total > most:
            os.unlink(path)


# The code of mutants. Each mutant is compiled alone, with the build's own flags and -O3, to
# assembler text: that has everything that an object file has, and no trace of where it was made.
# Labels are renumbered in the order in which they appear, because a compiler also counts labels
# that it dropped.

_SECONDS = 120.0
_LABEL = re.compile(r"\.L\w+")
_FILE_NAMES = re.compile(r"^\s*\.(?:file|ident)\b.*$", re.MULTILINE)
NOT_COMPILED = ""
"""The digest of a mutant that does not compile."""
NOT_USED = "not used"
"""The digest of a mutant in a file that the build does not compile."""


class Objects:
    """Digests of the code that the mutants of a file are compiled to, cached between runs."""

    def __init__(self, file: CFile, compiled: CompileCommand, place: Path) -> None:
        self._file = file
        self._compiled = compiled
        self._place = place
        self._cache = Cache(self._key())
        self.original = self._digest(file.raw)
        if self.original == NOT_COMPILED:
            raise UserError(f"{file.source.path}: it does not compile by itself")

    def digests(self, mutants: Sequence[CMutant], workers: int) -> list[str]:
        """Return a hash of each mutant's code; `NOT_COMPILED` for one that does not compile."""
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            digests = list(pool.map(self._cached_digest, mutants))
        self._cache.save()
        return digests

    def _cached_digest(self, c_mutant: CMutant) -> str:
        spot = c_mutant.spot
        key = hashlib.blake2b(
            f"{spot.start}:{spot.end}:{c_mutant.mutant.change}".encode(errors="surrogatepass"),
            digest_size=12,
        ).hexdigest()
        digest = self._cache.get(key)
        if digest is None:
            digest = self._digest(c_mutant.text)
            self._cache.put(key, digest)
        return digest

    def _digest(self, text: bytes) -> str:
        compiled = self._compiled
        name = os.path.basename(self._place)
        handle, path = tempfile.mkstemp(suffix=".c", prefix=".swarmtest-", dir=self._place.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(f"#line 1 {json.dumps(name)}\n".encode() + text)
        words = [compiled.compiler, *compiled.flags, "-w", "-g0", "-O3", "-S", "-o", "-", path]
        try:
            ended = run(words, compiled.directory, _SECONDS)
        finally:
            os.unlink(path)
        return canonical(ended.output) if ended.status == 0 else NOT_COMPILED

    def _key(self) -> str:
        """Return a hash of everything but the mutants that their code depends on, with headers."""
        compiled = self._compiled
        version = run([compiled.compiler, "--version"], compiled.directory, _SECONDS).output
        words = [compiled.compiler, *compiled.flags, "-w", "-E", "-P", str(self._place)]
        text = run(words, compiled.directory, _SECONDS).output
        digest = hashlib.blake2b(digest_size=16)
        for part in (version, repr(compiled.flags), text):
            digest.update(part.encode(errors="surrogatepass") + b"\0")
        digest.update(self._file.raw)
        return digest.hexdigest()


def canonical(assembler: str) -> str:
    """Return a hash of assembler text that does not depend on the names of labels and files.

    >>> one = ".file \\"a.c\\"\\njmp .L2\\n.L2:\\n.L7:\\n"
    >>> canonical(one) == canonical(one.replace("L2", "L3").replace("a.c", "b.c"))
    True
    """
    labels: dict[str, str] = {}
    text = _LABEL.sub(
        lambda match: labels.setdefault(match[0], f".L{len(labels)}"),
        _FILE_NAMES.sub("", assembler),
    )
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
