"""Run the script of each trophy with its release, with limits, and say whether the bug is there.

    python trophies/check.py             all of them
    python trophies/check.py bag json    those whose path contains one of the words
    python trophies/check.py --library   only those of the standard library; nothing is installed

The releases that the scripts name are installed by one pip call, into swarmtest's cache. Each
script then runs in a fork. While the bug is there, it fails, crashes or does not end.
The exit status is 1 if one passed or could not be imported, and 2 if the releases could not be
installed. A bug of the standard library is looked for in the Python that runs this. One that is
newer than the Python of the script may have the fix: that is said, and counted apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import resource
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.processes.caches import cache_directory, make_private
from swarmtest.processes.commands import capture
from swarmtest.processes.fork import NoAnswer, in_fork

PLACE = Path(__file__).resolve().parent
CPU_SECONDS = 1
"""A script that does not end is ended after this; the others take a tenth of it."""
SECONDS = 60.0
MEMORY = 1 << 30
INSTALL_SECONDS = 900.0
PASSED = "passed"
NOT_IMPORTED = "cannot be imported"


@dataclass(frozen=True)
class Trophy:
    """A bug: the script that shows it, and what its first lines say."""

    script: Path
    bug: str
    release: str
    hunt: str
    fault: str
    oracle: str
    known: str

    @property
    def name(self) -> str:
        """Return the folder and the name of the script."""
        return f"{self.script.parent.name}/{self.script.stem}"

    @property
    def in_library(self) -> bool:
        """Return whether it is a bug of Python's own library."""
        return self.release.startswith("Python ")

    @property
    def may_be_fixed_here(self) -> bool:
        """Return whether it is a bug of a Python that is older than this one."""
        numbers = self.release.removeprefix("Python ").split(".")
        return self.in_library and sys.version_info[:3] > tuple(map(int, numbers))


def trophies(words: Sequence[str] = ()) -> list[Trophy]:
    """Return the trophies whose path contains one of the words."""
    scripts = [path for path in sorted(PLACE.glob("*/*.py")) if path.name != "hunt.py"]
    found = [trophy_of(script) for script in scripts]
    return [each for each in found if not words or any(word in each.name for word in words)]


def trophy_of(script: Path) -> Trophy:
    """Read the first lines of a script."""
    text = script.read_text()
    bug = text.removeprefix("r").removeprefix('"""').partition(".\n")[0]
    fields = dict(re.findall(r"^(Release|Hunt|Fault|Oracle|Known): (.+)$", text, re.MULTILINE))
    values = [fields[name] for name in ("Release", "Hunt", "Fault", "Oracle", "Known")]
    return Trophy(script, bug, *values)


def installed_together(releases: Sequence[str]) -> Path:
    """Return a directory with all these releases; install what is not there by one pip call."""
    wanted = sorted(set(releases))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]
    directory = cache_directory("releases", version, f"trophies-{digest}")
    if (directory / ".complete").exists() or not wanted:
        return directory
    unsafe = make_private(directory)
    if unsafe:
        sys.exit(f"cannot install releases below {directory}: {unsafe}")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--no-compile", "--upgrade", "--target", str(directory), *wanted]
    ended = capture(words, INSTALL_SECONDS)
    if ended.status != 0:
        print(ended.stderr.decode(errors="replace"), file=sys.stderr)
        print("cannot check: pip could not install the releases", file=sys.stderr)
        raise SystemExit(2)
    (directory / ".complete").touch()
    return directory


def checked(trophy: Trophy, packages: Path) -> str:
    """Return `passed`, that an import failed, or what ended a script: exception, signal, limit."""

    def run() -> str:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.path.insert(0, str(packages))
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
            try:
                runpy.run_path(str(trophy.script), run_name="__main__")
            except ImportError as error:
                return f"{NOT_IMPORTED}: {error}"
            except Exception as error:
                return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return PASSED

    try:
        return in_fork(run, SECONDS)
    except NoAnswer as end:
        return str(end)


def main() -> int:
    """Check the scripts."""
    words = [word for word in sys.argv[1:] if word != "--library"]
    chosen = trophies(words)
    if "--library" in sys.argv:
        chosen = [trophy for trophy in chosen if trophy.in_library]
    packages = installed_together([each.release for each in chosen if not each.in_library])
    passed = fixed = 0
    for trophy in chosen:
        end = checked(trophy, packages)
        if end == PASSED and trophy.may_be_fixed_here:
            end = f"fixed in Python {sys.version.partition(' ')[0]}"
            fixed += 1
        passed += end == PASSED or end.startswith(NOT_IMPORTED)
        print(f"{trophy.name:46} {trophy.release:28} {end[:60]}", flush=True)
    print(f"{len(chosen) - passed - fixed} of {len(chosen)} bugs are there, {fixed} are fixed here")
    return 1 if passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
