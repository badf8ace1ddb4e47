"""Write a suite as a pytest file, with data files beside it, and verify what was written.

The same suite always gives the same text: it contains no dates, no times and no paths of this
machine. Files that swarmtest did not write are not overwritten unless the user insists.

`save_suite` also runs the file by pytest in a new process, and drops tests that misbehave. It runs
with and without swarmtest installed, so that it can say truthfully whether it needs swarmtest.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
import sysconfig
import tempfile
import textwrap
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swarmtest.core.errors import UserError, version
from swarmtest.core.formatting import counted
from swarmtest.languages.user_objects import split_reference
from swarmtest.processes.commands import capture
from swarmtest.suite.formatting import WIDTH, comment_of, expression, formatted, name_of
from swarmtest.suite.functions import FunctionCode, function_of, is_deadly
from swarmtest.suite.suite import Suite, SuiteTest

MARK = "made by swarmtest"
"""Text in the first line of every file that may be overwritten."""
_INDENT = "    "


@dataclass(frozen=True)
class SuiteFile:
    """The content of a suite's pytest file and its data files."""

    text: str
    data: dict[str, bytes]
    """The content of each file in the data directory, by name."""
    names: dict[int, str]
    """The name of each test function, by trial."""


def data_directory(path: Path) -> Path:
    """Return the directory of a suite's data files.

    >>> data_directory(Path("tests/test_shop.py")).as_posix()
    'tests/test_shop_data'
    """
    return path.with_name(f"{path.stem}_data")


def check_place(path: Path, force: bool = False) -> None:
    """Raise, before any work is done, if a suite cannot be written to a path."""
    if path.suffix != ".py":
        raise UserError(f"{path}: a suite is a Python file (.py)")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no directory {path.parent}")
    if path.is_dir():
        raise UserError(f"{path} is a directory")
    if path.exists() and not force and not _is_ours(path):
        raise UserError(f"{path} was not made by `swarmtest suite`: use --force to overwrite it")


def write_suite(file: SuiteFile, path: Path, force: bool = False) -> None:
    """Write a suite; refuse to overwrite files that are not swarmtest's, unless `force`."""
    check_place(path, force)
    data = data_directory(path)
    ours = path.exists() and _is_ours(path)
    old = {entry.name for entry in data.iterdir() if entry.is_file()} if data.is_dir() else set()
    clashing = sorted(old & file.data.keys())
    if clashing and not ours and not force:
        raise UserError(
            f"{data / clashing[0]} was not made by `swarmtest suite`: use --force to overwrite it"
        )
    try:
        for name in old - file.data.keys():
            # Data files are named after trials; any other file in there is the user's.
            if ours and Path(name).stem.isdigit():
                (data / name).unlink()
        path.write_text(file.text, encoding="utf-8")
        if file.data:
            data.mkdir(exist_ok=True)
        for name, content in file.data.items():
            (data / name).write_bytes(content)
        if data.is_dir() and not any(data.iterdir()):
            data.rmdir()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def files_at(path: Path) -> dict[Path, bytes]:
    """Return the current content of the files where a suite will be written."""
    return {file: file.read_bytes() for file in _paths_of_suite(path) if file.is_file()}


def restore(path: Path, files: Mapping[Path, bytes]) -> None:
    """Restore the files that `files_at` returned and delete the others."""
    for file in _paths_of_suite(path):
        if file.is_file() and file not in files:
            file.unlink()
    data = data_directory(path)
    if data.is_dir() and not any(data.iterdir()):
        data.rmdir()
    for file, content in files.items():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)


def _paths_of_suite(path: Path) -> list[Path]:
    data = data_directory(path)
    return [path, *(data.iterdir() if data.is_dir() else ())]


def _is_ours(path: Path) -> bool:
    try:
        return MARK.encode() in path.read_bytes().partition(b"\n")[0]
    except OSError:
        return False


# The text of the file.


def suite_file(
    suite: Suite, path: Path, command: str, swarmtest_needed: bool | None = None
) -> SuiteFile:
    """Return the files of a suite; the text says that `command` builds it again.

    `swarmtest_needed` says whether the tests failed without swarmtest; None: not tried yet.
    """
    functions = [function_of(suite.subject, test) for test in suite.tests]
    names = {test.trial: name_of(test) for test in suite.tests}
    head = _head(suite, command, swarmtest_needed)
    top = [*head, "", *_imports(suite, functions, path)]
    helpers = dict.fromkeys(text for function in functions for text in function.definitions)
    # Function definitions start with a line break, assignments do not.
    assignments = [text for text in helpers if not text.startswith("\n")]
    if assignments:
        top += ["", *assignments]
    blocks = [text.strip("\n").splitlines() for text in helpers if text.startswith("\n")]
    for test, function in zip(suite.tests, functions, strict=True):
        blocks.append(_test_lines(suite, test, function, names[test.trial]))
    text = "\n\n\n".join("\n".join(lines) for lines in [top, *blocks]) + "\n"
    files = {name: content for function in functions for name, content in function.files.items()}
    return SuiteFile(text, files, names)


def _head(suite: Suite, command: str, swarmtest_needed: bool | None) -> list[str]:
    parts = [f"{kept:,} of {counted(count, kind)}" for kind, (kept, count) in suite.by_kind.items()]
    faults = len({test.fault.id for test in suite.tests if test.fault is not None})
    parts += [f"{faults} fault{'s' * (faults != 1)}"] if faults else []
    count = len(suite.tests)
    summary = (
        f"{count} of the {suite.trials:,} tests of campaign {suite.campaign} "
        f"({suite.subject.name}, seed {suite.seed}), by swarmtest {version()}. "
        f"They keep {', '.join(parts)}."
    )
    need = {None: "", True: _why_needed(suite), False: "They do not need swarmtest."}
    return [
        f'"""Regression tests, {MARK}: do not edit them, make them again.',
        "",
        "    " + _harmless(command),
        "",
        *textwrap.wrap(_harmless(summary), WIDTH, break_on_hyphens=False),
        *textwrap.wrap(_harmless(need[swarmtest_needed]), WIDTH, break_on_hyphens=False),
        '"""',
    ]


def _why_needed(suite: Suite) -> str:
    if any(not function_of(suite.subject, test).plain for test in suite.tests):
        return "They need swarmtest, which replays what cannot be said as plain code."
    return (
        f"They need swarmtest: {Path(suite.subject.harness).name or 'what they call'} imports it."
    )


def _harmless(text: str) -> str:
    """Return text that neither ends a docstring nor contains an escape sequence."""
    return text.replace("\\", "/").replace('"', "'")


def _imports(suite: Suite, functions: Sequence[FunctionCode], path: Path) -> list[str]:
    """Return the imports (standard library, pytest, code under test), `sys.path` and constants."""
    lines = {line for function in functions for line in function.imports}
    if any(test.fault for test in suite.tests):
        lines.add("import pytest")
    modules = {line.split(" ")[1] for line in lines if line.startswith("from ")}
    modules |= {
        module
        for function in functions
        for text in function.definitions
        for module in _imported_by_name(text)
    }
    roots = sorted({root for module in modules if (root := _root(module, path)) is not None})
    path_lines = [f"sys.path.insert(0, str({_path_expression(root, path)}))" for root in roots]
    if any(not function.plain for function in functions):
        lines.add("from swarmtest.subjects.loading import SubjectReference")
    constants = _constants(suite, functions, path)
    if path_lines:
        lines.add("import sys")
    if path_lines or constants:
        lines.add("from pathlib import Path")
    groups = _grouped(lines)
    # The code under test is imported after the path is set.
    blocks = [*groups[:2], path_lines, groups[2], constants]
    return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


def _imported_by_name(text: str) -> list[str]:
    return [text.split("'")[1]] if "importlib.import_module('" in text else []


def _constants(suite: Suite, functions: Sequence[FunctionCode], path: Path) -> list[str]:
    lines = []
    if any(function.files for function in functions):
        lines.append(f'DATA = Path(__file__).resolve().parent / "{data_directory(path).name}"')
    if any("HERE" in text for function in functions for text in function.definitions):
        harness = Path(suite.subject.harness).resolve().parent
        lines.append(f"HERE = {_path_expression(str(harness), path)}")
    if any(not function.plain for function in functions):
        where, name = split_reference(suite.subject.name)
        if where.endswith((".py", ".toml")):
            directory = _path_expression(str(Path(where).resolve().parent), path)
            reference = f"str({directory} / {Path(where).name!r})"
            reference += f" + {'::' + name!r}" if name else ""
        else:
            reference = repr(suite.subject.name)
        lines += formatted(f"SUBJECT = SubjectReference({reference}).load()")
    return lines


def _grouped(lines: Iterable[str]) -> list[list[str]]:
    """Return sorted imports in three groups: standard library, test tools, code under test.

    Names that come from the same module are joined in one import.
    """
    plain = {line.split(" ")[1] for line in lines if line.startswith("import ")}
    names: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line.startswith("from "):
            _, module, _, name = line.split(" ")
            names[module].add(name)
    groups: list[list[str]] = [[], [], []]
    for module in sorted(plain):
        groups[_group(module)].append(f"import {module}")
    for module, imported in sorted(names.items()):
        ordered = sorted(imported, key=lambda name: (name.islower(), name))
        groups[_group(module)] += _from_import(module, ordered)
    return groups


def _from_import(module: str, names: Sequence[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"{_INDENT}{name}," for name in names), ")"]


def _group(module: str) -> int:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return 0
    return 1 if top in ("pytest", "swarmtest", "hypothesis") else 2


def _root(module: str, path: Path) -> str | None:
    """Return the directory that must be in `sys.path` for a module; None if it is found anyway."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if _group(module) != 2 or not file:
        return None
    here = Path(file).resolve()
    here = here.parent if here.name == "__init__.py" else here
    root = here.parents[module.count(".")]
    installed = {os.path.realpath(sysconfig.get_paths()[key]) for key in ("purelib", "platlib")}
    beside = path.resolve().parent
    if str(root) in installed or (root == beside and not (beside / "__init__.py").exists()):
        return None
    return str(root)


def _path_expression(directory: str, path: Path) -> str:
    """Return an expression for a directory, relative to the file that is written."""
    beside = path.resolve().parent
    above = Path(os.path.commonpath([directory, beside]))
    depth = len(beside.relative_to(above).parts)
    start = f"Path(__file__).resolve().parents[{depth}]" if depth else "Path(__file__).parent"
    rest = Path(directory).relative_to(above).as_posix()
    return start if rest == "." else f'{start} / "{rest}"'


def _test_lines(suite: Suite, test: SuiteTest, function: FunctionCode, name: str) -> list[str]:
    head = f"def {name}({function.arguments}):"
    return [
        *comment_of(test, suite.campaign, suite.subject.part),
        *_marker(suite, test, function),
        head,
        *formatted(function.body, _INDENT),
    ]


def _marker(suite: Suite, test: SuiteTest, function: FunctionCode) -> list[str]:
    """Return the pytest marker of a test that shows a fault."""
    if test.fault is None or suite.faults == "fail":
        return []
    reason = f"fault {test.fault.id}: {test.fault.signature}"
    if suite.faults == "skip":
        return expression(f"pytest.mark.skip(reason={reason!r})", prefix="@")
    words = ["strict=True"]
    if is_deadly(suite.subject, test.fault.kind):
        words = ["run=False"]  # it would end pytest's own process
    elif function.plain and test.fault.kind == "exception":
        words += _raises(test.fault.signature)
    words.append(f"reason={reason!r}")
    return expression(f"pytest.mark.xfail({', '.join(words)})", prefix="@")


def _raises(signature: str) -> list[str]:
    """Return ``raises=`` for a built-in exception: a test that raises another shows another bug."""
    name = signature.partition(":")[0].partition(" ")[0]
    builtin = getattr(builtins, name, None)
    is_exception = isinstance(builtin, type) and issubclass(builtin, Exception)
    return [f"raises={name}"] if is_exception else []


# Verification.

_SECONDS_PER_TEST = 15.0
_PYTEST_SCRIPT = """
import sys
import pytest

class Absent:
    names = sys.argv.pop(1).split()
    def pytest_sessionstart(self):
        for name in self.names:
            sys.modules[name] = None  # an import of it fails, as where it is not installed

sys.exit(pytest.main(sys.argv[1:], plugins=[Absent()]))
"""


@dataclass(frozen=True)
class PytestReport:
    """What pytest reported about a file of tests."""

    ended: Mapping[str, str] = field(default_factory=dict)
    """``passed``, ``failed``, ``xfailed`` or ``skipped``, by the name of the function."""
    seconds: float = 0.0
    """How long pytest took, including the collection of tests."""
    seconds_of: Mapping[str, float] = field(default_factory=dict)
    """How long each test took."""
    problem: str = ""
    """Why there is no report: the file could not be imported, or pytest did not end."""


@dataclass(frozen=True)
class SavedSuite:
    """A suite that was written to a file and run."""

    suite: Suite
    """The suite without the tests that did not end as expected in each of two runs."""
    path: Path
    seconds: float
    """The time that pytest reported."""
    needs_swarmtest: bool


def save_suite(
    suite: Suite, path: str | Path, command: str = "", force: bool = False
) -> SavedSuite:
    """Write a suite as a pytest file, run it twice, and drop tests that do not end as expected.

    `command` is the command line that the file gives for building it again. `force` overwrites
    also a file that swarmtest did not write. If anything fails, the previous files are restored.
    """
    check_pytest()
    file = Path(path)
    command = command or f"swarmtest suite {suite.campaign} -o {file.as_posix()}"
    before = files_at(file)
    write_suite(suite_file(suite, file, command), file, force)
    try:
        return _verified(suite, file, command)
    except BaseException:
        restore(file, before)
        raise


def check_pytest() -> None:
    """Raise `UserError` if pytest, which runs the file that is written, is not installed."""
    if importlib.util.find_spec("pytest") is None:
        raise UserError(
            "a suite is a pytest file, which is run once to check it, and pytest is not installed: "
            "pip install pytest"
        )


def _verified(suite: Suite, file: Path, command: str) -> SavedSuite:
    """Run a suite that was written; write it again without tests that do not end as expected."""
    alone = run_pytest(file, len(suite.tests), without=("swarmtest",))
    needs = bool(_misbehaving(suite, file, alone))
    ran = run_pytest(file, len(suite.tests))
    # If the tests do not need swarmtest, the run without it counts as the second run.
    runs = [ran, run_pytest(file, len(suite.tests)) if needs else alone]
    bad: dict[int, str] = {}
    for run in runs:
        bad |= _misbehaving(suite, file, run)
    if len(bad) == len(suite.tests):
        why = next((run.problem for run in runs if run.problem), next(iter(bad.values())))
        raise UserError(f"{file}: none of its tests behaves as in the campaign: {why}")
    names = suite_file(suite, file, command).names
    verified = suite.without(bad)
    verified = verified.in_time({trial: ran.seconds_of.get(names[trial], 0.0) for trial in names})
    if not verified.tests:
        raise UserError(f"{file}: none of its tests ends within {suite.limit:g} s")
    write_suite(suite_file(verified, file, command, needs), file, force=True)
    if len(verified.tests) < len(suite.tests):
        ran = run_pytest(file, len(verified.tests))
    return SavedSuite(verified, file, ran.seconds, needs)


def run_pytest(path: Path, tests: int, without: tuple[str, ...] = ()) -> PytestReport:
    """Run a file by pytest in a new process in which the modules `without` cannot be imported."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "told.xml")
        words = [sys.executable, "-P", "-c", _PYTEST_SCRIPT, " ".join(without)]
        words += ["-q", "-p", "no:swarmtest.pytest_plugin", "-p", "no:cacheprovider"]
        words += ["-o", "addopts=", f"--junitxml={report}", str(path)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = capture(words, 60 + _SECONDS_PER_TEST * tests, environment=environment)
        if ended.status is None:
            return PytestReport(problem="pytest did not come to an end")
        return _read_report(report, (ended.stdout + ended.stderr).decode(errors="replace"))


def _read_report(report: Path, output: str) -> PytestReport:
    """Read pytest's JUnit XML file; take a problem from its output if there is one."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        last = [line for line in output.splitlines() if line.strip()][-1:]
        return PytestReport(problem=f"pytest could not run it: {' '.join(last)}")
    ended = {case.get("name", ""): _ended(case) for case in root.iter("testcase")}
    errors = [line for line in output.splitlines() if line.startswith("E  ")]
    collected = all(name.startswith("test_") for name in ended)
    problem = "" if collected and ended else f"pytest: {(errors or ['no tests'])[0][1:].strip()}"
    seconds = sum(float(suite.get("time", 0)) for suite in root.iter("testsuite"))
    seconds_of = {
        case.get("name", ""): float(case.get("time", 0)) for case in root.iter("testcase")
    }
    return PytestReport(ended, seconds, seconds_of, problem)


def _ended(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if "xfail" in skipped.get("type", "") else "skipped"


def _misbehaving(suite: Suite, path: Path, ran: PytestReport) -> dict[int, str]:
    """Return the trials whose tests did not end as expected, each with how it ended."""
    names = suite_file(suite, path, "").names
    reasons = {}
    for test in suite.tests:
        ended = ran.ended.get(names[test.trial], "did not run")
        if ended != _expected(suite, test):
            reasons[test.trial] = ran.problem or f"as pytest runs it, it {ended}"
    return reasons


def _expected(suite: Suite, test: SuiteTest) -> str:
    if test.fault is None:
        return "passed"
    return {"xfail": "xfailed", "fail": "failed", "skip": "skipped"}[suite.faults]
