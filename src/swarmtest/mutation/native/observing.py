"""What a test makes a program do, as a value: a mutant is killed if it is another one.

Seen are how each step ended, what it printed, and the files that are left in the test's directory.
Names of directories that are others in every run are taken out of all of these.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarmtest.mutation.matrix import CRASHED, FAILED, PASSED, SLOW
from swarmtest.subjects.command.calling import Caller
from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.outcomes import Outcome
from swarmtest.subjects.command.scratch import Scratch
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.stepping import Stepper

_TIMES = 10.0
"""How much longer than the original a mutant may take ..."""
_AT_LEAST = 1.0
"""... but so many seconds in any case ..."""
_AT_LEAST_CPU = 0.1
"""... and so many of CPU time, which says more on a busy machine."""


@dataclass(frozen=True)
class Seen:
    """What was seen of one run."""

    digest: bytes
    """The same means: nothing to tell the runs apart."""
    seconds: float
    cpu_seconds: float
    timed_out: bool
    crashed: bool
    broken: str = ""
    """Why a step could not be started at all."""

    @property
    def limit(self) -> float:
        """The seconds that a mutant has for each step of the same test."""
        return max(_AT_LEAST, _TIMES * self.seconds)

    @property
    def cpu_limit(self) -> float:
        """The same of CPU time."""
        return max(_AT_LEAST_CPU, _TIMES * self.cpu_seconds)

    def outcome(self, mutant: Seen) -> int:
        """What a mutant's run is beside this one of the original: an entry of a kill matrix."""
        if mutant.digest == self.digest:
            return PASSED
        if mutant.timed_out and not self.timed_out:
            return SLOW
        return CRASHED if mutant.crashed and not self.crashed else FAILED


class Observer:
    """Runs the steps of a command subject with programs that are built in other directories."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self.scratch = Scratch()

    def see(
        self,
        test: Any,
        here: Path,
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Seen:
        """Run a test (JSON data) with the programs in `here`; `limit`: seconds for each step."""
        steps = tuple(_changed(step, env or {}, limit) for step in self._spec.steps)
        spec = replace(self._spec, path=here / self._spec.path.name, steps=steps)
        stepper = Stepper(spec, self.scratch, Caller(self.scratch, spec.here))
        digest = hashlib.blake2b(digest_size=16)
        began = time.monotonic()
        names = (spec.here.encode(), b"{here}")
        stepped = stepper.run(
            CommandTest.from_json(test), lambda directory: _files(directory, names, digest)
        )
        seconds = time.monotonic() - began
        outcomes = list(stepped.outcomes.values())
        for outcome in outcomes:
            digest.update(repr(_told(outcome)).encode())
        broken = next((one.skipped for one in outcomes if one.broken), "")
        return Seen(
            digest.digest(),
            seconds,
            stepped.cpu_seconds,
            any(_timed_out(one) for one in outcomes),
            any(one.signal for one in outcomes),
            broken,
        )


def _changed(step: Step, env: Mapping[str, str], limit: float | None) -> Step:
    """A step as mutants run it: without coverage, with another environment and time limit."""
    timeout = step.call.timeout if limit is None else min(limit, step.call.timeout)
    call = replace(step.call, env={**step.call.env, **env}, timeout=timeout)
    return replace(step, call=call, cover="")


def _timed_out(outcome: Outcome) -> bool:
    return outcome.timed_out or outcome.signal == signal.SIGPROF


def _told(outcome: Outcome) -> tuple[object, ...]:
    if _timed_out(outcome):
        return outcome.name, "timeout"  # how far it came is a matter of luck
    how = (outcome.status, outcome.signal, outcome.skipped)
    return (outcome.name, *how, outcome.stdout, outcome.stderr)


def _files(directory: Path, names: tuple[bytes, bytes], digest: Any) -> None:
    """Hash all that is in a directory."""
    own = str(directory).encode()
    for place, folders, files in os.walk(directory):
        folders.sort()
        for name in sorted([*files, *folders]):
            path = os.path.join(place, name)
            digest.update(os.path.relpath(path, directory).encode(errors="surrogateescape") + b"\0")
            if os.path.islink(path):
                digest.update(os.readlink(path).encode(errors="surrogateescape"))
            elif os.path.isfile(path):
                content = Path(path).read_bytes() if os.access(path, os.R_OK) else b""
                content = content.replace(own, b"{dir}").replace(*names)
                digest.update(hashlib.blake2b(content).digest())
