"""What `import swarmtest` offers: everything documented with an example, nothing heavy loaded."""

import ast
import doctest
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import swarmtest

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(swarmtest.__path__, "swarmtest.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", swarmtest.__all__)
def test_every_public_name_is_explained(name):
    text = inspect.getdoc(getattr(swarmtest, name))
    assert text
    assert text[0].isupper() or text[0] == "`"


@pytest.mark.parametrize("name", swarmtest.__all__)
def test_every_public_name_has_an_example(name):
    assert ">>>" in inspect.getdoc(getattr(swarmtest, name))


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for docstring in doctest.DocTestFinder().find(importlib.import_module(name), name):
        # As testmod, which also runs docstrings without examples, and for each of them asks the
        # file system about every file of which a line was ever shown.
        if docstring.examples:
            runner.run(docstring)
    assert not runner.failures


def test_all_names_everything_that_is_public():
    assert dir(swarmtest) == sorted([*swarmtest.__all__, "__version__"])
    assert len(swarmtest.__all__) == len(set(swarmtest.__all__))


def test_the_one_list_of_public_names_is_read_as_python_reads_it():
    listed = ast.parse(Path(swarmtest.__file__).with_suffix(".pyi").read_text()).body
    imports = [node for node in listed if isinstance(node, ast.ImportFrom)]
    assert [alias.name for node in imports for alias in node.names] == [
        alias.asname for node in imports for alias in node.names
    ]
    assert {(node.module, alias.name) for node in imports for alias in node.names} == {
        (module, name) for name, module in swarmtest._read_exports().items()
    }


def test_a_star_import_takes_every_public_name():
    taken = {}
    exec("from swarmtest import *", taken)
    assert set(swarmtest.__all__) <= set(taken)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Machin'"):
        swarmtest.Machin  # noqa: B018


def test_the_rooms_that_users_meet_name_everything_that_is_public_too():
    for room in (
        "swarmtest.strategies",
        "swarmtest.store",
        "swarmtest.campaign",
    ):
        module = importlib.import_module(room)
        assert all(hasattr(module, name) for name in module.__all__), room


def test_every_built_in_strategy_is_public():
    classes = {
        type(swarmtest.parse_strategy(n)) for n in swarmtest.strategy_names() if n != "mixture"
    }
    assert {cls.__name__ for cls in classes} <= set(swarmtest.__all__)


def test_importing_swarmtest_loads_nothing_that_only_some_need():
    program = "import swarmtest, sys, json; print(json.dumps(sorted(sys.modules)))"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(child.stdout)}
    assert not loaded & {"hypothesis", "pyarrow", "rich", "pytest", "click"}
