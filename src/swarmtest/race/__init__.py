"""Concurrency testing: controlled schedules and noise for threaded programs.

A program is run many times. Either a scheduler decides which of its threads runs at each step
(`control`), or the threads run freely and are delayed at random places (`free`). Probes woven into
the program (`weaving`) and replacements for Python's locks, threads and clocks (`primitives`) make
both possible. Programs that are not written in Python are tested with noise only (`native`).
"""

from swarmtest._exports import exports_of

_RENAMED = {
    "Recording": "AccessRecording",
    "Replay": "ScheduleReplay",
    "Run": "ControlledRun",
    "Scheduler": "ThreadScheduler",
}

__getattr__, __dir__ = exports_of(__name__, renamed=_RENAMED)
