"""The blocks of a program that was built with `swarmtest cc`, and the source lines of each.

A block runs from its callback to the next one. For a program built by gcc, the callbacks are found
by disassembly; clang lists the blocks in the program itself, and the runtime passes the list on.
The lines of a block are those that the compiler's line table has for its code, so a line that
begins no block runs with the block that it is in, and a line without code is none.

`addr2line` gives the file and function of each piece of code, without the frames that it was
inlined into. The results are cached on disk under the hash of the binary, so that a rebuilt program
is looked up again.
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
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from swarmtest.core.errors import UserError
from swarmtest.processes import tree
from swarmtest.processes.caches import cache_directory, is_usable, write

_FORMAT = 2
_CALL = re.compile(r"^\s*([0-9a-f]+):\s.*\b(?:call[ql]?|bl)\s.*<__sanitizer_cov_trace_pc(?:@plt)?>")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s")
_FUNCTION = re.compile(r"^([0-9a-f]+) <.*>:\s*$")
_JUMP = re.compile(r"^\s*[0-9a-f]+:\s+(?:bnd |rep[a-z]* )?(?:j|ret|b\.|b\s|br\s|[ct]bn?z)")
_ROW = re.compile(r"^(\S.*?)\s+(\d+)\s+0x([0-9a-f]+)\s*\d*\s+x\s*$")
"""A row of the line table at which a statement begins."""


class Block(NamedTuple):
    """A line of a block: the block's address as linked, and a position in the source.

    >>> Block(0x1139, "/home/me/a.c", 12, "main").line
    12
    """

    address: int
    path: str
    line: int
    function: str


class _Code(NamedTuple):
    """The code of a block."""

    address: int
    """The block's name: where its callback returns to (gcc), or where it begins (clang)."""
    start: int
    end: int
    sample: int
    """An address whose line is certainly one of the block."""
    jump: int
    """The first jump: what follows it may be code that the compiler has moved there."""


def blocks_of(binary: str, addresses: Sequence[int] | None) -> list[Block]:
    """Return the lines of the blocks of a binary that have a position in the source.

    `addresses` are those of the blocks; None if the blocks are the calls of the callback.
    """
    cache = cache_directory("symbols", f"{file_hash(binary)}-{_FORMAT}.json")
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


def file_hash(binary: str) -> str:
    """Return a hash of a file's content, by which what was looked up in it is kept."""
    with open(binary, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _look_up(binary: str, addresses: Sequence[int] | None) -> Iterator[Block]:
    text = _Disassembly(binary)
    codes = text.blocks_of_calls() if addresses is None else text.blocks_between(addresses)
    rows = sorted(_rows(binary))
    starts = [address for address, _, _ in rows]
    inside = [range(bisect_left(starts, c.start), bisect_left(starts, c.end)) for c in codes]
    looked_up = {code.sample for code in codes}.union(starts[i] for part in inside for i in part)
    places = places_of(binary, sorted(looked_up))
    certain: set[tuple[str, int]] = set()
    found: list[tuple[_Code, dict[tuple[str, int], str], dict[tuple[str, int], str]]] = []
    for code, part in zip(codes, inside, strict=True):
        own: dict[tuple[str, int], str] = {}
        perhaps: dict[tuple[str, int], str] = {}
        if code.sample in places:
            path, line, function = places[code.sample]
            own[path, line] = function
        for address, line, name in (rows[i] for i in part):
            place = places.get(address)
            if place is not None and place[0].endswith(name):
                lines = own if address <= code.jump else perhaps
                lines.setdefault((place[0], line), place[2])
        certain.update(own)
        found.append((code, own, perhaps))
    for code, own, perhaps in found:
        # What follows a jump may have been moved there from another block.
        more = {position: perhaps[position] for position in perhaps.keys() - certain}
        for (path, line), function in {**more, **own}.items():
            yield Block(code.address, path, line, function)


class _Disassembly:
    """Where functions, callbacks and jumps are in a binary."""

    def __init__(self, binary: str) -> None:
        self._functions: list[int] = []
        self._calls: list[tuple[int, int]] = []
        """Where callbacks are called, and where they return to."""
        self._jumps: list[int] = []
        call = -1
        for text in binutils(["objdump", "-d", "--no-show-raw-insn", binary]):
            function = _FUNCTION.match(text)
            found = function or _INSTRUCTION.match(text)
            if found is None:
                continue
            address = int(found[1], 16)
            if call >= 0:
                self._calls.append((call, address))
                call = -1
            if function is not None:
                self._functions.append(address)
            elif _CALL.match(text):
                call = address
            elif _JUMP.match(text):
                self._jumps.append(address)

    def blocks_of_calls(self) -> list[_Code]:
        """Return the blocks of a program built by gcc, which begin with a call of the callback.

        What comes before the first call of a function belongs to its first block. A block without
        code has the line of the code that follows it.
        """
        begins = [call for call, _ in self._calls]
        ends = sorted({*begins, *self._functions})
        blocks = []
        following = 0
        for call, name in reversed(self._calls):
            end = self._next(ends, call)
            following = following if name == end else name
            function = self._functions[bisect_right(self._functions, call) - 1]
            first = bisect_left(begins, function)
            start = function if begins[first] == call else call
            blocks.append(_Code(name, start, end, following, self._next(self._jumps, start)))
        return blocks[::-1]

    def blocks_between(self, addresses: Sequence[int]) -> list[_Code]:
        """Return the blocks that begin at addresses, to where another or a function begins."""
        ends = sorted({*addresses, *self._functions})
        return [_Code(a, a, self._next(ends, a), a, self._next(self._jumps, a)) for a in addresses]

    @staticmethod
    def _next(places: list[int], address: int) -> int:
        place = bisect_right(places, address)
        return places[place] if place < len(places) else address + (1 << 12)


def _rows(binary: str) -> Iterator[tuple[int, int, str]]:
    """Yield address, line and file (the end of its path) of the statements of the line table."""
    for text in binutils(["objdump", "--dwarf=decodedline", binary]):
        row = _ROW.match(text)
        if row is not None and row[2] != "0":
            yield int(row[3], 16), int(row[2]), row[1].removeprefix("...")


def functions_at(binary: str, addresses: Sequence[int]) -> list[str]:
    """Return the names of the functions at addresses of a binary; empty where there is none.

    Of code that was inlined, the innermost function is named, as in the lines of blocks.
    """
    answers = list(binutils(["addr2line", "-f", "-C", "-e", binary], addresses))[::2]
    names = [answer.strip() for answer in answers]
    return ["" if name == "??" else name for name in names]


def places_of(binary: str, addresses: Sequence[int]) -> dict[int, tuple[str, int, str]]:
    """Return path, line and function of the code at each address that has them."""
    places = {}
    paths: dict[str, str] = {}
    names: dict[str, str] = {}
    # Two lines of output for each address: its function, and its file and line.
    answers = binutils(["addr2line", "-f", "-C", "-e", binary], addresses)
    for address, function, position in zip(addresses, answers, answers, strict=True):
        path, _, line = position.rstrip().partition(" (discriminator")[0].rpartition(":")
        if line.isdigit() and line != "0" and path != "??":
            normal = paths.setdefault(path, os.path.normpath(path))
            name = names.setdefault(function, function.rstrip())
            places[address] = normal, int(line), name
    return places


def binutils(command: list[str], addresses: Sequence[int] = ()) -> Iterator[str]:
    """Yield the lines that a command prints, which are many: they are never all in memory.

    What it reads, the addresses, is a file, because nobody writes to a pipe while it prints.
    """
    if not shutil.which(command[0]):
        raise UserError(f"{command[0]} is not on the PATH: install binutils")
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as errors:
        given.writelines(f"{address:#x}\n" for address in addresses)
        given.seek(0)
        process = tree.spawn(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        try:
            yield from process.stdout
        finally:
            process.stdout.close()
            if process.wait():
                errors.seek(0)
                reason = errors.read().strip()
                raise UserError(f"{command[0]} cannot read {command[-1]}: {reason}")
