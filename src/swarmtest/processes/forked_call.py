"""Doing something in a forked process that may die of it, and hearing what it told until then."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any


def told_by_child(work: Callable[[Callable[[Any], None]], None], seconds: float) -> list[Any]:
    """What `work` told (JSON data) in a process of its own, at most so many seconds long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, reader, writer)
    os.close(writer)
    try:
        return _heard(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _work(work: Callable[[Callable[[Any], None]], None], reader: int, writer: int) -> None:
    try:
        os.close(reader)
        _silence()
        work(lambda entry: _write_all(writer, json.dumps(entry).encode() + b"\n"))
    finally:
        os._exit(0)


def _silence() -> None:
    """What the program prints in its second run is of no use to anybody."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.stdout = sys.stderr = os.fdopen(null, "w")


def _write_all(writer: int, data: bytes) -> None:
    while data:
        data = data[os.write(writer, data) :]


def _heard(reader: int, until: float) -> list[Any]:
    heard = b""
    while (left := until - time.monotonic()) > 0:
        if not select.select([reader], [], [], left)[0]:
            break
        more = os.read(reader, 1 << 16)
        if not more:
            break
        heard += more
    # The last line is whole only if a line end follows it.
    return [json.loads(line) for line in heard.split(b"\n")[:-1]]
