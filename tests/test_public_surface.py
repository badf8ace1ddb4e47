"""What `swarmtest` and its packages offer: everything explained, nothing heavy loaded."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import swarmtest
from swarmtest._exports import exports_of, read_exports
from swarmtest._moved_names import PLACES
from swarmtest.strategies import parse_strategy, strategy_names

ROOT = Path(swarmtest.__file__).parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(swarmtest.__path__, "swarmtest.")
    if not module.name.endswith("__main__")
)
PACKAGES = {
    ".".join(("swarmtest", *stub.parent.relative_to(ROOT).parts)): stub
    for stub in sorted(ROOT.rglob("__init__.pyi"))
}
"""The packages that list public names, and the files that list them."""

NAMES = [
    (package, name)
    for package in PACKAGES
    for name in read_exports(importlib.import_module(package).__name__)
]
PARTS_OF_RACE = {
    *("FreePolicy", "FreeRun", "PCT", "POS", "Policy", "RandomWalk", "Replay", "Run", "Scheduler"),
    *("TraceStep", "installed", "minimised_schedule", "prepare", "replay", "shared_sites"),
    *("weave", "weave_tree", "ControlledRun", "ScheduleReplay", "ThreadScheduler"),
}
"""What `swarmtest.race` is made of: explained, but without examples, because each of them needs the
others to show anything."""


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_is_explained(package, name):
    value = getattr(importlib.import_module(package), name)
    if not callable(value):
        return  # a table; its comment is in its module
    text = inspect.getdoc(value)
    assert text
    assert text[0].isupper() or text[0] == "`"
    assert ">>>" in text or (package == "swarmtest.race" and name in PARTS_OF_RACE)


COMPILING = ("swarmtest.race.native.runner", "swarmtest.race.native.subject")
"""Modules whose examples compile a program."""


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name, tmp_path, monkeypatch):
    if name in COMPILING and not (shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("needs gcc: apt-get install gcc")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for docstring in doctest.DocTestFinder().find(importlib.import_module(name), name):
        # As testmod, which also runs docstrings without examples, and for each of them asks the
        # file system about every file of which a line was ever shown.
        if docstring.examples:
            runner.run(docstring)
    assert not runner.failures


def test_a_user_s_file_finds_what_it_needs_in_few_names():
    assert len(swarmtest.__all__) <= 50
    for name in ("Machine", "action", "integers", "Campaign", "Subject", "Oracle", "NoTest"):
        assert name in swarmtest.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_everything_that_is_public(package):
    module = importlib.import_module(package)
    version = ["__version__"] if package == "swarmtest" else []
    assert dir(module) == sorted([*module.__all__, *version])
    assert len(module.__all__) == len(set(module.__all__))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_list_of_public_names_is_read_as_python_reads_it(package):
    imports = [
        node
        for node in ast.parse(PACKAGES[package].read_text()).body
        if isinstance(node, ast.ImportFrom)
    ]
    assert [alias.name for node in imports for alias in node.names] == [
        alias.asname for node in imports for alias in node.names
    ]
    assert {(node.module, alias.name) for node in imports for alias in node.names} == {
        (module, name) for name, module in read_exports(package).items()
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_hidden_by_a_module_with_that_name(package):
    """Importing such a module would set the package's attribute to it."""
    module = importlib.import_module(package)
    assert not set(module.__all__) & {found.name for found in pkgutil.iter_modules(module.__path__)}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_star_import_takes_every_public_name(package):
    taken = {}
    exec(f"from {package} import *", taken)
    assert set(importlib.import_module(package).__all__) <= set(taken)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_public_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'Machin'"):
        importlib.import_module(package).Machin  # noqa: B018


@pytest.mark.parametrize("old", PLACES)
def test_a_name_that_has_moved_still_works_and_says_where_it_is(old):
    package, new = PLACES[old]
    with pytest.warns(DeprecationWarning, match=f"write `from {package} import {new}`") as caught:
        value = getattr(swarmtest, old)
    assert value is getattr(importlib.import_module(package), new)
    assert caught[0].filename == __file__
    assert old not in swarmtest.__all__


def test_a_name_that_was_changed_still_works_and_says_what_it_is_called():
    suite = importlib.import_module("swarmtest.suite")
    get, names = exports_of("swarmtest.suite", renamed={"Suit": "Suite"})
    with pytest.warns(DeprecationWarning, match="swarmtest.suite.Suit is now called Suite"):
        assert get("Suit") is suite.Suite
    assert "Suit" not in names()


IMPORT = re.compile(
    r"^[ \t]*(?:>>> )?from (swarmtest[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))", re.M
)


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples", "docs", "README.md"])
def test_what_we_write_imports_names_that_exist_and_have_not_moved(folder):
    """Also in examples and in programs that tests run in other processes."""
    place = Path(__file__).parents[1] / folder
    files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.md")]
    for file in files:
        for package, several, few in IMPORT.findall(file.read_text()):
            module = importlib.import_module(package)
            for word in (several or few).split(","):
                name = word.split("#")[0].split(" as ")[0].strip()
                submodule = f"{package}.{name}"
                found = not name or hasattr(module, name) or importlib.util.find_spec(submodule)
                assert found, f"{file}: {package} has no {name}"


def test_the_store_names_everything_that_is_public_too():
    module = importlib.import_module("swarmtest.store")
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_built_in_strategy_is_public():
    classes = {type(parse_strategy(n)) for n in strategy_names() if n != "mixture"}
    assert {cls.__name__ for cls in classes} <= set(
        importlib.import_module("swarmtest.strategies").__all__
    )


def test_importing_swarmtest_loads_nothing_that_only_some_need():
    program = "import swarmtest, sys, json; print(json.dumps(sorted(sys.modules)))"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(child.stdout)}
    assert not loaded & {"hypothesis", "pyarrow", "rich", "pytest", "click"}
