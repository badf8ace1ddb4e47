"""Clocks and sleep: those of the run, for its threads."""

from __future__ import annotations

from swarmtest.threads.policy import current
from swarmtest.threads.raw import (
    raw_monotonic,
    raw_monotonic_ns,
    raw_perf_counter,
    raw_perf_counter_ns,
    raw_sleep,
    raw_time,
    raw_time_ns,
)

_NANO = 1_000_000_000


def sleep(seconds: float) -> None:
    """`time.sleep`."""
    policy = current.policy
    if policy is None:
        raw_sleep(seconds)
    else:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        policy.sleep(seconds)


def monotonic() -> float:
    """`time.monotonic`."""
    policy = current.policy
    return raw_monotonic() if policy is None else policy.monotonic()


def time() -> float:
    """`time.time`."""
    policy = current.policy
    return raw_time() if policy is None else policy.time()


def perf_counter() -> float:
    """`time.perf_counter`."""
    policy = current.policy
    return raw_perf_counter() if policy is None else policy.monotonic()


def monotonic_ns() -> int:
    """`time.monotonic_ns`."""
    policy = current.policy
    return raw_monotonic_ns() if policy is None else round(policy.monotonic() * _NANO)


def time_ns() -> int:
    """`time.time_ns`."""
    policy = current.policy
    return raw_time_ns() if policy is None else round(policy.time() * _NANO)


def perf_counter_ns() -> int:
    """`time.perf_counter_ns`."""
    policy = current.policy
    return raw_perf_counter_ns() if policy is None else round(policy.monotonic() * _NANO)
