"""Running a build, and learning from it how each C file is compiled.

A directory of stand-ins goes before all others on PATH: a compiler that is called by its name is
first noted down, then run. No warnings: a mutant may do what nobody would write, and a build may
take warnings for errors.
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
from swarmtest.processes.commands import capture

_COMPILERS = re.compile(r"(?:[\w-]+-)?(?:gcc|cc|clang|c89|c99|tcc)(?:-[\d.]+)?")
_STAND_IN = """\
#!/bin/sh
printf '%s\\0' "$PWD" {compiler} "$@" > "$SWARMTEST_COMPILED/$$"
exec {compiler} "$@" -w
"""
_SEPARATE = frozenset(
    {"-D", "-U", "-I", "-include", "-imacros", "-isystem", "-iquote", "-idirafter"}
)
_KEPT = ("-D", "-U", "-I", "-f", "-m", "-std=", "-include", "-i", "-pthread", "-ansi", "-trad")
_NOT_KEPT = ("-flto", "-fprofile", "-ftest-coverage", "-fsanitize", "-fdiagnostics", "-fplugin")
_ERROR = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)

_TELLING = re.compile(r"\berror: |\bundefined reference\b|\*\*\* |: not found$")


@dataclass(frozen=True)
class Compiled:
    """How a file is compiled."""

    compiler: str
    flags: tuple[str, ...]
    """Those that decide what it means: not optimisation, nor what is made of it."""
    directory: Path
    path: str
    """The file, as the compiler is told."""


@dataclass(frozen=True)
class Ended:
    """How a build ended."""

    status: int
    output: str

    @property
    def first_error(self) -> str:
        """The line that says most: the first that speaks of an error, or else the last."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        telling = [line for line in lines if _TELLING.search(line)]
        return (telling or lines[-1:] or [f"exit status {self.status}"])[0]

    def error_lines(self, name: str) -> set[int]:
        """The lines of a file of this name that a compiler complained about."""
        return {
            int(line) for path, line, _ in _ERROR.findall(self.output) if Path(path).name == name
        }


class Builder:
    """Runs a build command in copies of a program's directory."""

    def __init__(self, command: str, seconds: float, directory: Path) -> None:
        self._command = command
        self._seconds = seconds
        self._stand_ins = directory / "compilers"
        self._notes = directory / "compiled"
        self._stand_ins.mkdir()
        self._notes.mkdir()
        _write_stand_ins(self._stand_ins)

    def build(self, where: Path) -> Ended:
        """Build in a directory."""
        environment = {
            **os.environ,
            "PATH": f"{self._stand_ins}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "SWARMTEST_COMPILED": str(self._notes),
            "LC_ALL": "C",
        }
        return run(["sh", "-c", self._command], where, self._seconds, environment)

    def compiled(self, files: list[Path]) -> dict[Path, Compiled]:
        """How files were compiled, of those that were."""
        found: dict[Path, Compiled] = {}
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
                        found[path] = Compiled(compiler, flags, Path(directory), word)
        return found


def run(
    words: list[str], where: Path, seconds: float, environment: dict[str, str] | None = None
) -> Ended:
    """Run a command to its end; what it prints is kept together."""
    ended = capture(
        words,
        seconds,
        directory=where,
        environment=environment,
        merge_output=True,
        kill_strays=False,
    )
    if ended.status is None:
        return Ended(-9, f"not done after {seconds:g} s")
    return Ended(ended.status, ended.stdout.decode(errors="replace"))


def kept_flags(words: list[str]) -> tuple[str, ...]:
    """The flags of a compiler's command that decide what a file means.

    >>> kept_flags(["-O2", "-I", "lib", "-DN=1", "-flto", "-c", "a.c", "-o", "a.o", "-lm"])
    ('-I', 'lib', '-DN=1')
    """
    kept: list[str] = []
    left = iter(words)
    for word in left:
        if word in _SEPARATE:
            kept += [word, next(left, "")]
        elif word in ("-o", "-MF", "-MT", "-MQ", "-x", "-T", "-L", "-l"):
            next(left, "")
        elif word.startswith(_KEPT) and not word.startswith(_NOT_KEPT):
            kept.append(word)
    return tuple(kept)


def _write_stand_ins(directory: Path) -> None:
    seen: set[str] = set()
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            real = os.path.join(os.path.abspath(place), name)
            if name not in seen and _COMPILERS.fullmatch(name) and os.access(real, os.X_OK):
                seen.add(name)
                script = directory / name
                script.write_text(_STAND_IN.format(compiler=shlex.quote(real)))
                script.chmod(0o755)
    if not seen:
        raise UserError(
            "mutants of C programs are compiled, and there is no gcc: apt-get install gcc"
        )


# -------------------------------------------------------------------------------------------------
# What mutants compile to, kept on disk between runs.
#
# A cache that cannot be read or written is no error: the work is done again.

MOST = 64 << 20
"""Bytes; beyond that, what was not used for longest is removed."""


def cache_directory() -> Path:
    """Where it is: below ``XDG_CACHE_HOME``, or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "swarmtest", "c-mutants")


class Cache:
    """Texts by key, of one file of a program in one version."""

    def __init__(self, name: str) -> None:
        self._path = cache_directory() / f"{name}.json"
        self._found: dict[str, str] = {}
        self._new = False
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._path.read_text())
            if isinstance(found, dict):
                self._found = found
            os.utime(self._path)

    def get(self, key: str) -> str | None:
        """What was kept."""
        return self._found.get(key)

    def put(self, key: str, text: str) -> None:
        """Keep something, until `save` for this run only."""
        self._found[key] = text
        self._new = True

    def save(self) -> None:
        """Write it; another process never sees half of it."""
        if not self._new:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(handle, "w") as file:
                json.dump(self._found, file)
            os.replace(temporary, self._path)
            self._new = False
            _bound(self._path.parent, MOST)


def _bound(directory: Path, most: int) -> None:
    newest_first = sorted(
        ((one.stat().st_mtime, one.stat().st_size, one.path) for one in os.scandir(directory)),
        reverse=True,
    )
    total = 0
    for _, size, path in newest_first:
        total += size
        if total > most:
            os.unlink(path)


# -------------------------------------------------------------------------------------------------
# Mutants that optimisation makes equal to the program, or to each other (dissertation, 3.5.1.2).
#
# Each is compiled alone, with the build's own flags and -O3, to assembler text: it has everything
# that an object file has, and nothing of where it was made. Labels are numbered by the order in
# which
# they appear, because a compiler also counts those that it threw away.

_SECONDS = 120.0
_LABEL = re.compile(r"\.L\w+")
_NAMES = re.compile(r"^\s*\.(?:file|ident)\b.*$", re.MULTILINE)
NOT_COMPILED = ""
"""Stands for the code of what does not compile."""
NOT_USED = "not used"
"""Stands for the code of a file that the build leaves out."""


class Objects:
    """The code that mutants of a file are compiled to, remembered between runs."""

    def __init__(self, file: CFile, compiled: Compiled, place: Path) -> None:
        self._file = file
        self._compiled = compiled
        self._place = place
        self._cache = Cache(self._key())
        self.original = self._digest(file.raw)
        if self.original == NOT_COMPILED:
            raise UserError(f"{file.source.path}: it does not compile by itself")

    def digests(self, mutants: Sequence[CMutant], workers: int) -> list[str]:
        """A hash of each mutant's code; `NOT_COMPILED` for one that does not compile."""
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            found = list(pool.map(self._known, mutants))
        self._cache.save()
        return found

    def _known(self, one: CMutant) -> str:
        spot = one.spot
        key = hashlib.blake2b(
            f"{spot.start}:{spot.end}:{one.mutant.change}".encode(errors="surrogatepass"),
            digest_size=12,
        ).hexdigest()
        found = self._cache.get(key)
        if found is None:
            found = self._digest(one.text)
            self._cache.put(key, found)
        return found

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
        """What the code of mutants depends on, beside the mutants: headers too."""
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
    """A hash of assembler text, whatever its labels and its file are called.

    >>> one = ".file \\"a.c\\"\\njmp .L2\\n.L2:\\n.L7:\\n"
    >>> canonical(one) == canonical(one.replace("L2", "L3").replace("a.c", "b.c"))
    True
    """
    labels: dict[str, str] = {}
    text = _LABEL.sub(
        lambda found: labels.setdefault(found[0], f".L{len(labels)}"), _NAMES.sub("", assembler)
    )
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
