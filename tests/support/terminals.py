"""A command of swarmtest in a terminal of any width, in a process forked from the tests'."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from pathlib import Path


def in_terminal(*words: object, cwd: Path, columns: int, **env: str) -> str:
    """Return what a terminal receives while `swarmtest` runs with these arguments."""
    pid, terminal = pty.fork()
    if pid == 0:
        _run([str(word) for word in words], cwd, columns, env)
    received = b""
    try:
        while part := os.read(terminal, 1 << 16):
            received += part
    except OSError:  # Linux: the other side has been closed
        pass
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return received.decode().replace("\r\n", "\n")


def _run(words: list[str], cwd: Path, columns: int, env: dict[str, str]) -> None:
    """Be `swarmtest`; never return."""
    import sys

    try:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.chdir(cwd)
        for name in ("COLUMNS", "LINES", "NO_COLOR", "SWARMTEST_STORE"):
            os.environ.pop(name, None)
        os.environ |= {"TERM": "xterm-256color"} | env
        # pytest has replaced the streams with its own, which lead to files.
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(fd, "rw"[fd > 0]) for fd in (0, 1, 2))
        sys.argv[1:] = words
        from swarmtest.ui.cli import main

        main()
    except SystemExit:
        pass
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(0)
