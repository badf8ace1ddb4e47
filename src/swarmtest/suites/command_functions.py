"""A test of commands as a function: the same steps on the same file, by the shell.

Said plainly are exit statuses, signals, time limits, and steps that have to agree. What a pattern,
a recogniser or a Python function judges is not, nor what a limit of memory does: such tests are
replayed by swarmtest.
"""

from __future__ import annotations

from typing import Any

from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.suites.functions import Function
from swarmtest.suites.suite import SuiteTest

_RUN = '''
def run(command, directory, expect=(0,), timeout=10):
    """Run a shell command: its exit status, which is expected, and its output."""
    command = command.replace("{here}", shlex.quote(str(HERE)))
    with subprocess.Popen(
        command,
        shell=True,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    status = process.returncode
    assert not expect or status in expect, f"{command}: {status}, {errors!r}"
    return status, output
'''
_IMPORTS = ("os", "shlex", "shutil", "signal", "subprocess")
_PLAIN_FAULTS = frozenset({"signal", "exit", "timeout", "differential"})


def of_commands(subject: Any, test: SuiteTest) -> Function | None:
    """The function; None if what is checked cannot be said plainly."""
    spec: Specification = subject.spec
    if not _is_plain(spec) or (test.fault and test.fault.kind not in _PLAIN_FAULTS):
        return None
    lines = subject.commands(test.data)
    if any("{here}" in line or f"'{spec.here}" in line for line in lines):
        return None
    saved = CommandTest.from_json(test.data)
    suffix = spec.generate.suffix
    name = f"{test.trial}{suffix}"
    agreeing = {step for group in spec.oracle.differential for step in group}
    body = [f"shutil.copy(DATA / {name!r}, tmp_path / 'test{suffix}')"]
    ran = []
    for number, (step, line) in enumerate(zip(spec.steps, lines, strict=True), 1):
        if saved.only and step.name not in saved.only:
            continue
        call = _call(step, line, spec.here)
        if step.name in agreeing:
            call = f"result{number} = {call}"
            ran.append((step.name, f"result{number}"))
        body.append(call)
    for group in spec.oracle.differential:
        results = [result for step, result in ran if step in group]
        body += [f"assert {' == '.join(results)}"] if len(results) > 1 else []
    return Function(
        "\n".join(body),
        frozenset(f"import {module}" for module in _IMPORTS),
        (_RUN,),
        "tmp_path",
        {name: saved.content},
    )


def _is_plain(spec: Specification) -> bool:
    oracle = spec.oracle
    if oracle.python or oracle.patterns or oracle.recognise:
        return False
    needed = {name for step in spec.steps for name in step.needs}
    for step in spec.steps:
        ignores = "ignore" in (step.on_crash, step.on_exit, step.on_timeout)
        if step.call.memory or step.on_timeout == "ignore" or (ignores and step.name in needed):
            return False
    return True


def _call(step: Step, line: str, here: str) -> str:
    """The call that runs a step; the directory of the TOML file is found from the test's."""
    words = [repr(line.replace(here, "{here}")), "tmp_path"]
    expect = step.call.expect
    if "ignore" in (step.on_crash, step.on_exit):
        expect = ()
    if expect != (0,):
        words.append(f"expect={expect!r}")
    if step.call.timeout != 10:
        words.append(f"timeout={step.call.timeout:g}")
    return f"run({', '.join(words)})"
