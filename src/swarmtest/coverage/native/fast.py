"""The fast path: a program built with `swarmtest cc` writes its hits into shared memory.

The shared memory (its layout is in runtime.c) holds a table of the loaded modules, a map with a
byte per slot, a list of the slots hit, and the code offset of each of clang's guards. After a test
the list is read, and only the slots in it are cleared, so both cost in proportion to the hits. The
memory outlives the program, so the hits of a test that crashed or was killed are complete. It has
no name: a program opens it through this process's entry in /proc, and it is freed with the last
process that holds it.

The rest of the chapter turns slots into source lines (`blocks_of`) and starts programs quickly
(`ForkServer`).
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
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Hits
from swarmtest.coverage.native.collector import Collected, LineNumbers
from swarmtest.processes.caches import cache_directory, is_usable, write
from swarmtest.processes.commands import CommandLine, Output, ProcessEnd, end_process, watch
from swarmtest.processes.tree import kill_group

# Shared memory and hits. The layout must agree with runtime.c.

_MARKER = b"swarmtest native runtime 1"
_HEADER = 1 << 16
_MIN_SLOTS = 1 << 20
_MAX_CACHED_HITS = 4096
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
    """The shared memory, as this process sees it.

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
        self._permanent = 0

    @property
    def path(self) -> str:
        """The path by which a program opens the memory, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @property
    def slots(self) -> int:
        """The number of slots."""
        return int(self._words[_SLOTS])

    @property
    def no_room(self) -> bool:
        """Whether a module of the program found no free slots."""
        return bool(self._words[_NO_ROOM])

    def attached(self) -> bool:
        """Return whether a program has opened the memory since the last call."""
        attached = bool(self._words[_ATTACHED])
        self._words[_ATTACHED] = 0
        return attached

    def take(self) -> Slots:
        """Return the slots hit since the last call, ascending, and clear them."""
        count = min(int(self._words[_HITS]), self.slots)
        slots = np.sort(self._list[:count])
        self._clear(self._permanent, count)
        return slots

    def keep(self) -> None:
        """Count what was hit so far for every test from now on (until `forget`)."""
        self._permanent = min(int(self._words[_HITS]), self.slots)

    def forget(self) -> None:
        """Clear everything, including what `keep` kept."""
        self._permanent = 0
        self.take()

    def _clear(self, first: int, last: int) -> None:
        hit = self._list[first:last]
        self._map[hit] = 0
        hit[:] = 0
        self._words[_HITS] = first

    def close(self) -> None:
        """Release the memory; programs that still run keep theirs."""
        os.close(self._file)  # the mapping is freed with the last array that uses it


def has_runtime(program: str) -> bool:
    """Return whether a program was built with `swarmtest cc`.

    >>> has_runtime("/bin/sh")
    False
    """
    return _MARKER in Path(program).read_bytes()


class FastCoverage:
    """Collects hits from shared memory; a module's blocks are looked up when it is first seen."""

    def __init__(self, program: str, lines: LineNumbers) -> None:
        self._program = program
        self._lines = lines
        self._has_runtime = has_runtime(program)
        self.shared = SharedMap(max(_MIN_SLOTS, os.path.getsize(program)))
        self._modules = 0
        self._files: set[str] = set()
        self._target_numbers = np.full(self.shared.slots, -1, np.int64)
        self._cached: dict[bytes, Hits] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that tell the program's runtime where to write."""
        return {"SWARMTEST_MAP": self.shared.path}

    @property
    def extra_memory(self) -> int:
        """The address space that a program needs for its coverage."""
        return self.shared.size

    def collect(self, ended: ProcessEnd) -> Collected:
        """Return the lines on which the program that has just ended began a block."""
        attached = self.shared.attached()
        self._learn_modules()
        slots = self.shared.take()
        if not len(slots) and not attached:
            return self._no_hits(ended)
        raw = slots.tobytes()
        hits = self._cached.get(raw)
        if hits is None:
            if len(self._cached) >= _MAX_CACHED_HITS:
                self._cached.clear()
            hits = self._cached[raw] = self._hits(slots)
        return Collected(hits)

    def _no_hits(self, ended: ProcessEnd) -> Collected:
        if not self._modules and not self._has_runtime:
            raise UserError(
                f"{self._program} wrote no coverage: build it, or what it starts, with `swarmtest "
                "cc` (or say coverage='none')"
            )
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
        return Collected(None, f"the program ended ({how}) before its coverage began")

    def _hits(self, slots: Slots) -> Hits:
        # A slot without a number is code that has no line in a watched source.
        numbers = self._target_numbers[slots]
        packed = np.unique(numbers[numbers >= 0]).astype("<u4").tobytes()
        return Hits(self._lines.catalogue, packed)

    def _learn_modules(self) -> None:
        before = self._modules
        while self._modules < _MODULES and self.shared.modules[self._modules]["state"] == _READY:
            self._learn_module(self.shared.modules[self._modules])
            self._modules += 1
            self._cached.clear()
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

    def _learn_module(self, module: np.void) -> None:
        path = os.fsdecode(bytes(module["path"]))
        if not path:
            raise UserError(f"a module of {self._program} has too long a path for coverage")
        first, count, text = int(module["first"]), int(module["count"]), int(module["text"])
        if module["kind"] == _GUARDS:
            addresses = (self.shared.offsets[first : first + count].astype("u8") + text).tolist()
            slot_of = {address: first + i for i, address in enumerate(addresses)}
            slots = [(slot_of[block.address], block) for block in blocks_of(path, addresses)]
        else:
            blocks = blocks_of(path, None)
            slots = [(first + (block.address - text >> 2), block) for block in blocks]
        for slot, block in slots:
            self._files.add(block.path)
            number = self._lines.number(block.path, block.line, block.function)
            if number is not None:
                self._target_numbers[slot] = number

    def started_server(self) -> None:
        """Count what ran before the fork server's first test for every test."""
        self.shared.keep()

    def starting_server(self) -> None:
        """Clear everything, because a new fork server starts."""
        self.shared.forget()

    def close(self) -> None:
        """Release the shared memory."""
        self.shared.close()


# Source positions of blocks.
#
# The blocks of a program built by gcc are the calls of our callback, found by disassembly; clang
# lists them in the program itself, and the runtime passes the list on. In both cases `addr2line`
# gives the file, line and function of each, without the frames that a block was inlined into. The
# results are cached on disk under the hash of the binary, so that a rebuilt program is looked up
# again.

_FORMAT = 1
_CALL = re.compile(r"^\s*([0-9a-f]+):\s.*\b(?:call[ql]?|bl)\s.*<__sanitizer_cov_trace_pc(?:@plt)?>")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s")


class Block(NamedTuple):
    """The start of a block: its address as linked, and its position in the source.

    >>> Block(0x1139, "/home/me/a.c", 12, "main").line
    12
    """

    address: int
    path: str
    line: int
    function: str


def blocks_of(binary: str, addresses: Sequence[int] | None) -> list[Block]:
    """Return the blocks of a binary that have a position in the source.

    `addresses` are those of the blocks; None if the blocks are the calls of the callback.
    """
    cache = cache_directory("symbols", f"{_file_hash(binary)}-{_FORMAT}.json")
    try:
        text = cache.read_text() if is_usable(cache) else ""
        blocks = [Block(*row) for row in json.loads(text)]
    except (OSError, ValueError):
        blocks = list(_look_up(binary, addresses))
        if not blocks:
            raise UserError(
                f"{binary} has no debug information: build it with -g and do not strip it"
            ) from None
        # Without a cache the next process looks the blocks up again, which is only slower.
        with contextlib.suppress(OSError):
            write(cache, json.dumps(blocks))
    return blocks


def _file_hash(binary: str) -> str:
    with open(binary, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _look_up(binary: str, addresses: Sequence[int] | None) -> Iterator[Block]:
    pairs = (
        list(_blocks_after_calls(binary))
        if addresses is None
        else [(address, address) for address in addresses]
    )
    words = "\n".join(f"{code:#x}" for _, code in pairs)
    output = _binutils(["addr2line", "-f", "-C", "-e", binary], words)
    # Two lines of output for each address: its function, and its file and line.
    answers = iter(output.splitlines())
    for (address, _), function, position in zip(pairs, answers, answers, strict=True):
        path, _, line = position.partition(" (discriminator")[0].rpartition(":")
        if line.isdigit() and line != "0" and path != "??":
            yield Block(address, os.path.normpath(path), int(line), function)


def _blocks_after_calls(binary: str) -> Iterator[tuple[int, int]]:
    """Yield the return address of each call of the callback, and the address of the block's code.

    They differ for an empty block, which has the line of the code that follows it.
    """
    empty: list[int] = []
    after_call = False
    for text in _binutils(["objdump", "-d", "--no-show-raw-insn", binary]).splitlines():
        instruction = _INSTRUCTION.match(text)
        if not instruction:
            continue
        address = int(instruction[1], 16)
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


# The fork server: the program starts once and forks a process per test, just before `main`.
#
# Start-up (loading, linking, initialising) is then paid once. The server is in the program itself
# (runtime.c): it reads one byte per test from one pipe and answers on another with messages of 16
# bytes: hello, started (process id), ended (wait status, CPU time). It ends with the process that
# started it. If a server dies, it is replaced, and the test during which it died is run again once.

_MESSAGE = struct.Struct("<iiQ")
_HELLO, _STARTED, _ENDED = range(3)
_START_SECONDS = 10.0


class ServerDied(Exception):
    """The server ended while it was needed."""


class ForkServer:
    """Runs one command repeatedly, each time in a fork of a process that is started once."""

    def __init__(
        self,
        command: CommandLine,
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

    def run(self, seconds: float) -> ProcessEnd:
        """Run one test."""
        with contextlib.suppress(ServerDied):
            return self._run(seconds)
        self.close()
        try:
            return self._run(seconds)
        except ServerDied:
            self.close()
            program = self._command.arguments[0]
            raise UserError(f"the fork server in {program} dies: use fork_server=False") from None

    def _run(self, seconds: float) -> ProcessEnd:
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
        return ProcessEnd(status, not in_time, out, err, microseconds / 1e6, wall)

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
            need = "calls swarmtest_next()" if self._per_process else "is built with swarmtest cc"
            raise UserError(
                f"{command.arguments[0]} did not start as a fork server: see that it {need}"
            ) from None
        self._on_started()

    def _receive(self, kind: int, seconds: float) -> tuple[int, int]:
        """Return the value and CPU time of the next message, which must be of a kind."""
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
        """Release what belongs to the parent without ending it; call it in a forked process."""
        if self._process is not None:
            self._process.returncode = 0  # the parent waits for it
            self._process = None
            os.close(self._control)
            os.close(self._status)
            for output in self._outputs:
                output.close()

    def close(self) -> None:
        """End the server and the processes that it started."""
        process = self._process
        if process is not None:
            end_process(process)
        self.abandon()
