"""The branches of a program built with `swarmtest cc`: from which block code can go to which.

The runtime reports steps: pairs of blocks that one call of a function executed one after the other.
Which steps a function can take, and which of them are decisions, follows from the disassembly: a
conditional jump decides if its two ways lead to different blocks. Jumps that the compiler adds for
itself, as in checks of a sanitizer, lead to one block only and are left out.

Where a jump goes through a table, the ways are not known beforehand: such a branch is a target from
when it is first taken.
"""

from __future__ import annotations

import contextlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from swarmtest.coverage.native import blocks
from swarmtest.coverage.native.collector import LineNumbers
from swarmtest.coverage.native.shared_map import Slots, Steps
from swarmtest.processes.caches import cache_directory, is_usable, write

_FORMAT = 1
_FUNCTION = re.compile(r"^([0-9a-f]+) <(.*)>:\s*$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:(?:bnd|notrack|repz?|repnz|lock) )*(\S+)\s*(.*)$")
_ADDRESS = re.compile(r"\b([0-9a-f]+) <")
_CALLBACK = re.compile(r"<__sanitizer_cov_trace_pc(?:_guard)?(?:@plt)?>")
_LAST_CALL = re.compile(
    r"<(?:abort|_?exit|_Exit|quick_exit|__assert_fail|__assert|__stack_chk_fail|_*longjmp|"
    r"__cxa_throw|__cxa_rethrow|_Unwind_Resume|__asan_report_\w+|__ubsan_handle_\w+_abort)(?:@plt)?>"
)
"""Calls from which nothing returns."""
_CONDITIONAL = re.compile(r"j(?!mp)\w+|loop\w*|b\.\w+|cbn?z|tbn?z")
_ALWAYS = re.compile(r"jmpq?|b|br")
_CALL = re.compile(r"callq?|blr?")
_END = re.compile(r"ret\w*|hlt|ud2|brk|udf")
_SETS_UP = re.compile(
    r"(?:nop|data16|cs|xchg +%ax,%ax).*|(?:lea|mov\w*|add) .*,%[re]di|(?:adrp|add|ldu?r) x0,.*"
)
"""Instructions that load the argument of clang's callback, or fill a gap."""


class Branch(NamedTuple):
    """A way that a decision can go, by the addresses of two blocks, and its place in the source.

    >>> Branch(0x1139, 0x1150, "/home/me/a.c", 12, 15, "main").to
    15
    """

    source: int
    destination: int
    path: str
    line: int
    to: int
    """The line on which the destination begins."""
    function: str


class Branches(NamedTuple):
    """The branches of a binary.

    >>> Branches([], {}, {}).known
    []
    """

    known: list[Branch]
    tables: dict[int, tuple[int, str, int, str]]
    """Blocks that jump through a table: the function's address, path, line and function's name."""
    lines: dict[int, tuple[int, int]]
    """Of each block in such a function: the function's address, and the line."""


def branches_of(binary: str, addresses: Sequence[int] | None) -> Branches:
    """Return the branches of a binary; `addresses` are those of its blocks, as in `blocks_of`."""
    cache = cache_directory("symbols", f"{blocks.file_hash(binary)}-branches-{_FORMAT}.json")
    try:
        known, tables, lines = json.loads(cache.read_text() if is_usable(cache) else "")
    except (OSError, ValueError):
        found = _Decisions(_Code(binary, addresses)).named(binary)
        # Without a cache the next process looks them up again, which is only slower.
        with contextlib.suppress(OSError):
            write(cache, json.dumps([found.known, [*found.tables.items()], [*found.lines.items()]]))
        return found
    return Branches(
        [Branch(*row) for row in known],
        {address: tuple(row) for address, row in tables},
        {address: tuple(row) for address, row in lines},
    )


class _Code:
    """The instructions of a binary, with what matters of each."""

    def __init__(self, binary: str, addresses: Sequence[int] | None) -> None:
        self.addresses: list[int] = []
        self.functions: list[int] = []
        self._entries: set[int] = set()
        """Where functions begin that are called, not parts of others that were moved away."""
        self.texts: list[tuple[str, str]] = []
        """Name and operands of each instruction."""
        for text in blocks.binutils(["objdump", "-d", "--no-show-raw-insn", binary]):
            function = _FUNCTION.match(text)
            instruction = None if function else _INSTRUCTION.match(text)
            if function is not None:
                self.functions.append(int(function[1], 16))
                if ".cold" not in function[2]:
                    self._entries.add(int(function[1], 16))
            elif instruction is not None:
                self.addresses.append(int(instruction[1], 16))
                self.texts.append((instruction[2], instruction[3]))
        starts = sorted(addresses or ())
        self.callbacks: dict[int, int] = {}
        """The instructions that report a block, with the block's address."""
        for number, (name, operands) in enumerate(self.texts):
            if _CALL.fullmatch(name) and _CALLBACK.search(operands):
                if addresses is None:
                    block = self.addresses[number + 1] if number + 1 < len(self.texts) else 0
                else:
                    place = bisect_right(starts, self.addresses[number])
                    block = starts[place - 1] if place else 0
                self.callbacks[number] = block
        self._boundaries = set(self.functions)

    def function(self, number: int) -> int:
        """Return the address of the function that an instruction is in."""
        place = bisect_right(self.functions, self.addresses[number])
        return self.functions[place - 1] if place else 0

    def next_of(self, number: int) -> list[int]:
        """Return the instructions that may follow one, where that is known."""
        name, operands = self.texts[number]
        if _END.fullmatch(name) or (_CALL.fullmatch(name) and _LAST_CALL.search(operands)):
            return []
        following = [] if _ALWAYS.fullmatch(name) else self._after(number)
        if _ALWAYS.fullmatch(name) or _CONDITIONAL.fullmatch(name):
            target = _ADDRESS.search(operands)
            # A jump to where a function begins is a call that does not return here.
            if target and int(target[1], 16) not in self._entries:
                following += self._at(int(target[1], 16))
        return following

    def is_conditional(self, number: int) -> bool:
        return _CONDITIONAL.fullmatch(self.texts[number][0]) is not None

    def uses_table(self, number: int) -> bool:
        name, operands = self.texts[number]
        return _ALWAYS.fullmatch(name) is not None and not _ADDRESS.search(operands)

    def prepares(self, number: int) -> bool:
        """Return whether an instruction does nothing but prepare a callback, or jump on."""
        name, operands = self.texts[number]
        operands = operands.partition(" #")[0].partition(" <")[0].rstrip()
        sets_up = _SETS_UP.fullmatch(f"{name} {operands}") is not None
        return (sets_up or _ALWAYS.fullmatch(name) is not None) and not self.uses_table(number)

    def after(self, number: int) -> int:
        """Return the instruction that follows a callback; the callback itself at the end."""
        following = self._after(number)
        return following[0] if following and following[0] not in self.callbacks else number

    def _after(self, number: int) -> list[int]:
        there = number + 1 < len(self.addresses)
        return [number + 1] if there and self.addresses[number + 1] not in self._boundaries else []

    def _at(self, address: int) -> list[int]:
        place = bisect_left(self.addresses, address)
        there = place < len(self.addresses) and self.addresses[place] == address
        return [place] if there else []


class _Decisions:
    """The decisions in code, by the numbers of instructions."""

    def __init__(self, code: _Code) -> None:
        self._code = code
        self.known: list[tuple[int, int, int]] = []
        """Callback, instruction that decides, callback that it leads to."""
        self.tables: list[tuple[int, int]] = []
        """Callback, and the jump through a table that follows it."""
        for callback in code.callbacks:
            self._decide(callback)

    def _region(self, starts: Sequence[int]) -> tuple[set[int], set[int]]:
        """Return the instructions from some on, up to callbacks, and these callbacks."""
        inside: set[int] = set()
        reached: set[int] = set()
        left = list(starts)
        while left:
            number = left.pop()
            if number in self._code.callbacks:
                reached.add(number)
            elif number not in inside:
                inside.add(number)
                left += self._code.next_of(number)
        return inside, reached

    def _decide(self, callback: int) -> None:
        code = self._code
        inside, reached = self._region(code.next_of(callback))
        tables = [number for number in sorted(inside) if code.uses_table(number)]
        if tables:
            self.tables.append((callback, tables[0]))
        if len(reached) < 2:
            return
        ways: dict[int, int] = {}
        for jump in sorted(filter(code.is_conditional, inside)):
            sides = [self._region([number])[1] for number in code.next_of(jump)]
            if len(sides) == 2 and all(sides) and sides[0] != sides[1]:
                for destination in sides[0] | sides[1]:
                    ways.setdefault(destination, jump)
        self.known += [(callback, jump, destination) for destination, jump in ways.items()]

    def _real(self, callback: int) -> int:
        """Return the callback at which code begins, if a block does nothing but lead there.

        Clang puts such blocks on ways that have no block of their own.
        """
        seen = set()
        while callback not in seen:
            seen.add(callback)
            inside, reached = self._region(self._code.next_of(callback))
            if len(reached) != 1 or not all(map(self._code.prepares, inside)):
                break
            (callback,) = reached
        return callback

    def named(self, binary: str) -> Branches:
        """Return the decisions with their places in the source."""
        code = self._code
        ends = {callback: self._real(callback) for _, _, callback in self.known}
        functions = {code.function(callback) for callback, _ in self.tables}
        within = [c for c in code.callbacks if functions and code.function(c) in functions]
        ends |= {callback: self._real(callback) for callback in within}
        jumps = {jump for _, jump, _ in self.known}.union(jump for _, jump in self.tables)
        # Compilers give a callback the line of the statement before which they put it.
        begins = {end: code.after(end) for end in ends.values()}
        numbers = {*jumps, *begins, *begins.values()}
        addresses = {number: code.addresses[number] for number in numbers}
        places = blocks.places_of(binary, sorted({*addresses.values()}))
        of = {number: places.get(address) for number, address in addresses.items()}
        known = []
        for callback, jump, destination in self.known:
            end = ends[destination]
            here, there, after = of[jump], of[end], of[begins[end]]
            if here is not None and there is not None:
                path, line, function = here
                to = there[1]
                if after is not None and to <= line < after[1]:
                    to = after[1]  # an optimiser has moved the statement before the decision
                pair = code.callbacks[callback], code.callbacks[destination]
                known.append(Branch(*pair, path, line, to, function))
        tables = {
            code.callbacks[callback]: (code.function(callback), *place)
            for callback, jump in self.tables
            if (place := of[jump]) is not None
        }
        lines = {
            code.callbacks[callback]: (code.function(callback), place[1])
            for callback in within
            if (place := of[ends[callback]]) is not None
        }
        return Branches(known, tables, lines)


class BranchNumbers:
    """Numbers the branches of a program's modules, and finds those that a test took."""

    def __init__(self, lines: LineNumbers) -> None:
        self._lines = lines
        self._numbers: dict[int, int] = {}
        """The target of each step that is a branch; -1: it is none."""
        self._steps = np.zeros(0, "<u8")
        self._targets = np.zeros(0, "<u4")
        """The steps that are branches, ascending, and their targets."""
        self._tables: dict[int, tuple[int, str, int, str]] = {}
        self._places: dict[int, tuple[int, int]] = {}

    def learn(self, branches: Branches, slot_of: Callable[[int], int]) -> None:
        """Learn the branches of a module; `slot_of` gives the slot of a block."""
        for branch in branches.known:
            step = slot_of(branch.source) << 32 | slot_of(branch.destination)
            number = self._lines.branch(branch.path, branch.line, branch.to, branch.function)
            self._numbers[step] = -1 if number is None else number
        self._tables |= {slot_of(address): place for address, place in branches.tables.items()}
        self._places |= {slot_of(address): place for address, place in branches.lines.items()}
        taken = sorted((step, number) for step, number in self._numbers.items() if number >= 0)
        self._steps = np.array([step for step, _ in taken], "<u8")
        self._targets = np.array([number for _, number in taken], "<u4")

    def numbers(self, steps: Steps) -> Slots:
        """Return the targets of the steps that are branches."""
        if not len(steps):
            return self._targets[:0]
        places = np.searchsorted(self._steps, steps)
        places[places == len(self._steps)] = 0
        is_branch = self._steps[places] == steps if len(self._steps) else np.zeros(len(steps), bool)
        numbers: Slots = self._targets[places[is_branch]]
        if not self._tables:
            return numbers
        others = [self._through_table(step) for step in steps[~is_branch].tolist()]
        more = np.array([number for number in others if number >= 0], "<u4")
        return np.concatenate([numbers, more])

    def _through_table(self, step: int) -> int:
        """Return the target of a step through a table of jumps; -1 if it is none."""
        number = self._numbers.get(step)
        if number is None:
            number = -1
            table, place = self._tables.get(step >> 32), self._places.get(step & 0xFFFFFFFF)
            if table is not None and place is not None and table[0] == place[0]:
                _, path, line, function = table
                found = self._lines.branch(path, line, place[1], function)
                number = -1 if found is None else found
            self._numbers[step] = number
        return number
