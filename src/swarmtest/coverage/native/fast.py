"""The fast path: a program built with `swarmtest cc` writes its hits into memory shared with us.

The shared memory (laid out in runtime.c) holds a table of the modules that were loaded, a map with
a byte per slot, a list of the slots hit, and for clang's guards where in the code each lies. After
a test the list is read, and only what it names is cleared: both cost in proportion to the hits. The
memory outlives the program, so the hits of a test that crashed or was killed are all there.

The memory has no name: a program opens it through this process's entry in /proc, and it goes away
with the last process that holds it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Hits
from swarmtest.coverage.native.collector import Collected, Lines
from swarmtest.processes.commands import Command, Ended, Output, end_process, watch
from swarmtest.processes.tree import kill_group

# -------------------------------------------------------------------------------------------------
# Where in the source the blocks of a program begin: found once per binary, then read from a cache.
#
# The blocks of a program built by gcc are the calls of our callback, found by a disassembly; clang
# lists them in the program itself, and the runtime passes the list on. Either way `addr2line` says
# the file, line and function of each, without the frames that a block was inlined into. The
# answers
# are kept on disk under the hash of the binary, so that a rebuilt program is looked at anew.

_FORMAT = 1
_CALL = re.compile(r"^\s*([0-9a-f]+):\s.*\b(?:call[ql]?|bl)\s.*<__sanitizer_cov_trace_pc(?:@plt)?>")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s")


class Block(NamedTuple):
    """Where a block begins: an address as linked, and the place in the source that it stands for.

    >>> Block(0x1139, "/home/me/a.c", 12, "main").line
    12
    """

    address: int
    path: str
    line: int
    function: str


def cache_directory(*parts: str) -> Path:
    """Where swarmtest keeps what it can make again; it need not exist.

    >>> cache_directory("symbols").parts[-2:]
    ('swarmtest', 'symbols')
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "swarmtest", *parts)


def blocks_of(binary: str, addresses: Sequence[int] | None) -> list[Block]:
    """The blocks of a binary that have a place in the source.

    `addresses`: of the blocks, where they are known; None: they are the calls of the callback.
    """
    kept = cache_directory("symbols", f"{_identity(binary)}-{_FORMAT}.json")
    try:
        blocks = [Block(*row) for row in json.loads(kept.read_text())]
    except (OSError, ValueError):
        blocks = list(_look_up(binary, addresses))
        if not blocks:
            raise UserError(
                f"{binary} has no debug information: build it with -g and do not strip it"
            ) from None
        _keep(kept, json.dumps(blocks))
    return blocks


def _identity(binary: str) -> str:
    with open(binary, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _keep(path: Path, text: str) -> None:
    # Without a cache the next process looks again: slower, no less right.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)


def _look_up(binary: str, addresses: Sequence[int] | None) -> Iterator[Block]:
    blocks = (
        _blocks_after_calls(binary) if addresses is None else zip(addresses, addresses, strict=True)
    )
    pairs = list(blocks)
    words = "\n".join(f"{code:#x}" for _, code in pairs)
    output = _binutils(["addr2line", "-f", "-C", "-e", binary], words)
    answers = iter(output.splitlines())
    for (address, _), function, place in zip(pairs, answers, answers, strict=True):
        path, _, line = place.partition(" (discriminator")[0].rpartition(":")
        if line.isdigit() and line != "0" and path != "??":
            yield Block(address, os.path.normpath(path), int(line), function)


def _blocks_after_calls(binary: str) -> Iterator[tuple[int, int]]:
    """The address that each call of the callback returns to, and that of the code it stands for.

    They differ for a block that is empty: it has the line of the code that it runs into.
    """
    empty: list[int] = []
    after_call = False
    for text in _binutils(["objdump", "-d", "--no-show-raw-insn", binary]).splitlines():
        found = _INSTRUCTION.match(text)
        if not found:
            continue
        address = int(found[1], 16)
        if after_call:
            empty.append(address)
        after_call = bool(_CALL.match(text))
        if not after_call:
            yield from ((block, address) for block in empty)
            empty.clear()


def _binutils(command: list[str], text: str = "") -> str:
    if not shutil.which(command[0]):
        raise UserError(f"{command[0]} is not on the PATH: install binutils")
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise UserError(f"{command[0]} cannot read {command[-1]}: {done.stderr.strip()}")
    return done.stdout


# -------------------------------------------------------------------------------------------------
# A fork server: the program starts once and forks a process per test, just before `main`.
#
# Start-up (loading, linking, initialising) is then paid once. The server is in the program itself
# (runtime.c): it reads one byte per test from one pipe and answers on another with messages of 16
# bytes: hello, started (process id), ended (wait status, CPU time). It lives and dies with the
# process that started it; one that died is replaced, and the test it died under is run again once.

_MESSAGE = struct.Struct("<iiQ")
_HELLO, _STARTED, _ENDED = range(3)
_START_SECONDS = 10.0


class ServerDied(Exception):
    """The server ended while it was needed."""


class ForkServer:
    """Runs one command again and again, each time in a fork of the process it started once."""

    def __init__(
        self,
        command: Command,
        stdin: int,
        per_process: int,
        on_start: Callable[[], None],
        on_started: Callable[[], None],
    ) -> None:
        self._command = command
        self._stdin = stdin
        self._per_process = per_process
        self._on_start = on_start
        self._on_started = on_started
        self._process: subprocess.Popen[bytes] | None = None
        self._outputs: tuple[Output, ...] = ()
        self._control = self._status = -1

    def run(self, seconds: float) -> Ended:
        """One test."""
        with contextlib.suppress(ServerDied):
            return self._run(seconds)
        self.close()
        try:
            return self._run(seconds)
        except ServerDied:
            self.close()
            program = self._command.arguments[0]
            raise UserError(f"the fork server in {program} dies: use fork_server=False") from None

    def _run(self, seconds: float) -> Ended:
        if self._process is None:
            self._start()
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, b"t")
        pid, _ = self._receive(_STARTED, _START_SECONDS)
        in_time = watch(self._status, self._outputs, seconds)
        if not in_time:
            kill_group(pid)
        status, microseconds = self._receive(_ENDED, _START_SECONDS)
        if os.WIFSTOPPED(status):
            status = 0  # persistent mode: the process waits for its next test
        for output in self._outputs:
            output.drain()
        out, err = (output.take() for output in self._outputs)
        wall = time.monotonic() - began
        return Ended(status, not in_time, out, err, microseconds / 1e6, wall)

    def _start(self) -> None:
        self._on_start()
        self._outputs = (Output(), Output())
        orders, self._control = os.pipe()
        self._status, answers = os.pipe()
        how = f"{orders},{answers},{self._per_process}"
        environment = {**self._command.environment, "SWARMTEST_SERVER": how}
        command = replace(self._command, environment=environment)
        try:
            self._process = command.start(self._stdin, self._outputs, (orders, answers))
        finally:
            os.close(orders)
            os.close(answers)
            for output in self._outputs:
                output.close_write()
        try:
            self._receive(_HELLO, _START_SECONDS)
        except ServerDied:
            self.close()
            wanted = "calls swarmtest_next()" if self._per_process else "is built with swarmtest cc"
            raise UserError(
                f"{command.arguments[0]} did not start as a fork server: see that it {wanted}"
            ) from None
        self._on_started()

    def _receive(self, kind: int, seconds: float) -> tuple[int, int]:
        """The value and CPU time of the next message."""
        if not watch(self._status, self._outputs, seconds):
            raise ServerDied
        data = os.read(self._status, _MESSAGE.size)
        if len(data) != _MESSAGE.size:
            raise ServerDied
        received, value, cpu = _MESSAGE.unpack(data)
        if received != kind:
            raise ServerDied
        return value, cpu

    def abandon(self) -> None:
        """In a forked process: let go of what belongs to the parent, without ending it."""
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
            self._process = None
            os.close(self._control)
            os.close(self._status)
            for output in self._outputs:
                output.close()

    def close(self) -> None:
        """End the server and what it started."""
        process = self._process
        if process is not None:
            end_process(process)
        self.abandon()


# -------------------------------------------------------------------------------------------------

_MARKER = b"swarmtest native runtime 1"
_HEADER = 1 << 16
_LEAST_SLOTS = 1 << 20
_REMEMBERED = 4096
_SLOTS, _HITS, _ATTACHED, _NEXT, _NO_ROOM = range(5)
_READY = 2
_GUARDS = 2
_MODULES = 64
_MODULE = np.dtype(
    [
        ("state", "<u4"),
        ("kind", "<u4"),
        ("first", "<u4"),
        ("count", "<u4"),
        ("text", "<u8"),
        ("reserved", "<u8"),
        ("path", "S480"),
    ]
)

Slots = npt.NDArray[np.uint32]


class SharedMap:
    """The shared memory, seen from this side.

    >>> shared = SharedMap(slots=1 << 20)
    >>> shared.take().tolist()
    []
    >>> shared.close()
    """

    def __init__(self, slots: int) -> None:
        self.size = _HEADER + slots * 9
        self._file = os.memfd_create("swarmtest-hits")
        os.ftruncate(self._file, self.size)
        memory = mmap.mmap(self._file, self.size)
        self._words = np.frombuffer(memory, "<u4", 16)
        self.modules = np.frombuffer(memory, _MODULE, _MODULES, 64)
        self._map = np.frombuffer(memory, "u1", slots, _HEADER)
        self._list = np.frombuffer(memory, "<u4", slots, _HEADER + slots)
        self.offsets = np.frombuffer(memory, "<u4", slots, _HEADER + 5 * slots)
        self._words[_SLOTS] = slots
        self._words[_NEXT] = 1
        self._kept = 0

    @property
    def path(self) -> str:
        """Where a program finds it, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def slots(self) -> int:
        """How many there are."""
        return int(self._words[_SLOTS])

    @property
    def no_room(self) -> bool:
        """Whether a module of the program found no free slots."""
        return bool(self._words[_NO_ROOM])

    def attached(self) -> bool:
        """Whether a program has opened it since the last time this was asked."""
        attached = bool(self._words[_ATTACHED])
        self._words[_ATTACHED] = 0
        return attached

    def take(self) -> Slots:
        """The slots hit since the last time, ascending; and clear them."""
        count = min(int(self._words[_HITS]), self.slots)
        slots = np.sort(self._list[:count])
        self._clear(self._kept, count)
        return slots

    def keep(self) -> None:
        """Let what was hit so far count for every test from now on (until `forget`)."""
        self._kept = min(int(self._words[_HITS]), self.slots)

    def forget(self) -> None:
        """Clear everything, also what was kept."""
        self._kept = 0
        self.take()

    def _clear(self, first: int, last: int) -> None:
        fresh = self._list[first:last]
        self._map[fresh] = 0
        fresh[:] = 0
        self._words[_HITS] = first

    def close(self) -> None:
        """Give the memory back; programs that still run keep theirs."""
        os.close(self._file)  # the mapping goes with the last view of it


def has_runtime(program: str) -> bool:
    """Whether a program was built with `swarmtest cc`.

    >>> has_runtime("/bin/sh")
    False
    """
    return _MARKER in Path(program).read_bytes()


class FastCoverage:
    """Turns slots into lines: each module's blocks are looked up when it is first seen."""

    def __init__(self, program: str, lines: Lines) -> None:
        self._program = program
        self._lines = lines
        self._has_runtime = has_runtime(program)
        self.shared = SharedMap(max(_LEAST_SLOTS, os.path.getsize(program)))
        self._modules = 0
        self._files: set[str] = set()
        self._number_of = np.full(self.shared.slots, -1, np.int64)
        self._known: dict[bytes, Hits] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What tells the program's runtime where to write."""
        return {"SWARMTEST_MAP": self.shared.path}

    @property
    def extra_memory(self) -> int:
        """Address space that a program needs for its coverage."""
        return self.shared.size

    def collect(self, ended: Ended) -> Collected:
        """The lines that the program which has just ended began a block on."""
        attached = self.shared.attached()
        self._learn_modules()
        slots = self.shared.take()
        if not len(slots) and not attached:
            return self._nothing(ended)
        raw = slots.tobytes()
        hits = self._known.get(raw)
        if hits is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            hits = self._known[raw] = self._hits(slots)
        return Collected(hits)

    def _nothing(self, ended: Ended) -> Collected:
        if not self._modules and not self._has_runtime:
            raise UserError(
                f"{self._program} wrote no coverage: build it, or what it starts, with `swarmtest "
                "cc` (or say coverage='none')"
            )
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
        return Collected(None, f"the program ended ({how}) before its coverage began")

    def _hits(self, slots: Slots) -> Hits:
        # A slot without a number is code without a place in a source that matters.
        numbers = self._number_of[slots]
        packed = np.unique(numbers[numbers >= 0]).astype("<u4").tobytes()
        return Hits(self._lines.catalogue, packed)

    def _learn_modules(self) -> None:
        before = self._modules
        while self._modules < _MODULES and self.shared.modules[self._modules]["state"] == _READY:
            self._learn(self.shared.modules[self._modules])
            self._modules += 1
            self._known.clear()
        if self.shared.no_room:
            raise UserError(
                f"{self._program} loads more code than there is room for ({self.shared.slots:,} "
                "blocks): build only the parts that matter with `swarmtest cc`"
            )
        if self._modules > before and not self._lines.catalogue.targets:
            some = ", ".join(sorted(self._files)[:3])
            raise UserError(
                f"no source file of {self._program} matches sources={self._lines.wanted}; it has "
                f"{some}{', ...' if len(self._files) > 3 else ''}"
            )

    def _learn(self, module: np.void) -> None:
        path = os.fsdecode(bytes(module["path"]))
        if not path:
            raise UserError(f"a module of {self._program} has too long a path for coverage")
        first, count, text = int(module["first"]), int(module["count"]), int(module["text"])
        if module["kind"] == _GUARDS:
            addresses = (self.shared.offsets[first : first + count].astype("u8") + text).tolist()
            slot_of = {address: first + i for i, address in enumerate(addresses)}
            found = [(slot_of[block.address], block) for block in blocks_of(path, addresses)]
        else:
            blocks = blocks_of(path, None)
            found = [(first + (block.address - text >> 2), block) for block in blocks]
        for slot, block in found:
            self._files.add(block.path)
            number = self._lines.number(block.path, block.line, block.function)
            if number is not None:
                self._number_of[slot] = number

    def started_server(self) -> None:
        """What ran before the fork server's first test belongs to every test."""
        self.shared.keep()

    def starting_server(self) -> None:
        """A new fork server starts from nothing."""
        self.shared.forget()

    def close(self) -> None:
        """Give the shared memory back."""
        self.shared.close()
