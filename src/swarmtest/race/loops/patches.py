"""What is put into asyncio while runs may be controlled; without a policy it does nothing."""

from __future__ import annotations

import asyncio
import functools
from asyncio import base_events, selector_events
from collections.abc import Callable
from typing import Any

from swarmtest.race.loops.stuck import OWNER
from swarmtest.race.loops.tasks import RAW_FUTURE, RAW_TASK, NumberedFuture, NumberedTask
from swarmtest.race.primitives.policy import current

_raw_run_once = base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]
_raw_call_at = base_events.BaseEventLoop.call_at
_raw_report = base_events.BaseEventLoop.call_exception_handler
_raw_write = selector_events.BaseSelectorEventLoop._write_to_self  # type: ignore[attr-defined]
_raw_acquire = asyncio.Lock.acquire
_raw_release = asyncio.Lock.release


@functools.wraps(_raw_run_once)
def _run_once(self: Any) -> None:
    policy = current.policy
    if policy is None:
        _raw_run_once(self)
    else:
        policy.runs_loop(self, lambda: _raw_run_once(self))


@functools.wraps(_raw_call_at)
def _call_at(self: Any, when: float, callback: Any, *args: Any, **options: Any) -> Any:
    handle = _raw_call_at(self, when, callback, *args, **options)
    if current.policy is not None:
        current.policy.sets_timer(handle)
    return handle


@functools.wraps(_raw_report)
def _report(self: Any, context: dict[str, Any]) -> None:
    policy = current.policy
    if policy is None:
        _raw_report(self, context)
    else:
        policy.loop_reports(self, context, _raw_report)


@functools.wraps(_raw_write)
def _write_to_self(self: Any) -> None:
    policy = current.policy
    if policy is None or not policy.calls_loop(self):
        _raw_write(self)


@functools.wraps(_raw_acquire)
async def _acquire(self: Any) -> Any:
    taken = await _raw_acquire(self)
    if current.policy is not None:
        setattr(self, OWNER, asyncio.current_task())
    return taken


@functools.wraps(_raw_release)
def _release(self: Any) -> None:
    if current.policy is not None:
        setattr(self, OWNER, None)
    _raw_release(self)


METHODS: list[tuple[type, str, Callable[..., Any]]] = [
    (base_events.BaseEventLoop, "_run_once", _run_once),
    (base_events.BaseEventLoop, "call_at", _call_at),
    (base_events.BaseEventLoop, "call_exception_handler", _report),
    (selector_events.BaseSelectorEventLoop, "_write_to_self", _write_to_self),
    (asyncio.Lock, "acquire", _acquire),
    (asyncio.Lock, "release", _release),
]
NAMES: dict[int, type] = {id(RAW_TASK): NumberedTask, id(RAW_FUTURE): NumberedFuture}
"""The classes that take the places of asyncio's own, by the identity of these."""
MODULES = (asyncio, asyncio.tasks, asyncio.futures)
