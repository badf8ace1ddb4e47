"""Make a test of a command subject smaller.

A test that came from a grammar is reduced by subtrees; any other by blocks in braces, then by
lines, and a small binary one by bytes. Then an external reducer (cvise, creduce or the user's own)
takes over if the subject asks for one.
"""

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
from swarmtest.reducer.reducer import ConvertedCriterion, minimised
from swarmtest.subjects.command.debian_packages import how_to_install
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.command.toml_reader import expanded

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator


_MOST_BYTES = 4096
"""Binary tests up to this size are reduced byte by byte at the end."""

Interesting = Callable[[CommandTest], bool]
"""The criterion of a reduction: whether a smaller test still shows what is looked for."""


def needed_steps(spec: Specification, about: Sequence[str]) -> tuple[str, ...]:
    """Return the steps that must run to see whether a test still shows a fault.

    These are the steps that the fault is about, the steps that they need, and the steps that can
    say that a test is invalid. Return nothing if that is all steps, or if `about` is empty.
    """
    if not about:
        return ()
    needed = {*about, *(step.name for step in spec.steps if step.may_invalidate)}
    for step in reversed(spec.steps):
        if step.name in needed:
            needed.update(step.needs)
    if len(needed) >= len(spec.steps):
        return ()
    return tuple(step.name for step in spec.steps if step.name in needed)


def reduced_quickly(
    spec: Specification, test: CommandTest, steps: tuple[str, ...], interesting: Interesting
) -> CommandTest:
    """Reduce a test with only some of its steps, which takes less time.

    If these steps alone do not show what is interesting, or if the result is no longer interesting
    when all steps run, reduce the test with all steps.
    """
    narrowed = replace(test, only=steps)
    if steps and interesting(narrowed):
        smaller = replace(reduced_test(spec, narrowed, interesting), only=())
        if interesting(smaller):
            return smaller
    return reduced_test(spec, test, interesting)


def reduced_test(spec: Specification, test: CommandTest, interesting: Interesting) -> CommandTest:
    """Return a smaller test that is still interesting."""
    grammar = spec.generate.grammar
    if grammar is not None and test.tree is not None:
        test = _by_subtrees(grammar, test, interesting)
    else:
        test = reduced_text(test, interesting)
    command = reducer_of(spec)
    return externally_reduced(spec, command, test, interesting) if command else test


def reduced_text(test: CommandTest, interesting: Interesting) -> CommandTest:
    """Remove blocks from the outside in, then lines, then needless braces, as long as it helps."""
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
    """Remove lines with only a brace where what is between them can stand without."""
    content = lines(test.content)
    pairs = wrappers(test.content)

    def with_pairs(kept: Sequence[tuple[int, int]]) -> CommandTest:
        removed = {number for pair in set(pairs) - {*kept} for number in pair}
        left = (line for number, line in enumerate(content) if number not in removed)
        return test.with_content(b"".join(left))

    return with_pairs(minimised(pairs, lambda kept: interesting(with_pairs(kept))))


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

    kept: tuple[bytes, ...] = minimised(parts, ConvertedCriterion(interesting, joined))
    return test.with_content(b"".join(kept))


def lines(content: bytes) -> list[bytes]:
    """Return the lines of a test, with their line ends.

    >>> lines(b"a\\nb")
    [b'a\\n', b'b']
    """
    return content.splitlines(keepends=True)


def blocks(content: bytes, depth: int = 0) -> list[bytes]:
    """Return the lines of a test, joined where more than `depth` braces are open.

    So functions and loops are removed as a whole. Return nothing if no lines are joined.

    >>> blocks(b"int x;\\nint f() {\\n  return 1;\\n}\\nint y;\\n")
    [b'int x;\\n', b'int f() {\\n  return 1;\\n}\\n', b'int y;\\n']
    """
    parts: list[bytes] = []
    level = 0
    for line in lines(content):
        if level > depth:
            parts[-1] += line
        else:
            parts.append(line)
        level = max(0, level + line.count(b"{") - line.count(b"}"))
    joined = len(parts) < len(lines(content))
    return parts if joined else []


def wrappers(content: bytes) -> list[tuple[int, int]]:
    """Return the numbers of lines that only open a block, each with the line that only closes it.

    Innermost blocks come first.

    >>> wrappers(b"{\\n{\\nx;\\n}\\n}\\n")
    [(1, 3), (0, 4)]
    """
    pairs: list[tuple[int, int]] = []
    open_lines: list[tuple[int, bool]] = []
    for number, line in enumerate(lines(content)):
        plain = line.split(b"/*")[0].strip()
        for brace in plain:
            if brace == ord("{"):
                open_lines.append((number, plain == b"{"))
            elif brace == ord("}") and open_lines:
                start, alone = open_lines.pop()
                if alone and plain == b"}":
                    pairs.append((start, number))
    return pairs


def single_bytes(content: bytes) -> list[bytes]:
    """Return the bytes of a small binary test; nothing for text, whose words stay whole.

    >>> single_bytes(b"\\xff\\x00")
    [b'\\xff', b'\\x00']
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        if len(content) <= _MOST_BYTES:
            return [content[i : i + 1] for i in range(len(content))]
    return []


# External reducers.
#
# cvise and creduce run a script in a directory with the candidate, and its exit status decides. Our
# script asks this process through a socket, so the criterion is the same as for removing lines.
# Questions are answered one at a time. The smallest interesting candidate is kept here, so the
# reducer can be killed at any time.

_C_LIKE = (".c", ".cc", ".cpp", ".cxx", ".C", ".h", ".hpp", ".i", ".ii")
_REDUCERS = {
    "cvise": ("cvise", "--n", "1", "{script}", "{test}"),
    "creduce": ("creduce", "--n", "1", "{script}", "{test}"),
}
_SCRIPT = """\
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
    """Return the command of the reducer that a subject asks for; empty for none."""
    name = spec.reduce.external
    if spec.reduce.command:
        return spec.reduce.command
    if name == "auto":
        c_like = spec.generate.suffix in _C_LIKE
        installed = [reducer for reducer in _REDUCERS if shutil.which(reducer)] if c_like else []
        return _REDUCERS[installed[0]] if installed else ()
    return _REDUCERS.get(name, ())


def externally_reduced(
    spec: Specification, words: tuple[str, ...], test: CommandTest, interesting: Interesting
) -> CommandTest:
    """Run an external reducer; return the smallest interesting test, at worst the test itself."""
    with tempfile.TemporaryDirectory(prefix="swarmtest-") as path:
        directory = Path(path)
        file = directory / f"test{spec.generate.suffix}"
        file.write_bytes(test.content)
        script = directory / "interesting.sh"
        address = str(directory / "ask")
        script.write_text(_SCRIPT.format(python=sys.executable, socket=address, file=file.name))
        script.chmod(0o755)
        values = {"script": str(script), "test": file.name, "here": spec.here}
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen(64)
            with Supervision():
                process = _start(expanded(words, values), directory)
                try:
                    return _serve(server, process, test, interesting, spec.reduce.seconds)
                finally:
                    end_process(process)


def _start(words: list[str], directory: Path) -> subprocess.Popen[bytes]:
    try:
        return spawn(
            words,
            cwd=directory,
            # Its temporary files are then removed with our directory, also if it is killed.
            env={**os.environ, "TMPDIR": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError as error:
        raise UserError(
            f"cannot start the reducer {words[0]}: {error.strerror}{how_to_install(words[0])}"
        ) from None


def _serve(
    server: socket.socket,
    process: subprocess.Popen[bytes],
    test: CommandTest,
    interesting: Interesting,
    seconds: float,
) -> CommandTest:
    """Answer the script's questions until the reducer ends or its time is up."""
    best = test
    deadline = time.monotonic() + seconds
    end = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([server.fileno(), end], [], [], max(0.0, left))
            if server.fileno() not in ready or left <= 0:
                return best
            connection, _ = server.accept()
            with connection:
                candidate = _read_candidate(connection, test)
                good = candidate is not None and interesting(candidate)
                connection.sendall(b"1" if good else b"0")
            if good and candidate is not None and len(candidate.content) < len(best.content):
                best = candidate
    finally:
        os.close(end)


def _read_candidate(connection: socket.socket, test: CommandTest) -> CommandTest | None:
    """Receive the path of a candidate and read it; None if it is gone or empty."""
    path = b""
    while chunk := connection.recv(4096):
        path += chunk
    try:
        content = Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return None
    return test.with_content(content) if content.strip() else None
