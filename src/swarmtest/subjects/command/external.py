"""Reduction by an external program, through the criterion of this process.

cvise and creduce decide by a script that they run in a directory with the candidate. Ours asks this
process through a socket and exits as it is told, so the criterion is the very one that lines were
removed by. Questions are answered one at a time. The smallest candidate that was interesting is
kept here, so that a reducer may be ended at any moment.
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
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native.process import kill_group
from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.packages import how_to_install
from swarmtest.subjects.command.reducing import Interesting
from swarmtest.subjects.command.specification import Specification
from swarmtest.subjects.command.words import expanded

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
            process = _start(expanded(words, values), directory)
            try:
                return _served(server, process, test, interesting, spec.reduce.seconds)
            finally:
                kill_group(process.pid)
                process.wait()


def _start(words: list[str], directory: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
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
