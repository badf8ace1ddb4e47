"""Where in the source the blocks of a program begin: found once per binary, then read from a cache.

The blocks of a program built by gcc are the calls of our callback, found by a disassembly; clang
lists them in the program itself, and the runtime passes the list on. Either way `addr2line` says
the file, line and function of each, without the frames that a block was inlined into. The answers
are kept on disk under the hash of the binary, so that a rebuilt program is looked at anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from swarmtest.errors import UserError

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
