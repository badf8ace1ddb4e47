"""Running a build, and learning from it how each C file is compiled.

A directory of stand-ins goes before all others on PATH: a compiler that is called by its name is
first noted down, then run. No warnings: a mutant may do what nobody would write, and a build may
take warnings for errors.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from swarmtest.errors import UserError

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
    process = subprocess.Popen(
        words,
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return Ended(-9, f"not done after {seconds:g} s")
    return Ended(process.returncode, output.decode(errors="replace"))


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
