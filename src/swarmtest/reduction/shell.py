"""A shell command as a criterion, as creduce and its kin take one: exit status 0 is interesting."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from swarmtest.errors import UserError

TOOK_TOO_LONG = 124
"""What ``timeout`` answers."""
_ENDS_AT_ONCE = {126: "cannot be run", 127: "was not found"}


class ShellCommand:
    """Interesting is what lets a command end with status 0.

    The parts are written, joined, to a file of the given name in a directory of its own; the
    command runs there, with the file's name as its last argument if it says ``{}`` nowhere. One
    that takes longer than `seconds` is ended with all its children, and not interesting.

    >>> ShellCommand("grep -q needle", name="hay.txt")([b"hay ", b"needle"])
    True
    """

    def __init__(self, command: str, name: str = "test", seconds: float = 10.0) -> None:
        if not command.strip():
            raise UserError("the command that tells what is interesting is empty")
        if name in ("", "..") or Path(name).name != name:
            raise UserError(f"{name!r} is no name for the file; one without a directory is needed")
        file = f"'{name}'" if "'" not in name else f'"{name}"'
        self._command = command.replace("{}", file) if "{}" in command else f"{command} {file}"
        self._name = name
        self._seconds = seconds

    def __call__(self, parts: Sequence[bytes | str], /) -> bool:
        return self.status(parts) == 0

    def reason(self, parts: Sequence[bytes | str]) -> str:
        """Why it is not met."""
        status = self.status(parts)
        if status == TOOK_TOO_LONG:
            return f"`{self._command}` takes more than {self._seconds:g} s"
        if status in _ENDS_AT_ONCE:
            return f"`{self._command}` {_ENDS_AT_ONCE[status]}"
        return f"`{self._command}` ends with status {status}, not 0"

    def status(self, parts: Sequence[bytes | str]) -> int:
        """How the command ended; `TOOK_TOO_LONG` if it had to be ended."""
        content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
        with tempfile.TemporaryDirectory(prefix="swarmtest-") as directory:
            (Path(directory) / self._name).write_bytes(content)
            process = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                return process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                return TOOK_TOO_LONG
            finally:
                _end_session(process)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it has left behind: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
