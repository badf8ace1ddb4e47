"""Lua's interpreter from Debian's source package, built with coverage once and kept."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from native_subjects import Unavailable, debian_source

PACKAGE = "lua5.4"
WORK = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "directed"
# Hash seeds would otherwise differ from run to run, and with them the order of `pairs`.
FLAGS = ("-g", "-O1", "-w", "-std=gnu99", "-DLUA_COMPAT_5_3", "-DLUA_USE_POSIX")
SEED = "-Dluai_makeseed(L)=0x5eed"


def built_lua(work: Path = WORK) -> Path:
    """The interpreter; built first if there is none."""
    program = work / "lua"
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of a benchmark may come at once
        if not program.exists():
            if not shutil.which("gcc"):
                raise Unavailable("no gcc here: apt-get install gcc")
            _build(debian_source(PACKAGE, work) / "src", program)
    return program


def _build(source: Path, program: Path) -> None:
    """Compile it as Debian does, less what needs readline."""
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True)
    header = source / "lua5.4-deb-multiarch.h"
    header.write_text(f'#define DEB_HOST_MULTIARCH "{machine.stdout.strip()}"\n')
    files = sorted(path.name for path in source.glob("*.c") if path.name != "luac.c")
    fresh = program.with_suffix(".new")
    command = [sys.executable, "-m", "swarmtest", "cc", "gcc", *FLAGS, SEED, "-o", str(fresh)]
    done = subprocess.run([*command, *files, "-lm"], cwd=source, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"building {PACKAGE} failed: {reason}")
    fresh.rename(program)
