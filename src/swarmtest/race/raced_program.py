"""The program of a race: a function, pytest test or script, and which of its code is watched."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.coverage.kinds import CONCURRENT_KINDS, KINDS
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import Scope, parse_scope
from swarmtest.languages.user_objects import split_reference

REFERENCE = "race "
"""The prefix of a subject reference that names a program with threads."""
MODES = ("control", "noise")
SECONDS = 5.0
"""The default time limit of one run."""


@dataclass(frozen=True)
class RacedProgram:
    """A program with threads, as a user names it.

    >>> _ = Path("shop.py").write_text("def sell_out(): pass")
    >>> raced = RacedProgram.parse("race --cover shop shop.py::sell_out")
    >>> raced.path, raced.name, raced.cover
    ('shop.py', 'sell_out', ('shop',))
    >>> str(raced)
    'race --cover shop shop.py::sell_out'
    """

    path: str
    """A file, or the name of a module."""
    name: str = ""
    """The function or test in it; empty if the file is a script."""
    cover: tuple[str, ...] = ()
    """The modules, packages or paths that get probes; if empty, the code next to the file."""
    modes: tuple[str, ...] = MODES
    """How threads may be run: under control, freely with noise, or both."""
    isolated: bool = False
    """Whether each run has a process of its own."""
    coverage: tuple[str, ...] = ()
    """The kinds of concurrency coverage to record: ``shared``, ``pair``, ``sync``."""
    seconds: float = SECONDS
    """The time limit of one run."""

    @classmethod
    def of(cls, text: str, cover: tuple[str, ...] = (), **options: object) -> RacedProgram:
        """Return the program of ``FILE.py``, ``FILE.py::NAME`` or ``MODULE:NAME``."""
        path, name = split_reference(text)
        if not path.endswith(".py"):
            if Path(path).exists():
                raise UserError(
                    f"{path}: a script or test is a Python file (.py); any other program "
                    f"is named after --: swarmtest race -- {path}"
                )
            if not name:
                raise UserError(
                    f"{path}: name a function of the module, like {path}:main, or a file (.py)"
                )
        elif not Path(path).is_file():
            raise UserError(f"{path}: no such file")
        return cls(path, name, cover, **options)  # type: ignore[arg-type]

    @classmethod
    def parse(cls, text: str) -> RacedProgram:
        """Return the program of a reference that `str` wrote."""
        words = shlex.split(text.removeprefix(REFERENCE))
        cover: list[str] = []
        modes: tuple[str, ...] = MODES
        isolated, seconds = False, SECONDS
        coverage: tuple[str, ...] = ()
        while words and words[0].startswith("--"):
            option = words.pop(0)
            if option == "--cover" and words:
                cover.append(words.pop(0))
            elif option in ("--control", "--noise"):
                modes = (option.removeprefix("--"),)
            elif option == "--isolated":
                isolated = True
            elif option == "--coverage" and words:
                coverage = parse_kinds(words.pop(0))
            elif option == "--timeout" and words:
                seconds = _parse_seconds(words.pop(0))
            else:
                raise UserError(f"{text!r}: no option {option} of a program with threads")
        if len(words) != 1:
            raise UserError(f"{text!r}: a program with threads is named race PATH[::NAME]")
        return cls.of(
            words[0],
            tuple(cover),
            modes=modes,
            isolated=isolated,
            coverage=coverage,
            seconds=seconds,
        )

    def __str__(self) -> str:
        words = ["race"]
        for name in self.cover:
            words += ["--cover", name]
        if self.modes != MODES:
            words += [f"--{mode}" for mode in self.modes]
        if self.isolated:
            words.append("--isolated")
        if self.coverage:
            words += ["--coverage", ",".join(self.coverage)]
        if self.seconds != SECONDS:
            words += ["--timeout", f"{self.seconds:g}"]
        return shlex.join([*words, self.reference])

    @property
    def reference(self) -> str:
        """The file or module, with the name in it."""
        mark = "::" if self.path.endswith(".py") else ":"
        return f"{self.path}{mark}{self.name}" if self.name else self.path

    @property
    def kind(self) -> str:
        """``script``, ``test`` (of pytest) or ``function``."""
        if not self.name:
            return "test" if _is_test_file(self.path) else "script"
        last = self.name.rpartition("::")[2]
        is_test = last.startswith("test") or "::" in self.name or "[" in self.name
        return "test" if is_test and self.path.endswith(".py") else "function"

    def watching(self, kinds: tuple[str, ...]) -> CoverageOptions:
        """Return options that take code coverage of the modules that get probes."""
        if self.path.endswith(".py"):
            beside = str(Path(self.path).resolve().parent)
            return CoverageOptions(kinds, self.cover, beside=beside)
        return CoverageOptions(kinds, self.cover, package=self.path.partition(".")[0])

    def scope(self) -> Scope:
        """Return the scope of the modules that get probes."""
        if self.path.endswith(".py"):
            beside = str(Path(self.path).resolve().parent)
            return parse_scope(self.cover, beside, check_names=True)
        return parse_scope(self.cover, package=self.path.partition(".")[0], check_names=True)


def parse_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of concurrency coverage that a user wrote.

    >>> parse_kinds("pair, sync")
    ('pair', 'sync')
    """
    kinds = tuple(word.strip() for word in text.split(","))
    for kind in kinds:
        if kind not in CONCURRENT_KINDS:
            raise UserError(
                f"--coverage {text}: no kind {kind!r}{did_you_mean(kind, CONCURRENT_KINDS)}"
            )
    return kinds


def split_kinds(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the requested kinds of coverage into those of code and those of concurrency.

    >>> split_kinds("pair,line,sync")
    (('line',), ('pair', 'sync'))
    """
    kinds = [word.strip() for word in text.split(",") if word.strip()]
    known = (*KINDS, *CONCURRENT_KINDS)
    for kind in kinds:
        if kind not in known:
            raise UserError(f"--coverage {text}: no kind {kind!r}{did_you_mean(kind, known)}")
    if not kinds:
        raise UserError(f"--coverage needs a kind: {', '.join(known)}")
    return tuple(k for k in KINDS if k in kinds), tuple(k for k in kinds if k in CONCURRENT_KINDS)


def _parse_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"--timeout {text}: not a number of seconds") from None


def _is_test_file(path: str) -> bool:
    name = Path(path).name
    return name.startswith("test_") or name.endswith("_test.py")
