"""pyfakefs, a file system in memory: the calls of `os` and of files are the features.

As in the papers' tests of YAFFS2, all calls change one complex state. Names come from a small tree,
so that calls meet; what the file system refuses with an error of its own is a correct outcome. The
oracle is that no other exception comes, and that what `walk` lists can be asked about.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
from typing import Any

from pyfakefs import helpers
from pyfakefs.fake_filesystem import FakeFilesystem, set_uid
from pyfakefs.fake_filesystem_shutil import FakeShutilModule
from pyfakefs.fake_open import FakeFileOpen
from pyfakefs.fake_os import FakeOsModule
from pyfakefs.fake_pathlib import FakePathlibModule

from swarmtest import Machine, Pool, action, binary, booleans, consumes, integers, sampled_from

NAMES = ("a", "b", "c")
REFUSED = (OSError, ValueError, io.UnsupportedOperation)
"""Of `ValueError`: an operation on a closed file. `Path.resolve` calls a loop a `RuntimeError`."""
MODES = ("r", "w", "a", "r+", "w+", "x", "rb", "wb", "rb+")
FLAGS = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)
MORE_FLAGS = (0, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY)
PERMISSIONS = (0o777, 0o755, 0o644, 0o555, 0o444, 0o300, 0o000)


def path(rng: Any) -> str:
    """A path of one to three names, mostly absolute."""
    names = [rng.choice(NAMES) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    if rng.random() < 0.1:
        names.insert(rng.randrange(len(names) + 1), "..")
    return ("" if rng.random() < 0.2 else "/") + "/".join(names)


class FakeFiles(Machine):
    """An empty file system, its files and its file descriptors."""

    steps = 50

    files = Pool()
    descriptors = Pool()

    def start(self) -> None:
        set_uid(1000)
        self.system = FakeFilesystem(path_separator="/", total_size=2000)
        self.os = FakeOsModule(self.system)
        self.open_file = FakeFileOpen(self.system)
        self.shutil = FakeShutilModule(self.system)
        self.pathlib: Any = FakePathlibModule(self.system)  # type: ignore[no-untyped-call]
        self.system.chmod("/", 0o777, force_unix_mode=True)

    def stop(self) -> None:
        for file in self.files:
            with contextlib.suppress(OSError, ValueError):
                file.close()
        helpers.reset_ids()

    # Files

    @action(path=path, mode=sampled_from(MODES), into=files, raises=REFUSED)
    def open(self, path: str, mode: str) -> Any:
        return self.open_file(path, mode)

    @action(file=consumes(files), raises=REFUSED)
    def close(self, file: Any) -> None:
        file.close()

    @action(file=files, size=integers(-1, 40), raises=REFUSED)
    def read(self, file: Any, size: int) -> None:
        file.read(size)

    @action(file=files, raises=REFUSED)
    def read_lines(self, file: Any) -> None:
        for _ in file:
            pass

    @action(file=files, data=binary(max_size=60), raises=REFUSED)
    def write(self, file: Any, data: bytes) -> None:
        file.write(data if "b" in file.mode else data.decode("latin-1"))

    @action(file=files, offset=integers(-5, 40), whence=sampled_from((0, 0, 1, 2)), raises=REFUSED)
    def seek(self, file: Any, offset: int, whence: int) -> None:
        file.seek(offset, whence)

    @action(file=files, size=integers(0, 60), raises=REFUSED)
    def truncate_file(self, file: Any, size: int) -> None:
        file.truncate(size)

    @action(file=files, raises=REFUSED)
    def flush(self, file: Any) -> None:
        file.flush()

    @action(file=files, raises=REFUSED)
    def tell(self, file: Any) -> None:
        file.tell()

    # File descriptors

    @action(
        path=path,
        access=sampled_from(FLAGS),
        more=sampled_from(MORE_FLAGS),
        into=descriptors,
        raises=REFUSED,
    )
    def os_open(self, path: str, access: int, more: int) -> int:
        return self.os.open(path, access | more)

    @action(descriptor=consumes(descriptors), raises=REFUSED)
    def os_close(self, descriptor: int) -> None:
        self.os.close(descriptor)

    @action(descriptor=descriptors, size=integers(0, 40), raises=REFUSED)
    def os_read(self, descriptor: int, size: int) -> None:
        self.os.read(descriptor, size)

    @action(descriptor=descriptors, data=binary(max_size=60), raises=REFUSED)
    def os_write(self, descriptor: int, data: bytes) -> None:
        self.os.write(descriptor, data)

    @action(descriptor=descriptors, size=integers(0, 60), raises=REFUSED)
    def ftruncate(self, descriptor: int, size: int) -> None:
        self.os.ftruncate(descriptor, size)

    @action(descriptor=descriptors, raises=REFUSED)
    def fstat(self, descriptor: int) -> None:
        self.os.fstat(descriptor)

    @action(descriptor=descriptors, into=descriptors, raises=REFUSED)
    def dup(self, descriptor: int) -> int:
        return self.os.dup(descriptor)

    # Directories

    @action(path=path, mode=sampled_from(PERMISSIONS), raises=REFUSED)
    def mkdir(self, path: str, mode: int) -> None:
        self.os.mkdir(path, mode)

    @action(path=path, exist_ok=booleans(), raises=REFUSED)
    def makedirs(self, path: str, exist_ok: bool) -> None:
        self.os.makedirs(path, exist_ok=exist_ok)

    @action(path=path, raises=REFUSED)
    def rmdir(self, path: str) -> None:
        self.os.rmdir(path)

    @action(path=path, raises=REFUSED)
    def removedirs(self, path: str) -> None:
        self.os.removedirs(path)

    @action(path=path, raises=REFUSED)
    def chdir(self, path: str) -> None:
        self.os.chdir(path)

    @action(path=path, raises=REFUSED)
    def listdir(self, path: str) -> None:
        self.os.listdir(path)

    @action(path=path, raises=REFUSED)
    def scandir(self, path: str) -> None:
        for entry in self.os.scandir(path):
            entry.is_dir()
            entry.stat(follow_symlinks=False)

    @action(top_down=booleans(), follow=booleans(), raises=REFUSED)
    def walk(self, top_down: bool, follow: bool) -> None:
        # Links that lead back make a walk that follows them go on nearly without end.
        walk = self.os.walk("/", top_down, followlinks=follow)
        for directory, _, files in itertools.islice(walk, 50):
            for name in files:
                self.os.lstat(self.os.path.join(directory, name))

    # Names

    @action(source=path, target=path, raises=REFUSED)
    def rename(self, source: str, target: str) -> None:
        self.os.rename(source, target)

    @action(source=path, target=path, raises=REFUSED)
    def replace(self, source: str, target: str) -> None:
        self.os.replace(source, target)

    @action(source=path, target=path, raises=REFUSED)
    def link(self, source: str, target: str) -> None:
        self.os.link(source, target)

    @action(source=path, target=path, raises=REFUSED)
    def symlink(self, source: str, target: str) -> None:
        self.os.symlink(source, target)

    @action(path=path, raises=REFUSED)
    def readlink(self, path: str) -> None:
        self.os.readlink(path)

    @action(path=path, raises=REFUSED)
    def unlink(self, path: str) -> None:
        self.os.unlink(path)

    # Attributes

    @action(path=path, mode=sampled_from(PERMISSIONS), raises=REFUSED)
    def chmod(self, path: str, mode: int) -> None:
        self.os.chmod(path, mode)

    @action(path=path, user=integers(0, 2), raises=REFUSED)
    def chown(self, path: str, user: int) -> None:
        self.os.chown(path, user, user)

    @action(path=path, raises=REFUSED)
    def stat(self, path: str) -> None:
        self.os.stat(path)

    @action(path=path, raises=REFUSED)
    def lstat(self, path: str) -> None:
        self.os.lstat(path)

    @action(path=path, time=integers(0, 99), raises=REFUSED)
    def utime(self, path: str, time: int) -> None:
        self.os.utime(path, (time, time))

    @action(path=path, mode=sampled_from((os.F_OK, os.R_OK, os.W_OK, os.X_OK)), raises=REFUSED)
    def access(self, path: str, mode: int) -> None:
        self.os.access(path, mode)

    @action(path=path, name=sampled_from(("user.a", "user.b")), raises=REFUSED)
    def setxattr(self, path: str, name: str) -> None:
        self.os.setxattr(path, name, b"value")

    @action(path=path, name=sampled_from(("user.a", "user.b")), raises=REFUSED)
    def removexattr(self, path: str, name: str) -> None:
        self.os.removexattr(path, name)

    @action(mask=sampled_from((0, 0o22, 0o77)))
    def umask(self, mask: int) -> None:
        self.os.umask(mask)

    @action(user=sampled_from((0, 1, 1000)))
    def become(self, user: int) -> None:
        set_uid(user)

    @action(size=integers(0, 2000), raises=REFUSED)
    def resize_disk(self, size: int) -> None:
        self.system.set_disk_usage(size)

    # Modules on top of these

    @action(source=path, target=path, raises=REFUSED)
    def copy(self, source: str, target: str) -> None:
        data = self.pathlib.Path(source).read_bytes()
        self.pathlib.Path(target).write_bytes(data)

    @action(path=path, raises=REFUSED)
    def rmtree(self, path: str) -> None:
        self.shutil.rmtree(path)

    @action(path=path, pattern=sampled_from(("*", "*/*", "**/a", "a*")), raises=REFUSED)
    def glob(self, path: str, pattern: str) -> None:
        list(self.pathlib.Path(path).glob(pattern))

    @action(path=path, raises=(*REFUSED, RuntimeError))
    def resolve(self, path: str) -> None:
        # Not os.path.realpath: links that lead back make it take exponential time.
        self.pathlib.Path(path).resolve()
