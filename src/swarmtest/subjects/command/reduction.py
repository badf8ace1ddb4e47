"""Making a test smaller: by subtrees, or blocks and lines; then by an external reducer if asked."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.processes.commands import end_process
from swarmtest.processes.tree import Supervision, spawn
from swarmtest.reducer.reducer import AskedAs, minimised
from swarmtest.subjects.command.debian_packages import how_to_install
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import expanded

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator


# -------------------------------------------------------------------------------------------------
# Reduction by an external program, through the criterion of this process.
#
# cvise and creduce decide by a script that they run in a directory with the candidate. Ours asks
# this
# process through a socket and exits as it is told, so the criterion is the very one that lines
# were
# removed by. Questions are answered one at a time. The smallest candidate that was interesting is
# kept here, so that a reducer may be ended at any moment.

_C_LIKE = (".c", ".cc", ".cpp", ".cxx", ".C", ".h", ".hpp", ".i", ".ii")
_KNOWN = {
    "cvise": ("cvise", "--n", "1", "{script}", "{test}"),
    "creduce": ("creduce", "--n", "1", "{script}", "{test}"),
}
_CLIENT = """\
#!/bin/sh
exec {python} -I -S -c '
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(os.path.abspath(sys.argv[2]).encode())
line.shutdown(socket.SHUT_WR)
sys.exit(line.recv(1) != b"1")
' {socket} {file}
"""


def reducer_of(spec: Specification) -> tuple[str, ...]:
    """The words of the reducer that a subject asks for; empty for none."""
    wanted = spec.reduce.external
    if spec.reduce.command:
        return spec.reduce.command
    if wanted == "auto":
        c_like = spec.generate.suffix in _C_LIKE
        found = [name for name in _KNOWN if shutil.which(name)] if c_like else []
        return _KNOWN[found[0]] if found else ()
    return _KNOWN.get(wanted, ())


def externally_reduced(
    spec: Specification, words: tuple[str, ...], test: CommandTest, interesting: Interesting
) -> CommandTest:
    """What an external reducer makes of a test within its time; at worst the test itself."""
    with tempfile.TemporaryDirectory(prefix="swarmtest-") as place:
        directory = Path(place)
        file = directory / f"test{spec.generate.suffix}"
        file.write_bytes(test.content)
        script = directory / "interesting.sh"
        address = str(directory / "ask")
        script.write_text(_CLIENT.format(python=sys.executable, socket=address, file=file.name))
        script.chmod(0o755)
        values = {"script": str(script), "test": file.name, "here": spec.here}
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen(64)
            with Supervision():
                process = _start(expanded(words, values), directory)
                try:
                    return _served(server, process, test, interesting, spec.reduce.seconds)
                finally:
                    end_process(process)


def _start(words: list[str], directory: Path) -> subprocess.Popen[bytes]:
    try:
        return spawn(
            words,
            cwd=directory,
            env={**os.environ, "TMPDIR": str(directory)},  # what it leaves behind goes with ours
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError as error:
        raise UserError(
            f"cannot start the reducer {words[0]}: {error.strerror}{how_to_install(words[0])}"
        ) from None


def _served(
    server: socket.socket,
    process: subprocess.Popen[bytes],
    test: CommandTest,
    interesting: Interesting,
    seconds: float,
) -> CommandTest:
    """Answer the script's questions until the reducer ends, or its time is up."""
    best = test
    deadline = time.monotonic() + seconds
    end = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([server.fileno(), end], [], [], max(0.0, left))
            if server.fileno() not in ready or left <= 0:
                return best
            line, _ = server.accept()
            with line:
                candidate = _asked(line, test)
                good = candidate is not None and interesting(candidate)
                line.sendall(b"1" if good else b"0")
            if good and candidate is not None and len(candidate.content) < len(best.content):
                best = candidate
    finally:
        os.close(end)


def _asked(line: socket.socket, test: CommandTest) -> CommandTest | None:
    path = b""
    while chunk := line.recv(4096):
        path += chunk
    try:
        content = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return None
    return test.with_content(content) if content.strip() else None


# -------------------------------------------------------------------------------------------------

_MOST_BYTES = 4096
"""Binary tests up to this size are reduced byte by byte at the end."""

Interesting = Callable[[CommandTest], bool]


def needed_steps(spec: Specification, about: Sequence[str]) -> tuple[str, ...]:
    """The steps that a fault is about, those they need, and those that tell what is a test at all.

    Nothing if that is all of them, or if it is not known which the fault is about.
    """
    needed = (
        {*about, *(step.name for step in spec.steps if step.may_invalidate)} if about else set()
    )
    for step in reversed(spec.steps):
        if step.name in needed:
            needed.update(step.needs)
    return (
        tuple(s.name for s in spec.steps if s.name in needed)
        if len(needed) < len(spec.steps)
        else ()
    )


def reduced_quickly(
    spec: Specification, test: CommandTest, steps: tuple[str, ...], interesting: Interesting
) -> CommandTest:
    """`reduced_test` with these steps alone, if they show what is interesting as all do."""
    narrowed = replace(test, only=steps)
    if steps and interesting(narrowed):
        found = replace(reduced_test(spec, narrowed, interesting), only=())
        if interesting(found):
            return found
    return reduced_test(spec, test, interesting)


def reduced_test(spec: Specification, test: CommandTest, interesting: Interesting) -> CommandTest:
    """A smaller test that is still interesting."""
    grammar = spec.generate.grammar
    if grammar is not None and test.tree is not None:
        test = _by_subtrees(grammar, test, interesting)
    else:
        test = reduced_text(test, interesting)

    command = reducer_of(spec)
    return externally_reduced(spec, command, test, interesting) if command else test


def reduced_text(test: CommandTest, interesting: Interesting) -> CommandTest:
    """Blocks from the outside in, then lines, and braces around nothing; again while it helps."""
    before = -1
    while len(test.content) != before:
        before = len(test.content)
        depth = 0
        while parts := blocks(test.content, depth):
            test = _by_parts(test, parts, interesting)
            depth += 1
        test = _by_parts(test, lines(test.content), interesting)
        test = _unwrapped(test, interesting)
    return _by_parts(test, single_bytes(test.content), interesting)


def _unwrapped(test: CommandTest, interesting: Interesting) -> CommandTest:
    """The test without braces that are not needed, as far as what they hold can stand alone."""
    content = lines(test.content)
    pairs = minimised(
        wrappers(test.content),
        lambda kept: interesting(_without(test, content, set(wrappers(test.content)) - {*kept})),
    )
    return _without(test, content, set(wrappers(test.content)) - {*pairs})


def _without(test: CommandTest, content: list[bytes], pairs: set[tuple[int, int]]) -> CommandTest:
    gone = {number for pair in pairs for number in pair}
    return test.with_content(b"".join(line for i, line in enumerate(content) if i not in gone))


def _by_subtrees(
    grammar: GrammarGenerator, test: CommandTest, interesting: Interesting
) -> CommandTest:
    def with_tree(tree: Any) -> CommandTest:
        return replace(test, content=grammar.text(tree).encode(), tree=tree)

    return with_tree(grammar.reduced(test.tree, lambda tree: interesting(with_tree(tree))))


def _by_parts(test: CommandTest, parts: list[bytes], interesting: Interesting) -> CommandTest:
    if len(parts) < 2:
        return test

    def joined(kept: Sequence[bytes]) -> CommandTest | None:
        return test.with_content(b"".join(kept)) if kept else None

    kept: tuple[bytes, ...] = minimised(parts, AskedAs(interesting, joined))
    return test.with_content(b"".join(kept))


def lines(content: bytes) -> list[bytes]:
    """The lines of a test, with their ends.

    >>> lines(b"a\\nb")
    [b'a\\n', b'b']
    """
    return content.splitlines(keepends=True)


def blocks(content: bytes, depth: int = 0) -> list[bytes]:
    """Lines, joined where more than `depth` braces are open: functions and loops go as wholes.

    Nothing when no brace is open that deep.

    >>> blocks(b"int x;\\nint f() {\\n  return 1;\\n}\\nint y;\\n")
    [b'int x;\\n', b'int f() {\\n  return 1;\\n}\\n', b'int y;\\n']
    """
    found: list[bytes] = []
    level = 0
    for line in lines(content):
        if level > depth:
            found[-1] += line
        else:
            found.append(line)
        level = max(0, level + line.count(b"{") - line.count(b"}"))
    joined = len(found) < len(lines(content))
    return found if joined else []


def wrappers(content: bytes) -> list[tuple[int, int]]:
    """The lines that only open a block, each with the line that only closes it, innermost first.

    >>> wrappers(b"{\\n{\\nx;\\n}\\n}\\n")
    [(1, 3), (0, 4)]
    """
    found: list[tuple[int, int]] = []
    open_lines: list[tuple[int, bool]] = []
    for number, line in enumerate(lines(content)):
        plain = line.split(b"/*")[0].strip()
        for brace in plain:
            if brace == ord("{"):
                open_lines.append((number, plain == b"{"))
            elif brace == ord("}") and open_lines:
                start, alone = open_lines.pop()
                if alone and plain == b"}":
                    found.append((start, number))
    return found


def single_bytes(content: bytes) -> list[bytes]:
    """The bytes of a small binary test; nothing for text, whose words are not to be torn.

    >>> single_bytes(b"\\xff\\x00")
    [b'\\xff', b'\\x00']
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        if len(content) <= _MOST_BYTES:
            return [content[i : i + 1] for i in range(len(content))]
    return []
