"""A suite as a pytest file, and the files of data beside it.

The same suite gives the same text: no dates, no times, no paths of this machine.
"""

from __future__ import annotations

import builtins
import os
import sys
import sysconfig
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError, version
from swarmtest.languages.user_objects import split_reference
from swarmtest.suite.formatting import WIDTH, comment_of, counted, expression, formatted, name_of
from swarmtest.suite.functions import Function, function_of, is_deadly
from swarmtest.suite.suite import Suite, SuiteTest

# -------------------------------------------------------------------------------------------------
# Where a suite is written, and what is never overwritten: files that somebody else has made.

MARK = "made by swarmtest"
"""In the first line of every file that may be overwritten."""


@dataclass(frozen=True)
class SuiteFile:
    """What is written."""

    text: str
    data: dict[str, bytes]
    """Files in the directory of data, by name."""
    names: dict[int, str]
    """The functions, by trial."""


def data_directory(path: Path) -> Path:
    """Where the files of data are that a suite needs.

    >>> data_directory(Path("tests/test_shop.py")).as_posix()
    'tests/test_shop_data'
    """
    return path.with_name(f"{path.stem}_data")


def check_place(path: Path, force: bool = False) -> None:
    """Say at once why a suite cannot be written there."""
    if path.suffix != ".py":
        raise UserError(f"{path}: a suite is a Python file (.py)")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no directory {path.parent}")
    if path.is_dir():
        raise UserError(f"{path} is a directory")
    if path.exists() and not force and not _is_ours(path):
        raise UserError(
            f"{path} was not made by `swarmtest suite`: --force overwrites it all the same"
        )


def write_suite(file: SuiteFile, path: Path, force: bool = False) -> None:
    """Write a suite; files that we have not made stay, unless `force`."""
    check_place(path, force)
    data = data_directory(path)
    ours = path.exists() and _is_ours(path)
    old = {one.name for one in data.iterdir() if one.is_file()} if data.is_dir() else set[str]()
    taken = sorted(old & file.data.keys())
    if taken and not ours and not force:
        raise UserError(
            f"{data / taken[0]} was not made by `swarmtest suite`: --force overwrites it all the "
            "same"
        )
    try:
        for name in old - file.data.keys():
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
    """What is there now, where a suite will be."""
    data = data_directory(path)
    places = [path, *(data.iterdir() if data.is_dir() else ())]
    return {one: one.read_bytes() for one in places if one.is_file()}


def restore(path: Path, files: Mapping[Path, bytes]) -> None:
    """Put everything back as it was."""
    data = data_directory(path)
    for one in [path, *(data.iterdir() if data.is_dir() else ())]:
        if one.is_file() and one not in files:
            one.unlink()
    if data.is_dir() and not any(data.iterdir()):
        data.rmdir()
    for one, content in files.items():
        one.parent.mkdir(exist_ok=True)
        one.write_bytes(content)


def _is_ours(path: Path) -> bool:
    try:
        return MARK.encode() in path.read_bytes().partition(b"\n")[0]
    except OSError:
        return False


# -------------------------------------------------------------------------------------------------

_INDENT = "    "


def suite_file(
    suite: Suite, path: Path, command: str, swarmtest_needed: bool | None = None
) -> SuiteFile:
    """A suite as text. `command` makes it again.

    `swarmtest_needed`: whether the tests were seen to fail without swarmtest; None: not tried yet.
    """
    functions = [function_of(suite.subject, test) for test in suite.tests]
    names = {test.trial: name_of(test) for test in suite.tests}
    head = _head(suite, command, swarmtest_needed)
    top = [*head, "", *_imports(suite, functions, path)]
    helpers = dict.fromkeys(text for one in functions for text in one.definitions)
    setting = [text for text in helpers if not text.startswith("\n")]
    if setting:
        top += ["", *setting]
    blocks = [text.strip("\n").splitlines() for text in helpers if text.startswith("\n")]
    for test, function in zip(suite.tests, functions, strict=True):
        blocks.append(_test(suite, test, function, names[test.trial]))
    text = "\n\n\n".join("\n".join(lines) for lines in [top, *blocks]) + "\n"
    files = {name: content for one in functions for name, content in one.files.items()}
    return SuiteFile(text, files, names)


# The parts of the file


def _head(suite: Suite, command: str, swarmtest_needed: bool | None) -> list[str]:
    kept = [f"{kept:,} of {counted(count, kind)}" for kind, (kept, count) in suite.by_kind.items()]
    faults = len({test.fault.id for test in suite.tests if test.fault is not None})
    kept += [f"{faults} fault{'s' * (faults != 1)}"] if faults else []
    count = len(suite.tests)
    told = (
        f"{count} of the {suite.trials:,} tests of campaign {suite.campaign} "
        f"({suite.subject.name}, seed {suite.seed}), by swarmtest {version()}. "
        f"They keep {', '.join(kept)}."
    )
    need = {None: "", True: _why_needed(suite), False: "They do not need swarmtest."}
    return [
        f'"""Regression tests, {MARK}: not to be edited, but made again.',
        "",
        "    " + _harmless(command),
        "",
        *textwrap.wrap(_harmless(told), WIDTH, break_on_hyphens=False),
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
    """Text that neither ends a docstring nor escapes anything in it."""
    return text.replace("\\", "/").replace('"', "'")


def _imports(suite: Suite, functions: Sequence[Function], path: Path) -> list[str]:
    """The import lines: the library's, pytest, what is tested; and where that is found."""
    lines = {line for one in functions for line in one.imports}
    if any(test.fault for test in suite.tests):
        lines.add("import pytest")
    modules = {line.split(" ")[1] for line in lines if line.startswith("from ")}
    modules |= {
        word for one in functions for text in one.definitions for word in _imported_by_name(text)
    }
    roots = sorted({root for module in modules if (root := _root(module, path)) is not None})
    setting = [f"sys.path.insert(0, str({_place(root, path)}))" for root in roots]
    if any(not one.plain for one in functions):
        lines.add("from swarmtest.subjects.loading import SubjectReference")
    constants = _constants(suite, functions, path)
    if setting:
        lines.add("import sys")
    if setting or constants:
        lines.add("from pathlib import Path")
    groups = _grouped(lines)
    # What is under test is imported after the path is set.
    blocks = [*groups[:2], setting, groups[2], constants]
    return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


def _imported_by_name(text: str) -> list[str]:
    return [text.split("'")[1]] if "importlib.import_module('" in text else []


def _constants(suite: Suite, functions: Sequence[Function], path: Path) -> list[str]:
    lines = []
    if any(one.files for one in functions):
        lines.append(f'DATA = Path(__file__).resolve().parent / "{data_directory(path).name}"')
    if any("HERE" in text for one in functions for text in one.definitions):
        harness = Path(suite.subject.harness).resolve().parent
        lines.append(f"HERE = {_place(str(harness), path)}")
    if any(not one.plain for one in functions):
        where, name = split_reference(suite.subject.name)
        if where.endswith((".py", ".toml")):
            directory = _place(str(Path(where).resolve().parent), path)
            found = f"str({directory} / {Path(where).name!r})"
            found += f" + {'::' + name!r}" if name else ""
        else:
            found = repr(suite.subject.name)
        lines += formatted(f"SUBJECT = SubjectReference({found}).load()")
    return lines


def _grouped(lines: Iterable[str]) -> list[list[str]]:
    """The library's modules, those of pytest and swarmtest, and the rest; names of one together."""
    plain = {line.split(" ")[1] for line in lines if line.startswith("import ")}
    names: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line.startswith("from "):
            _, module, _, name = line.split(" ")
            names[module].add(name)
    groups: list[list[str]] = [[], [], []]
    for module in sorted(plain):
        groups[_group(module)].append(f"import {module}")
    for module, found in sorted(names.items()):
        groups[_group(module)] += _from(module, sorted(found, key=lambda n: (n.islower(), n)))
    return groups


def _from(module: str, names: Sequence[str]) -> list[str]:
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
    """The directory that has to be on the path for a module; None if it is found anyway."""
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


def _place(directory: str, path: Path) -> str:
    """A directory as seen from the file that is written."""
    beside = path.resolve().parent
    above = Path(os.path.commonpath([directory, beside]))
    depth = len(beside.relative_to(above).parts)
    start = f"Path(__file__).resolve().parents[{depth}]" if depth else "Path(__file__).parent"
    rest = Path(directory).relative_to(above).as_posix()
    return start if rest == "." else f'{start} / "{rest}"'


def _test(suite: Suite, test: SuiteTest, function: Function, name: str) -> list[str]:
    head = f"def {name}({function.arguments}):"
    return [
        *comment_of(test, suite.campaign, suite.subject.part),
        *_marker(suite, test, function),
        head,
        *formatted(function.body, _INDENT),
    ]


def _marker(suite: Suite, test: SuiteTest, function: Function) -> list[str]:
    """How pytest takes a test that shows a fault."""
    if test.fault is None or suite.faults == "fail":
        return []
    reason = f"fault {test.fault.id}: {test.fault.signature}"
    if suite.faults == "skip":
        return expression(f"pytest.mark.skip(reason={reason!r})", prefix="@")
    words = ["strict=True"]
    if is_deadly(suite.subject, test.fault.kind):
        words = ["run=False"]  # it would take pytest with it
    elif function.plain and test.fault.kind == "exception":
        words += _raises(test.fault.signature)
    words.append(f"reason={reason!r}")
    return expression(f"pytest.mark.xfail({', '.join(words)})", prefix="@")


def _raises(signature: str) -> list[str]:
    """The exception, where anyone can name it: another one is another bug."""
    name = signature.partition(":")[0].partition(" ")[0]
    known = getattr(builtins, name, None)
    is_exception = isinstance(known, type) and issubclass(known, Exception)
    return [f"raises={name}"] if is_exception else []
