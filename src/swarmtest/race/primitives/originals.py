"""Python's own locks, threads and clocks, saved before anything is replaced."""

from __future__ import annotations

import _thread
import os
import queue
import threading
import time

raw_lock = _thread.allocate_lock
raw_lock_class = threading.Lock
RAW_LOCK_TYPE = type(raw_lock())
RAW_RLOCK_TYPE = _thread.RLock
raw_rlock = threading.RLock
raw_sleep = time.sleep
raw_monotonic = time.monotonic
raw_time = time.time
raw_perf_counter = time.perf_counter
raw_monotonic_ns = time.monotonic_ns
raw_time_ns = time.time_ns
raw_perf_counter_ns = time.perf_counter_ns
raw_exit = os._exit
raw_simple_queue = queue.SimpleQueue
get_ident = _thread.get_ident

thread_start = threading.Thread.start
thread_join = threading.Thread.join
thread_is_alive = threading.Thread.is_alive
