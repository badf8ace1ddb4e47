"""Compare two releases of a package, each in a process of its own.

Both are installed beside each other, into a cache. A test is generated with the first release, and
then runs in both; at each step results, exceptions and states are compared. What one release does
to its process does not reach the other.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.processes import tree
from swarmtest.processes.caches import cache_directory, make_private
from swarmtest.processes.commands import capture
from swarmtest.subjects.subject import Subject

_INSTALL_SECONDS = 600.0
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,-]*\])?==[\w.+!-]+")
_SIGNALS = frozenset(map(int, signal.Signals))
_STEP_SECONDS = 5.0
"""How long a release may take for one test; then it hangs."""
_LOAD_SECONDS = 60.0
"""The same for the first answer: a process that starts imports swarmtest and the release."""


def installed(requirement: str) -> Path:
    """Return the directory of the cache that holds a release; install it if it is not there.

    Raise `UserError` if pip cannot install it.
    """
    if not _REQUIREMENT.fullmatch(requirement):
        raise UserError(f"a release is named as PACKAGE==VERSION, not {requirement!r}")
    directory = release_directory(requirement)
    done = directory / ".complete"
    unsafe = make_private(directory)
    if unsafe:
        raise UserError(f"cannot install releases below {directory}: {unsafe}")
    if not done.exists():
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        ended = capture(
            [*words, "--target", str(directory), "--upgrade", requirement], _INSTALL_SECONDS
        )
        if ended.status != 0:
            lines = [line for line in ended.stderr.decode(errors="replace").splitlines() if line]
            reason = next((line for line in lines if "ERROR" in line), "pip failed")
            raise UserError(f"cannot install {requirement}: {reason.removeprefix('ERROR: ')}")
        done.touch()
    return directory


def is_installed(requirement: str) -> bool:
    """Return whether a release was installed for a comparison.

    >>> is_installed("no-such-package==1.0")
    False
    """
    if not _REQUIREMENT.fullmatch(requirement):
        return False
    return (release_directory(requirement) / ".complete").exists()


def release_directory(requirement: str) -> Path:
    """Return where in the cache a release is, or will be, installed."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return cache_directory("releases", version, requirement)


class ReleaseProcess:
    """A process in which one release is imported; it answers questions about tests."""

    def __init__(self, release: str, harness: dict[str, Any]) -> None:
        """Describe the process; it is started when it is first asked."""
        self.release = release
        self._directory = installed(release)
        self._harness = harness
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._rest = b""
        self._answered = False
        self._strays: tree.Supervision | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; what ended the process is an answer too (`died`)."""
        if self._process is not None and self._owner == os.getpid() and self._process.poll():
            self.close()  # a release killed the shell, its parent
        if self._process is None or self._owner != os.getpid():
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process)
        except BrokenPipeError:
            line = b""
        if not line:
            return {"died": self._end(process)}
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):  # the release has written to a descriptor of ours
            self.close()
            return {"died": "it disturbed its answers"}
        return answer

    def _start(self) -> None:
        if self._owner != os.getpid():
            atexit.register(self.close)
        self._strays = tree.Supervision()  # what the release starts does not outlive it
        # A release that kills its parent meets a shell, not this process.
        words = [sys.executable, "-m", "swarmtest.subjects.oracles.release_process"]
        self._process = tree.spawn(
            ["sh", "-c", '"$@"; exit $?', "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._owner, self._rest, self._answered = os.getpid(), b"", False
        tree.keep(self._process.pid)
        assert self._process.stdin is not None
        start = {"directory": str(self._directory), "harness": self._harness}
        self._process.stdin.write(json.dumps(start).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """Return the next line; nothing if the process ended or hangs."""
        assert process.stdout is not None
        while b"\n" not in self._rest:
            seconds = _STEP_SECONDS if self._answered else _LOAD_SECONDS
            if not select.select([process.stdout], [], [], seconds)[0]:
                return b""
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return b""
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        self._answered = True
        return line

    def _end(self, process: subprocess.Popen[bytes]) -> str:
        """Return how a process ended that gave no answer, and end it if it still runs."""
        self._process = None
        try:
            status = process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._kill(process)
            return "hangs"
        self._clean_up(process)
        number = status - 128 if status > 128 else -status  # of a signal, as the shell tells it
        return signal.Signals(number).name if number in _SIGNALS else f"exit status {status}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._owner == os.getpid():
            self._kill(self._process)
            self._process = None

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            tree.kill_and_await(process.pid)
            process.wait()
        self._clean_up(process)

    def _clean_up(self, process: subprocess.Popen[bytes]) -> None:
        if self._strays is not None:
            self._strays.end()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what could not be sent is of no use any more
                if pipe is not None:
                    pipe.close()


class ReleasesSubject(Subject):
    """The subject that runs the same tests with two releases of a package."""

    weighted = True
    suffix = ".py"

    def __init__(self, text: str, harness: dict[str, Any]) -> None:
        """Create the subject from ``diff RELEASE RELEASE HARNESS``."""
        words = text.split()
        if len(words) != 4:
            raise UserError(f"a comparison is named as diff RELEASE RELEASE HARNESS, not {text!r}")
        self.name = text
        harness = harness | {"text": words[3]}
        self._releases = [ReleaseProcess(word, harness) for word in words[1:3]]
        old, new = (self._ask(each, {"ask": "space"}) for each in self._releases)
        if "died" in old or "died" in new:
            which, answer = (words[1], old) if "died" in old else (words[2], new)
            raise UserError(f"{which}: loading {words[3]} ended with: {answer['died']}")
        self.space = Space.from_json(old["space"])
        of_old, of_new = old["parameters"], new["parameters"]
        self._both = {name for name in of_old if of_old[name] == of_new.get(name)}
        self.changed = tuple(sorted((of_old.keys() | of_new.keys()) - self._both))
        """Actions that only one release has, or that have other parameters; they are left out."""
        if not self._both:
            raise UserError(f"{words[3]} has no action in common with both releases")
        for release in self._releases:
            release.close()

    def _ask(self, release: ReleaseProcess, question: dict[str, Any]) -> dict[str, Any]:
        answer = release.ask(question)
        if "error" in answer:
            raise UserError(f"{release.release}: {answer['error']}")
        return answer

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test that the first release gives for a configuration and a seed."""
        question = {"ask": "test", "configuration": configuration.to_json(), "seed": seed}
        answer = self._ask(self._releases[0], question)
        if "died" in answer:  # while the test was made: its steps are not known
            raise_nothing = f"{self._releases[0].release} ended its process ({answer['died']})"
            from swarmtest.subjects.subject import NoTest

            raise NoTest(raise_nothing)
        test = answer["test"]
        test["steps"] = [step for step in test["steps"] if step[0] in self._both]
        return test

    def run(self, test: Any) -> Result:
        """Run a test with both releases, and compare what they did."""
        answers = [self._ask(each, {"ask": "run", "test": test}) for each in self._releases]
        used = tuple(
            sum(step[0] == name for step in test["steps"]) for name in self.space.feature_names
        )
        fault = self._difference(*answers)
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        return Result(verdict, fault, used, (), len(test["steps"]), test=test)

    def _difference(self, old: dict[str, Any], new: dict[str, Any]) -> Fault | None:
        names = [release.release for release in self._releases]
        ends = old.get("died"), new.get("died")
        if ends[0] != ends[1]:
            which, how = (names[0], ends[0]) if ends[0] else (names[1], ends[1])
            return Fault("differential", f"{which} ended its process ({how}), the other did not")
        steps = [{step["at"]: step for step in each.get("steps", ())} for each in (old, new)]
        for at in sorted(steps[0].keys() | steps[1].keys()):
            before, after = steps[0].get(at), steps[1].get(at)
            if before is None or after is None:  # it needs what only one release has returned
                action = (before or after or {})["action"]
                only = names[0] if before else names[1]
                return Fault("differential", f"{action}: possible only with {only}")
            if before == after:
                continue
            action = before["action"]
            for part, words in (("did", "another outcome"), ("state", "another state after it")):
                if before[part] != after[part]:
                    kinds = [_kind(each[part]) for each in (before, after)]
                    shown = f": {kinds[0]}, then {kinds[1]}" if kinds[0] != kinds[1] else ""
                    details = "\n".join(
                        f"{name}: {each[part]}"
                        for name, each in zip(names, (before, after), strict=True)
                    )
                    return Fault("differential", f"{action}: {words}{shown}", details)
        return None

    def size(self, test: Any) -> int:
        """Return how many steps a test has."""
        return len(test["steps"])

    def code(self, test: Any) -> str:
        """Return a test as a program, which runs with either release."""
        answer = self._releases[0].ask({"ask": "code", "test": test})
        return str(answer.get("code", json.dumps(test, indent=1)))


def _kind(shown: str) -> str:
    """Return what an outcome is, without its values.

    >>> _kind("raised KeyError: 3"), _kind("returned 7")
    ('raised KeyError', 'returned a value')
    """
    if shown.startswith("raised "):
        return shown.partition(":")[0]
    return "returned a value" if shown.startswith("returned") else "a state"
