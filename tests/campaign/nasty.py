"""A program that does, in some tests, what the environment variable STRIKE names.

With STRIKE=mark it only raises: so the trials that strike are known without any crash.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import marshal
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from swarmtest import Machine, action, integers

STRIKE = os.environ.get("STRIKE", "mark")


class Unprintable(Exception):
    def __init__(self):
        super().__init__(lambda: "cannot be pickled")

    def __str__(self):
        raise ValueError("no text for you")

    __repr__ = __str__

    def __reduce__(self):
        raise TypeError("no pickle for you")


class ExitsWhenPrinted(Exception):
    def __str__(self):
        sys.exit(5)


class Unexaminable(Exception):
    def __getattribute__(self, name):
        raise ValueError("no attribute for you")


class WithoutClass(Exception):
    @property  # type: ignore[misc]
    def __class__(self):
        raise ValueError("no class for you")


def overwrite_descriptors():
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3, 64):
        os.dup2(null, descriptor)


def write_to_descriptors():
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"junk" * 50)


def broken(*_args, **_options):
    raise RuntimeError("replaced")


def replace_builtins():
    for name in ("isinstance", "len", "open", "tuple", "zip"):
        setattr(builtins, name, broken)


def replace_functions():
    """What happens here is that of the strike `mark`, and nothing else may change."""
    os.write = os.getpid = time.monotonic_ns = time.process_time_ns = marshal.dumps = broken
    raise RuntimeError("functions are replaced")


def loop():
    while True:
        pass


def close_everything():
    os.closerange(0, 256)


def forks_and_child_returns():
    """What a forgotten exit after fork does: two processes go on."""
    if os.fork() == 0:
        raise SystemExit(0)
    raise RuntimeError("the parent goes on")


def fork_and_linger():
    """Like multiprocessing: a grandchild is alive, with all our files open, when we die."""
    if os.fork() == 0:
        time.sleep(1000)
        os._exit(0)
    ctypes.string_at(0)


def handle_all_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    loop()


def raise_(error):
    raise error


def noisy():
    for _ in range(200):
        os.write(1, b"x" * 65536)
        os.write(2, b"y" * 65536)
    print("z" * 10_000_000)
    raise RuntimeError("noisy")


def with_threads():
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(1000,)).start()
    raise RuntimeError("threads are left")


def change_directory():
    os.chdir("/")
    raise RuntimeError("elsewhere")


def in_a_forked_process():
    pid = os.fork()
    if pid == 0:
        os._exit(9)
    os.waitpid(pid, 0)
    raise RuntimeError("the other one exited")


def subprocess_left():
    subprocess.Popen(["sleep", "1000"])
    raise RuntimeError("a process is left")


STRIKES: dict[str, Callable[[], object]] = {
    "mark": lambda: raise_(RuntimeError("mark")),
    "segfault": lambda: ctypes.string_at(0),
    "os_exit": lambda: os._exit(3),
    "os_exit_0": lambda: os._exit(0),
    "sys_exit": lambda: sys.exit("bye"),
    "abort": os.abort,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "kill_group": lambda: os.killpg(0, signal.SIGTERM),
    "loop": loop,
    "loop_in_sort": lambda: sorted([1, 2], key=lambda _: loop()),
    "loop_in_regex": lambda: re.match(r"(a+)+$", "a" * 50 + "b"),
    "long_c_call": lambda: pow(3, 10**9),
    "memory": lambda: [bytearray(1 << 24) for _ in range(1 << 12)],
    "unprintable": lambda: raise_(Unprintable()),
    "exits_when_printed": lambda: raise_(ExitsWhenPrinted()),
    "unexaminable": lambda: raise_(Unexaminable()),
    "without_class": lambda: raise_(WithoutClass()),
    "overwrite_descriptors": overwrite_descriptors,
    "write_to_descriptors": write_to_descriptors,
    "replace_builtins": replace_builtins,
    "replace_functions": replace_functions,
    "kill_parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "end_parent": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "stop_parent": lambda: os.kill(os.getppid(), signal.SIGSTOP),
    "replace_open": lambda: setattr(builtins, "open", broken),
    "surrogate": lambda: raise_(ValueError("bad text \ud800 here")),
    "long_message": lambda: raise_(ValueError("ab 'c " * 1_000_000)),
    "keyboard_interrupt": lambda: raise_(KeyboardInterrupt()),
    "generator_exit": lambda: raise_(GeneratorExit()),
    "recursion": lambda: STRIKES["recursion"](),
    "close_everything": close_everything,
    "close_and_loop": lambda: (close_everything(), loop()),
    "noisy": noisy,
    "forks_and_child_returns": forks_and_child_returns,
    "fork_and_linger": fork_and_linger,
    "in_a_forked_process": in_a_forked_process,
    "with_threads": with_threads,
    "change_directory": change_directory,
    "handle_all_signals": handle_all_signals,
    "subprocess_left": subprocess_left,
}


class Nasty(Machine):
    steps = 4

    def start(self):
        with open(os.devnull):
            pass

    @action(value=integers(0, 9))
    def work(self, value):
        self.event(f"worked {value}")

    @action(value=integers(0, 11))
    def strike(self, value):
        if value == 7:
            STRIKES[STRIKE]()

    @action
    def rest(self):
        pass
