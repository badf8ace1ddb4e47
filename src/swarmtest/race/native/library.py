"""The library that is preloaded into native programs: its name, settings, build and memory.

The library describes a program's threads in shared memory, whose layout is declared in
runtime/threads.h. The memory has no name; a program opens it through this process's entry in /proc.
It outlives the program, so it is complete even if a run crashed or was killed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.core.errors import UserError
from swarmtest.processes.caches import built_file, cache_directory
from swarmtest.race.noise_settings import HEURISTICS, KINDS, NoiseSettings

# Checking whether the library can be loaded into a program, from its ELF file.

_SANITIZER = re.compile(rb"libtsan\.so\.\d+(?=\0)")
_PT_INTERP = 3
_CAPABILITY_ATTRIBUTE = "security.capability"
_ELF_MAGIC = b"\x7fELF"


def library_name(program: str) -> str:
    """Return the name that the library needs for a program; raise if it cannot be loaded.

    >>> library_name("/bin/sh")
    'libswarmtest-threads.so'
    """
    data = Path(program).read_bytes()
    if not data.startswith(_ELF_MAGIC):
        return PLAIN  # a script: its interpreter passes the library on
    own = Path("/proc/self/exe").read_bytes()[:64]
    if data[4:6] != own[4:6] or data[18:20] != own[18:20]:
        raise UserError(
            f"{program} was built for another machine than this Python: the library for threads "
            "cannot be loaded into it"
        )
    if not _has_interpreter(data):
        raise UserError(
            f"{program} is statically linked, so no library can be loaded before its own: link it "
            "without -static"
        )
    _check_privileges(program)
    sanitizer = _SANITIZER.search(data)
    if sanitizer:
        return sanitizer[0].decode()
    if b"__tsan_init" in data:
        raise UserError(
            f"{program} has ThreadSanitizer's runtime linked in, which ours cannot replace: link "
            "with gcc -fsanitize=thread and without -static-libtsan (objects of clang too)"
        )
    return PLAIN


def _has_interpreter(data: bytes) -> bool:
    """Return whether the program asks for a dynamic loader."""
    order = "<" if data[5] == 1 else ">"
    if data[4] == 2:
        (start,) = struct.unpack_from(f"{order}Q", data, 32)
        size, count = struct.unpack_from(f"{order}HH", data, 54)
    else:
        (start,) = struct.unpack_from(f"{order}I", data, 28)
        size, count = struct.unpack_from(f"{order}HH", data, 42)
    kinds = (struct.unpack_from(f"{order}I", data, start + i * size)[0] for i in range(count))
    return _PT_INTERP in kinds


def _attributes(program: str) -> list[str]:
    try:
        return os.listxattr(program)
    except OSError:  # not every file system has them
        return []


def _check_privileges(program: str) -> None:
    status = os.stat(program)
    other_user = status.st_mode & stat.S_ISUID and status.st_uid != os.getuid()
    other_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getgid()
    if other_user or other_group or _CAPABILITY_ATTRIBUTE in _attributes(program):
        raise UserError(
            f"{program} runs with rights of its own (setuid, setgid or capabilities), so the "
            "system loads no library of ours into it: test a copy without them"
        )


# The settings of noise, as the library reads them.


def noise_text(settings: NoiseSettings, seed: int) -> str:
    """Return the text that the library reads: seed, frequency, strength, kinds, heuristics.

    >>> noise_text(NoiseSettings(500, "sleep", 20), seed=7)
    '7 500 20 2 0'
    """
    kinds = _bits(settings.kinds, KINDS)
    heuristics = _bits(settings.heuristics, HEURISTICS)
    return f"{seed % 2**64} {settings.frequency} {settings.strength} {kinds} {heuristics}"


def _bits(names: Sequence[str], known: Mapping[str, str]) -> int:
    return sum(1 << number for number, name in enumerate(known) if name in names)


# Building the library, once per compiler; it is kept in the cache.

RUNTIME = Path(__file__).with_name("runtime")
PLAIN = "libswarmtest-threads.so"
"""The library's name for programs that were not built with ``-fsanitize=thread``."""
_FLAGS = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-std=gnu11")


def library(name: str = PLAIN, compiler: str = "") -> Path:
    """Return the library under a name; named like ThreadSanitizer's own, it replaces that one.

    `compiler` is gcc, clang or a compiler that takes their options; default: $CC, else the first on
    the PATH.
    """
    words = _compiler(compiler)
    hooks = [] if name == PLAIN else ["-DACCESSES"]
    source = str(RUNTIME / "library.c")
    recipe = [*words, *_FLAGS, *hooks, f"-Wl,-soname,{name}", source, "-ldl", "-lpthread"]
    texts = [file.read_text() for file in sorted(RUNTIME.iterdir())]
    key = "\0".join([*recipe, _version(words), *texts])
    cache = cache_directory("threads", hashlib.blake2b(key.encode(), digest_size=12).hexdigest())
    file = cache / name
    if " " in str(file) or ":" in str(file):
        raise UserError(
            f"{cache} has a space or a colon in its path, which LD_PRELOAD cannot name: set "
            "XDG_CACHE_HOME to another directory"
        )
    try:
        return built_file(file, functools.partial(_build, recipe))
    except OSError as error:
        raise UserError(
            f"cannot make {file.parent} for the library ({error.strerror}): set XDG_CACHE_HOME"
        ) from None


def _compiler(preferred: str) -> list[str]:
    chosen = preferred or os.environ.get("CC", "")
    if chosen:
        if not shutil.which(chosen.split()[0]):
            raise UserError(f"no compiler {chosen!r} on the PATH: install it, or name another")
        return chosen.split()
    for name in ("gcc", "cc", "clang"):
        if shutil.which(name):
            return [name]
    raise UserError(
        "threads of native programs need a C compiler to build a small library: install gcc or "
        "clang, or name one in CC"
    )


def _version(words: list[str]) -> str:
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, errors="replace")
    return done.stdout


def _build(recipe: list[str], file: str) -> None:
    done = subprocess.run([*recipe, "-o", file], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise UserError(f"{recipe[0]} cannot build the library for threads: {reason}")


# The shared memory.

HEADER_SIZE = 4096
_HEADER = np.dtype(
    [
        ("layout", "<u4"),
        ("processes", "<u4"),
        ("threads", "<u4"),
        ("no_room", "<u4"),
        ("accesses", "<u4"),
        ("pairs", "<u4"),
    ]
)
_MODULE = np.dtype([("state", "<u4"), ("reserved", "<u4", 3), ("path", "S496")])
_HELD = np.dtype([("object", "<u8"), ("site", "<u4"), ("reserved", "<u4")])
_THREAD = np.dtype(
    [
        ("state", "<u4"),
        ("process", "<u4"),
        ("number", "<u4"),
        ("children", "<u4"),
        ("handle", "<u8"),
        ("random", "<u8"),
        ("probes", "<u8"),
        ("noises", "<u8"),
        ("digest", "<u8"),
        ("stack", "<u8", 2),
        ("wait_object", "<u8"),
        ("wait_operation", "<u4"),
        ("wait_site", "<u4"),
        ("wait_ends", "<u4"),
        ("wait_thread", "<u4"),
        ("held_count", "<u4"),
        ("joined", "<u4"),
        ("held", _HELD, 16),
        ("name", "S64"),
    ]
)
_SITE = np.dtype([("key", "<u8"), ("operation", "<u4"), ("flags", "<u4")])
_MODULES, _THREADS, _SITES, _PAIRS = 256, 4096, 1 << 16, 1 << 18
_MODULES_AT = HEADER_SIZE
_THREADS_AT = _MODULES_AT + _MODULES * _MODULE.itemsize
_SITES_AT = _THREADS_AT + _THREADS * _THREAD.itemsize
_PAIRS_AT = _SITES_AT + _SITES * _SITE.itemsize
_PAIR_LIST_AT = _PAIRS_AT + _PAIRS * 8
SIZE = _PAIR_LIST_AT + _PAIRS * 8

RUNS = 2
ENDED = 3
VISITED, BLOCKED, BLOCKING, SHARED, PREDECESSOR, KNOWN_SHARED, KNOWN_PREDECESSOR = (
    1 << bit for bit in range(7)
)
OPERATIONS = (
    "",
    *("lock", "trylock", "timed lock", "unlock"),
    *("read lock", "write lock", "read-write unlock"),
    *("spin lock", "spin unlock"),
    *("condition wait", "timed condition wait", "signal", "broadcast"),
    *("semaphore wait", "semaphore post"),
    *("barrier", "thread create", "join", "sleep", "thread start"),
    *("read", "write", "atomic"),
)
"""The operations of sites, in the order of the C source."""
LOCKS = frozenset({"lock", "timed lock", "read lock", "write lock", "spin lock"})
ACCESSES = frozenset({"read", "write", "atomic"})

_NO_ROOM = ("modules", "threads", "sites", "pairs of sites")

Table = npt.NDArray[np.void]


class MemorySnapshot(NamedTuple):
    """The contents of the memory at one moment."""

    processes: int
    accesses: bool
    """Whether the program calls the hooks of ``-fsanitize=thread``."""
    no_room: tuple[str, ...]
    """The tables that were too small, so that some entries are missing."""
    threads: Table


class KnownSites(NamedTuple):
    """The sites that earlier runs found shared, or followed by another thread, for later runs."""

    modules: bytes
    sites: bytes


class ThreadMemory:
    """The memory of one run.

    >>> memory = ThreadMemory()
    >>> memory.snapshot().processes, len(memory.pairs())
    (0, 0)
    >>> memory.close()
    """

    def __init__(self, known: KnownSites | None = None) -> None:
        self._file = os.memfd_create("swarmtest-threads")
        os.ftruncate(self._file, SIZE)
        if known is not None:
            os.pwrite(self._file, known.modules, _MODULES_AT)
            os.pwrite(self._file, known.sites, _SITES_AT)

    @property
    def path(self) -> str:
        """The path at which a program finds it while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def snapshot(self) -> MemorySnapshot:
        """Return the threads, and what else can be read at any time."""
        header = self._header()
        count = min(int(header["threads"]), _THREADS)
        threads = os.pread(self._file, count * _THREAD.itemsize, _THREADS_AT)
        missing = tuple(
            name for bit, name in enumerate(_NO_ROOM) if int(header["no_room"]) >> bit & 1
        )
        return MemorySnapshot(
            int(header["processes"]),
            bool(header["accesses"]),
            missing,
            np.frombuffer(threads, _THREAD),
        )

    def modules(self) -> list[str]:
        """Return the paths of the loaded modules, by number."""
        rows = np.frombuffer(self._modules(), _MODULE)
        return [row["path"].decode(errors="replace") for row in rows if row["state"]]

    def sites(self) -> Table:
        """Return the whole table of sites; those in use have a key."""
        return np.frombuffer(self._sites(), _SITE)

    def pairs(self) -> npt.NDArray[np.uint64]:
        """Return pairs of sites: first, second (24 bits each), and whether the thread changed."""
        count = int(self._header()["pairs"])
        pairs = np.frombuffer(os.pread(self._file, count * 8, _PAIR_LIST_AT), "<u8")
        return pairs[pairs > 0]  # a thread that was killed may not have written the last

    def knowledge(self) -> KnownSites:
        """Return what later runs may know from this run and those before it."""
        sites = self.sites().copy()
        flags = sites["flags"]
        shared = (flags & (SHARED | KNOWN_SHARED)) > 0
        followed = (flags & (PREDECESSOR | KNOWN_PREDECESSOR)) > 0
        sites["flags"] = shared * KNOWN_SHARED + followed * KNOWN_PREDECESSOR
        return KnownSites(self._modules(), sites.tobytes())

    def _header(self) -> np.void:
        header: np.void = np.frombuffer(os.pread(self._file, _HEADER.itemsize, 0), _HEADER)[0]
        return header

    def _modules(self) -> bytes:
        return os.pread(self._file, _MODULES * _MODULE.itemsize, _MODULES_AT)

    def _sites(self) -> bytes:
        return os.pread(self._file, _SITES * _SITE.itemsize, _SITES_AT)

    def close(self) -> None:
        """Release the memory."""
        os.close(self._file)
