"""Runs a program to its end, to its time limit, or to where its threads wait for each other."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from swarmtest.instrument.native.process import Command, Ended, Output, kill_group, watch
from swarmtest.instrument.native_threads.memory import ThreadMemory
from swarmtest.instrument.native_threads.stuck import (
    Stand,
    handles_signals,
    is_asleep,
    stand_of,
)

_LOOK_EVERY = 0.01
_LOOKS = 4
"""So many looks in a row have to see the same, before threads that all wait count as stuck."""


class Watched(NamedTuple):
    """How a run ended."""

    ended: Ended
    stand: Stand | None
    """How its threads stood when they were stuck, or when the time was over; else None."""
    stuck: bool


def run_watched(command: Command, memory: ThreadMemory, seconds: float) -> Watched:
    """Run a program whose library writes into `memory`."""
    outputs = (Output(), Output())
    stdin = os.open(os.devnull, os.O_RDONLY)
    began = time.monotonic()
    try:
        process = command.start(stdin, outputs)
        for output in outputs:
            output.close_write()
        end = os.pidfd_open(process.pid)
        stand, stuck, over = None, False, False
        try:
            patience = _Patience(process.pid, memory)
            while stand is None and not watch(end, outputs, _LOOK_EVERY):
                stuck = patience.is_stuck()
                over = time.monotonic() - began >= seconds
                if stuck or over:
                    stand = stand_of(memory.snapshot())
        finally:
            os.close(end)
            kill_group(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        ended = Ended(
            status,
            over and not stuck,
            outputs[0].take(),
            outputs[1].take(),
            usage.ru_utime + usage.ru_stime,
            time.monotonic() - began,
        )
        return Watched(ended, stand, stuck)
    finally:
        os.close(stdin)
        for output in outputs:
            output.close()


class _Patience:
    """Looks again and again, until what it sees has not changed for a while."""

    def __init__(self, process: int, memory: ThreadMemory) -> None:
        self._process = process
        self._memory = memory
        self._seen: Stand | None = None
        self._looks = 0

    def is_stuck(self) -> bool:
        """Whether no thread of the program will ever go on."""
        snapshot = self._memory.snapshot()
        stand = stand_of(snapshot) if snapshot.processes == 1 else None
        if stand is None or not stand.all_wait:
            self._seen, self._looks = None, 0
            return False
        same = stand == self._seen and is_asleep(self._process, len(stand.waiting))
        self._looks = self._looks + 1 if same else 0
        self._seen = stand
        if self._looks < _LOOKS:
            return False
        return bool(stand.cycle()) or not handles_signals(self._process)
