"""The fast path: a program built with `swarmtest cc` writes its hits into shared memory.

After a test the list of hits in that memory (`shared_map.py`) is read, and only the slots in it are
cleared, so both cost in proportion to the hits. The memory outlives the program, so the hits of a
test that crashed or was killed are complete. It has no name: a program opens it through this
process's entry in /proc, and it is freed with the last process that holds it.

`blocks.py` knows the source lines of slots, and `branches.py` which steps from slot to slot are
decisions. The rest of the chapter starts programs quickly (`ForkServer`).
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Hits
from swarmtest.coverage.native.blocks import blocks_of, functions_at
from swarmtest.coverage.native.branches import BranchNumbers, branches_of
from swarmtest.coverage.native.collector import Collected, LineNumbers
from swarmtest.coverage.native.shared_map import MODULES, SharedMap, Slots, Steps
from swarmtest.processes import tree
from swarmtest.processes.commands import CommandLine, Output, ProcessEnd, end_process, watch

_MARKER = b"swarmtest native runtime 1"
_MIN_SLOTS = 1 << 20
_MAX_CACHED_HITS = 4096
_READY = 2
_GUARDS = 2
_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "linux-vdso", "linux-gate")
"""The C library is on every stack."""


def has_runtime(program: str) -> bool:
    """Return whether a program was built with `swarmtest cc`.

    >>> has_runtime("/bin/sh")
    False
    """
    return _MARKER in Path(program).read_bytes()


class FastCoverage:
    """Collects hits from shared memory; a module's blocks are looked up when it is first seen."""

    def __init__(
        self,
        program: str,
        lines: LineNumbers,
        *,
        branches: bool = False,
        forget: Callable[[], object] | None = None,
    ) -> None:
        """Allocate the memory; `forget` is the function of a library that clears it."""
        self._program = program
        self._lines = lines
        self._has_runtime = has_runtime(program)
        slots = max(_MIN_SLOTS, os.path.getsize(program))
        self.shared = SharedMap(slots, steps=branches, forget=forget)
        self._branches = BranchNumbers(lines) if branches else None
        self._modules = 0
        self._functions: dict[tuple[str, int], str] = {}
        """The functions at places of crashes that were looked up."""
        self._took = False
        """Whether any block ran in the last test."""
        self._files: set[str] = set()
        self._numbers: dict[int, set[int]] = {}
        """The targets of each slot: the lines of its block."""
        self._first = np.zeros(self.shared.slots, np.int64)
        self._count = np.zeros(self.shared.slots, np.int64)
        self._flat = np.zeros(0, "<u4")
        """The targets of all slots; those of a slot are `_count` from `_first` on."""
        self._cached: dict[bytes, Hits] = {}

    @property
    def has_branches(self) -> bool:
        """Whether branches are recorded, besides lines."""
        return self._branches is not None

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
        hits = self.take()
        stack = self._stack(ended.signal) if ended.signal else ()
        collected = Collected(hits) if attached or self._took else self._no_hits(ended)
        return collected._replace(stack=stack)

    def _stack(self, signal: int) -> tuple[str, ...]:
        """Return the functions that a signal interrupted, the innermost first."""
        # The C library is on every stack.
        frames = [f for f in self.shared.take_stack(signal) if not f[0].startswith(_SYSTEM)]
        unknown = [frame for frame in frames if frame not in self._functions]
        for library in {path for path, _ in unknown}:
            places = [place for path, place in unknown if path == library]
            file = library or self._program
            if not os.path.isfile(file):
                continue
            names = functions_at(file, places)
            self._functions.update(zip([(library, p) for p in places], names, strict=True))
        return tuple(self._functions.get(frame, "") for frame in frames)

    def take(self) -> Hits:
        """Return what was reached since the last call, and clear it."""
        self._learn_modules()
        slots = self.shared.take()
        self._took = len(slots) > 0
        raw = slots.tobytes()
        steps = self.shared.steps
        if len(steps):
            raw += steps.tobytes()
        hits = self._cached.get(raw)
        if hits is None:
            if len(self._cached) >= _MAX_CACHED_HITS:
                self._cached.clear()
            hits = self._cached[raw] = self._hits(slots, steps)
        return hits

    def _no_hits(self, ended: ProcessEnd) -> Collected:
        if not self._modules and not self._has_runtime:
            raise UserError(
                f"{self._program} wrote no coverage: build it, or what it starts, with `swarmtest "
                "cc` (or say coverage='none')"
            )
        how = f"signal {ended.signal}" if ended.signal else f"exit status {ended.status >> 8}"
        return Collected(None, f"the program ended ({how}) before its coverage began")

    def _hits(self, slots: Slots, steps: Steps) -> Hits:
        # A slot without targets is code that has no line in a watched source.
        counts = self._count[slots]
        places = np.repeat(self._first[slots] - np.cumsum(counts) + counts, counts)
        numbers = self._flat[places + np.arange(len(places))]
        if self._branches is not None:
            numbers = np.concatenate([numbers, self._branches.numbers(steps)])
        return Hits(self._lines.catalogue, self._distinct(numbers).tobytes())

    def _distinct(self, numbers: Slots) -> Slots:
        """Return numbers of targets, ascending, each once; `np.unique` takes far longer."""
        targets = len(self._lines.catalogue.targets)
        distinct: Slots
        if len(numbers) * 32 < targets:  # then looking at a flag for each target takes longer
            ordered = np.sort(numbers)
            distinct = ordered[np.diff(ordered, prepend=ordered[:1] + 1) != 0]
        else:
            is_hit = np.zeros(targets, bool)
            is_hit[numbers] = True
            distinct = np.flatnonzero(is_hit).astype("<u4")
        return distinct

    def _learn_modules(self) -> None:
        before = self._modules
        while self._modules < MODULES and self.shared.states[self._modules] == _READY:
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
        addresses: list[int] | None = None
        slot_of: Callable[[int], int]
        if module["kind"] == _GUARDS:
            addresses = (self.shared.offsets[first : first + count].astype("u8") + text).tolist()
            guards = {address: first + i for i, address in enumerate(addresses)}
            slot_of = guards.__getitem__
        else:
            slot_of = _call_slots(first, text)
        for block in blocks_of(path, addresses):
            slot = slot_of(block.address)
            self._files.add(block.path)
            if self._lines.is_declaration(block.path, block.line):
                continue
            number = self._lines.number(block.path, block.line, block.function)
            if number is not None:
                self._numbers.setdefault(slot, set()).add(number)
        self._index_numbers()
        if self._branches is not None:
            self._branches.learn(branches_of(path, addresses), slot_of)

    def _index_numbers(self) -> None:
        slots = np.fromiter(self._numbers, np.int64, len(self._numbers))
        counts = np.array([len(numbers) for numbers in self._numbers.values()], np.int64)
        self._count[slots] = counts
        self._first[slots] = np.cumsum(counts) - counts
        flat = [number for numbers in self._numbers.values() for number in numbers]
        self._flat = np.array(flat, "<u4")

    def started_server(self) -> None:
        """Count what ran before the fork server's first test for every test."""
        self.shared.keep()

    def starting_server(self) -> None:
        """Clear everything, because a new fork server starts."""
        self.shared.forget()

    def close(self) -> None:
        """Release the shared memory."""
        self.shared.close()


def _call_slots(first: int, text: int) -> Callable[[int], int]:
    """Return the slot of a call of gcc's callback, by the address to which it returns."""
    return lambda address: first + (address - text >> 2)


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
        memory = self._command.resident_limit(pid)
        in_time = watch(self._status, self._outputs, seconds, memory)
        full = memory is not None and memory.exceeded
        if not in_time:
            tree.kill_group(pid)
        status, microseconds = self._receive(_ENDED, _START_SECONDS)
        assert self._process is not None
        tree.report_cpu(self._process.pid, microseconds * 1000)
        if os.WIFSTOPPED(status):
            status = 0  # persistent mode: the process waits for its next test
        for output in self._outputs:
            output.drain()
        out, err = (output.take() for output in self._outputs)
        wall = time.monotonic() - began
        late = not in_time and not full
        return ProcessEnd(status, late, out, err, microseconds / 1e6, wall, full)

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
            _, microseconds = self._receive(_HELLO, _START_SECONDS)
            tree.report_cpu(self._process.pid, microseconds * 1000)
            for output in self._outputs:  # what was printed before the first test is of no test
                output.drain()
                output.take()
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
