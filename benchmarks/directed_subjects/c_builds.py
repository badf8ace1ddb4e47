"""C programs from Debian's source packages, built with coverage once and kept."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from native_subjects import Unavailable, debian_source

WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "directed"
FLAGS = ("-g", "-O1", "-w", "-std=gnu99")
CMARK_CONFIG = """\
#define HAVE_STDBOOL_H
#include <stdbool.h>
#define HAVE___BUILTIN_EXPECT
#define HAVE___ATTRIBUTE__
#define CMARK_ATTRIBUTE(list) __attribute__ (list)
#define CMARK_INLINE inline
"""
CMARK_VERSION = '#define CMARK_VERSION 0\n#define CMARK_VERSION_STRING "benchmark"\n'
CMARK_EXPORT = "#define CMARK_EXPORT\n#define CMARK_NO_EXPORT\n"


@dataclass(frozen=True)
class Recipe:
    """How a program is compiled from a source package."""

    package: str
    prepare: Callable[[Path], tuple[Path, list[str]]]
    """Write what the project's own build would generate; directory and files to compile."""
    flags: tuple[str, ...] = ()


def _lua(source: Path) -> tuple[Path, list[str]]:
    """Compile it as Debian does, less what needs readline."""
    directory = source / "src"
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True)
    header = directory / "lua5.4-deb-multiarch.h"
    header.write_text(f'#define DEB_HOST_MULTIARCH "{machine.stdout.strip()}"\n')
    return directory, sorted(path.name for path in directory.glob("*.c") if path.name != "luac.c")


def _mujs(source: Path) -> tuple[Path, list[str]]:
    return source, ["one.c", "main.c"]


def _cmark(source: Path) -> tuple[Path, list[str]]:
    directory = source / "src"
    (directory / "config.h").write_text(CMARK_CONFIG)
    (directory / "cmark_version.h").write_text(CMARK_VERSION)
    (directory / "cmark_export.h").write_text(CMARK_EXPORT)
    return directory, sorted(path.name for path in directory.glob("*.c"))


RECIPES = {
    # Hash seeds would otherwise differ from run to run, and with them the order of `pairs`.
    "lua": Recipe(
        "lua5.4",
        _lua,
        ("-DLUA_COMPAT_5_3", "-DLUA_USE_POSIX", "-Dluai_makeseed(L)=0x5eed"),
    ),
    "mujs": Recipe("mujs", _mujs),
    "cmark": Recipe("cmark", _cmark, ("-I.",)),
}


def built(name: str, work: Path = WORK) -> Path:
    """The program; built first if there is none."""
    program = work / name
    work.mkdir(parents=True, exist_ok=True)
    with (work / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of a benchmark may come at once
        if not program.exists():
            if not shutil.which("gcc"):
                raise Unavailable("no gcc here: apt-get install gcc")
            _build(RECIPES[name], work, program)
    return program


def _build(recipe: Recipe, work: Path, program: Path) -> None:
    directory, files = recipe.prepare(debian_source(recipe.package, work))
    fresh = program.with_suffix(".new")
    command = [sys.executable, "-m", "swarmtest", "cc", "gcc", *FLAGS, *recipe.flags, "-o"]
    words = [*command, str(fresh), *files, "-lm"]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        errors = done.stderr.strip().splitlines() or ["no message"]
        reason = next((line for line in errors if "error" in line), errors[-1])
        raise Unavailable(f"building {recipe.package} failed: {reason}")
    fresh.rename(program)
