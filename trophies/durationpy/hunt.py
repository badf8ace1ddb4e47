"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

from datetime import timedelta

import durationpy

from swarmtest import Machine, action, integers


class RoundTrip(Machine):
    @action(minutes=integers(0, 90), seconds=integers(0, 2), micros=integers(0, 999))
    def write(self, minutes, seconds, micros):
        duration = timedelta(minutes=minutes, seconds=seconds, microseconds=micros)
        durationpy.from_str(durationpy.to_str(duration))
