"""A ring buffer in C, called through ctypes, and a machine that compares it with a deque."""

import ctypes
import subprocess
from collections import deque
from pathlib import Path

from swarmtest import Machine, action, integers

SOURCE = Path(__file__).with_name("ring.c")
LIBRARY = SOURCE.with_name("libring.so")
if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", LIBRARY, SOURCE], check=True)

ring = ctypes.CDLL(str(LIBRARY))
ring.ring_new.restype = ctypes.c_void_p
ring.ring_free.argtypes = ring.ring_pop.argtypes = [ctypes.c_void_p]
ring.ring_push.argtypes = [ctypes.c_void_p, ctypes.c_int]


class RingMachine(Machine):
    steps = 40

    def start(self):
        self.ring = ring.ring_new()
        self.model = deque()

    def stop(self):
        ring.ring_free(self.ring)

    @action(value=integers(0, 99))
    def push(self, value):
        if ring.ring_push(self.ring, value) == 0:
            self.model.append(value)
        assert len(self.model) <= 8, "a full ring took one more"

    @action
    def pop(self):
        expected = self.model.popleft() if self.model else -1
        assert ring.ring_pop(self.ring) == expected

    @action
    def drain(self):
        while self.model:
            self.pop()
