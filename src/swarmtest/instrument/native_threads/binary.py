"""Whether our library can be loaded into a program, and as what: seen in its ELF file."""

from __future__ import annotations

import os
import re
import stat
import struct
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.native_threads.building import PLAIN

_SANITIZER = re.compile(rb"libtsan\.so\.\d+(?=\0)")
_INTERPRETER = 3
_CAPABILITIES = "security.capability"
_MAGIC = b"\x7fELF"


def library_name(program: str) -> str:
    """The name that the library needs for a program; why it cannot be loaded is one clear line.

    >>> library_name("/bin/sh")
    'libswarmtest-threads.so'
    """
    data = Path(program).read_bytes()
    if not data.startswith(_MAGIC):
        return PLAIN  # a script: its interpreter passes the library on
    own = Path("/proc/self/exe").read_bytes()[:64]
    if data[4:6] != own[4:6] or data[18:20] != own[18:20]:
        raise UserError(
            f"{program} was built for another machine than this Python: the library for threads "
            "cannot be loaded into it"
        )
    if not _has_interpreter(data):
        raise UserError(
            f"{program} is statically linked, so no library can be loaded before its own: link it "
            "without -static"
        )
    _check_rights(program)
    found = _SANITIZER.search(data)
    if found:
        return found[0].decode()
    if b"__tsan_init" in data:
        raise UserError(
            f"{program} has ThreadSanitizer's runtime linked in, which ours cannot replace: link "
            "with gcc -fsanitize=thread and without -static-libtsan (objects of clang too)"
        )
    return PLAIN


def _has_interpreter(data: bytes) -> bool:
    """Whether the program asks for a dynamic loader."""
    order = "<" if data[5] == 1 else ">"
    if data[4] == 2:
        (start,) = struct.unpack_from(f"{order}Q", data, 32)
        size, count = struct.unpack_from(f"{order}HH", data, 54)
    else:
        (start,) = struct.unpack_from(f"{order}I", data, 28)
        size, count = struct.unpack_from(f"{order}HH", data, 42)
    kinds = (struct.unpack_from(f"{order}I", data, start + i * size)[0] for i in range(count))
    return _INTERPRETER in kinds


def _attributes(program: str) -> list[str]:
    try:
        return os.listxattr(program)
    except OSError:  # not every file system has them
        return []


def _check_rights(program: str) -> None:
    status = os.stat(program)
    other_user = status.st_mode & stat.S_ISUID and status.st_uid != os.getuid()
    other_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getgid()
    if other_user or other_group or _CAPABILITIES in _attributes(program):
        raise UserError(
            f"{program} runs with rights of its own (setuid, setgid or capabilities), so the "
            "system loads no library of ours into it: test a copy without them"
        )
