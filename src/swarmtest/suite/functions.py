"""Write a test as the body of a function, for each kind of subject.

Machines, classes, state machines of Hypothesis and functions of grammars are called; the commands
of a TOML file are run by the shell. A test that cannot be written as plain code is replayed by
swarmtest.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.subjects.api import ApiMachine
from swarmtest.subjects.command.specification import Specification, StepSection
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.generated import Runnable
from swarmtest.subjects.grammar.subject import GrammarSubject
from swarmtest.subjects.machine.code import code_of
from swarmtest.subjects.machine.compiled import invariants_of
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.machine.test import MachineTest
from swarmtest.subjects.subject import Subject
from swarmtest.suite.formatting import WIDTH
from swarmtest.suite.suite import SuiteTest

_DEADLY = frozenset({"signal", "exit", "timeout", "memory"})
_CHECK = "check(machine)"
_REPLAY = '''
def replay(name):
    """Run a saved test as swarmtest does, with all that its subject checks."""
    fault = SUBJECT.replay(json.loads((DATA / name).read_text())).fault
    assert fault is None, fault.details
'''


@dataclass(frozen=True)
class FunctionCode:
    """A test as code: the body of its function, and what that needs in the file."""

    body: str
    """The statements of the body."""
    imports: frozenset[str] = frozenset()
    """Lines like ``from shop import Shop``."""
    definitions: tuple[str, ...] = ()
    """Code that stands once before all tests: assignments, then functions."""
    arguments: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in the data directory, by name."""
    plain: bool = True
    """Whether it is plain code and not a replay by swarmtest."""


def is_deadly(subject: Subject, kind: str) -> bool:
    """Return whether a test of a fault of this kind ends, or hangs, the process that it runs in."""
    return kind in _DEADLY and not hasattr(subject, "commands")


def function_of(subject: Subject, test: SuiteTest) -> FunctionCode:
    """Return a test as a function; a test that cannot be written as plain code is replayed."""
    written: FunctionCode | None = None
    if isinstance(subject, MachineSubject):
        written = _of_machine(subject, test.data)
    elif isinstance(subject, GrammarSubject):
        written = _of_grammar(subject, test)
    elif hasattr(subject, "commands"):
        written = function_of_commands(subject, test)
    elif type(subject).__name__ == "RuleBasedSubject":
        written = _of_rules(subject, test.data)
    return written or function_by_replay(test)


def function_by_replay(test: SuiteTest) -> FunctionCode:
    """Return a function that lets swarmtest replay the test.

    It uses `SUBJECT`, which `output_files` defines.
    """
    name = f"{test.trial}.json"
    return FunctionCode(
        f"replay({name!r})",
        frozenset({"import json"}),
        (_REPLAY,),
        files={name: (json.dumps(test.data, indent=1) + "\n").encode()},
        plain=False,
    )


def _of_machine(subject: MachineSubject, data: Any) -> FunctionCode | None:
    # The invariants of a machine that runs in an event loop are checked at the end.
    unchecked = issubclass(subject.machine, ApiMachine) or subject.machine._in_loop
    names = () if unchecked else invariants_of(subject.machine)
    check = _check_function(
        "machine", [f"    assert machine.{name}() is not False" for name in names]
    )
    test = MachineTest.from_json(data)
    code = code_of(subject.machine, test, subject.actions, after_step=_CHECK if check else "")
    return _function_from_program(code, check)


def _of_rules(subject: Any, data: Any) -> FunctionCode | None:
    from swarmtest.subjects.hypothesis.code import code_of as code_of_rules
    from swarmtest.subjects.hypothesis.declaration import invariants_of as invariants_of_rules
    from swarmtest.subjects.hypothesis.test import RuleTest, printed_again

    invariants = invariants_of_rules(subject.machine)
    test = printed_again(subject, RuleTest.from_json(data))
    conditional = [
        invariant.function.__name__ for invariant in invariants if invariant.preconditions
    ]
    if test.violated in conditional:
        return None
    always = [
        invariant.function.__name__ for invariant in invariants if not invariant.preconditions
    ]
    check = _check_function("state", [f"    state.{name}()" for name in always], conditional)
    after = "check(state)" if check else ""
    return _function_from_program(code_of_rules(subject, test, after_step=after), check)


def _of_grammar(subject: GrammarSubject, test: SuiteTest) -> FunctionCode | None:
    run = subject.function
    if isinstance(run, Runnable):  # a program: a function in the suite cannot run it by its name
        return None
    if not _can_be_imported(run) or not all(map(_can_be_imported, subject.raises)):
        return None
    imports = {_import_of(run)} | {_import_of(error) for error in subject.raises}
    text = subject.code(test.data)
    files: dict[str, bytes] = {}
    argument = repr(text)
    if len(argument) > WIDTH - 20 or "\n" in text:
        name = f"{test.trial}{subject.suffix}"
        files[name] = text.encode(errors="surrogatepass")
        argument = f"(DATA / {name!r}).read_bytes().decode()"
    body = f"{run.__name__}({argument})"
    if subject.raises:
        imports.add("from contextlib import suppress")
        errors = ", ".join(error.__qualname__ for error in subject.raises)
        body = f"with suppress({errors}):\n    {body}"
    return FunctionCode(body, frozenset(imports - {""}), files=files)


def _can_be_imported(thing: Callable[..., Any]) -> bool:
    module = sys.modules.get(getattr(thing, "__module__", ""))
    name = getattr(thing, "__qualname__", ".")
    return name.isidentifier() and getattr(module, name, None) is thing


def _import_of(thing: Any) -> str:
    if thing.__module__ == builtins.__name__:
        return ""
    return f"from {thing.__module__} import {thing.__qualname__}"


def _check_function(
    name: str, lines: Sequence[str], unchecked: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the definition of ``check``, which runs after every step; none without `lines`."""
    if not lines:
        return ()
    comment = (
        [f"    # With a precondition, so not checked: {', '.join(unchecked)}"] if unchecked else []
    )
    head = f'def check({name}):\n    """What holds after every step."""'
    return ("\n" + "\n".join([head, *comment, *lines]) + "\n",)


def _function_from_program(code: str, definitions: tuple[str, ...]) -> FunctionCode | None:
    """Turn a program that runs by itself into a function; None if it does not run."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    imports, body, others = set(), [], list(definitions)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _single_imports(node)
        elif isinstance(node, ast.FunctionDef):
            others.append(f"\n{ast.get_source_segment(code, node)}\n")
        elif isinstance(node, ast.Assign) and "importlib.import_module(" in ast.unparse(node):
            others.insert(0, ast.unparse(node))
        else:
            body.append(ast.unparse(node))
    if any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(tree)):
        return None  # an argument that could not be saved
    if "# This shows the test, but does not run" in code:
        return None
    return FunctionCode("\n".join(body), frozenset(imports), tuple(others))


def _single_imports(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {f"import {alias.name}" for alias in node.names}
    return {f"from {node.module} import {alias.name}" for alias in node.names}


# Tests of commands: the same steps on the same file, run by the shell.
#
# Exit statuses, signals, time limits and steps that have to agree can be checked by plain code. The
# judgement of a pattern, a recogniser or a Python function cannot, nor can the effect of a memory
# limit: such tests are replayed by swarmtest.

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


def function_of_commands(subject: Any, test: SuiteTest) -> FunctionCode | None:
    """Return a test of commands as a function; None if its checks need swarmtest."""
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
    compared = []
    for number, (step, line) in enumerate(zip(spec.steps, lines, strict=True), 1):
        if saved.only and step.name not in saved.only:
            continue
        call = _call(step, line, spec.here)
        if step.name in agreeing:
            call = f"result{number} = {call}"
            compared.append((step.name, f"result{number}"))
        body.append(call)
    for group in spec.oracle.differential:
        results = [result for step, result in compared if step in group]
        body += [f"assert {' == '.join(results)}"] if len(results) > 1 else []
    return FunctionCode(
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


def _call(step: StepSection, line: str, here: str) -> str:
    """Return the call that runs a step; ``{here}`` in it stands for the TOML file's directory."""
    words = [repr(line.replace(here, "{here}")), "tmp_path"]
    expect = step.call.expect
    if "ignore" in (step.on_crash, step.on_exit):
        expect = ()
    if expect != (0,):
        words.append(f"expect={expect!r}")
    if step.call.timeout != 10:
        words.append(f"timeout={step.call.timeout:g}")
    return f"run({', '.join(words)})"
