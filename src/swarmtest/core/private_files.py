"""Files that only the process that opened them may use: a forked test must not reach them.

A fork has the descriptors of its parent. A test that writes to descriptors that are not its own
would write into the store.
"""

from __future__ import annotations

import contextlib
import os

_paths: set[str] = set()


def keep_private(path: str) -> None:
    """Have forked tests not reach a file, nor those beside it whose names begin with its name."""
    _paths.add(os.path.realpath(path))


def hide_private_files() -> None:
    """Let the descriptors of private files be those of the null device, in a fork (Linux).

    Their numbers stay taken: objects of the parent may still close them.
    """
    if not _paths:
        return
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{name}").startswith(tuple(_paths)):
                    os.dup2(null, int(name), inheritable=False)
        os.close(null)
