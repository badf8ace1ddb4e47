"""Finding the user's objects, and one clear line with file and line when they cannot be found."""

import re
import sys
from textwrap import dedent

import pytest

from swarmtest import UserError
from swarmtest.languages.user_objects import load_module, load_object, split_reference


@pytest.fixture(autouse=True)
def _forget_imports(monkeypatch):
    """Modules of one test are unknown to the next."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "stack", raising=False)  # examples/stack.py, by other tests
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    def file(name, text=""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    return file


def refusal(load, *arguments):
    with pytest.raises(UserError) as refused:
        load(*arguments)
    line = str(refused.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("stack:Stack", ("stack", "Stack")),
        ("pkg.stack:Stack", ("pkg.stack", "Stack")),
        ("tests/stack.py::Stack", ("tests/stack.py", "Stack")),
        ("tests/stack.py:Stack.Inner", ("tests/stack.py", "Stack.Inner")),
        ("stack.py", ("stack.py", "")),
    ],
)
def test_a_reference_is_a_module_or_file_and_a_name_in_it(text, parts):
    assert split_reference(text) == parts


def test_an_object_in_a_file(write):
    path = write("stack.py", "class Stack:\n    class Inner: pass\n")
    assert load_object(f"{path}::Stack", "machine").__module__ == "stack"
    assert load_object(f"{path}:Stack.Inner", "machine").__name__ == "Inner"


def test_an_object_in_a_module_of_the_current_directory(write, monkeypatch, tmp_path):
    write("here_only.py", "class Stack: pass\n")
    monkeypatch.chdir(tmp_path)
    assert load_object("here_only:Stack", "machine").__name__ == "Stack"


def test_a_file_in_a_package_is_imported_under_its_full_name(write):
    write("shop/__init__.py")
    write("shop/till/__init__.py", "OPEN = True\n")
    path = write("shop/till/stack.py", "from . import OPEN\nfrom shop import till\n")
    module = load_module(str(path))
    assert module.__name__ == "shop.till.stack"
    assert load_module(str(path.parent / "__init__.py")).__name__ == "shop.till"


def test_a_file_finds_its_neighbours(write):
    write("neighbour_of_stack.py", "LIMIT = 32\n")
    path = write("stack.py", "from neighbour_of_stack import LIMIT\n")
    assert load_module(str(path)).LIMIT == 32


def test_a_file_is_imported_once(write):
    path = write("stack.py", "class Stack: pass\n")
    assert load_object(f"{path}:Stack", "machine") is load_object(f"{path}:Stack", "machine")


def test_a_missing_file_is_answered_with_the_nearest(write):
    path = write("stack.py")
    line = refusal(load_module, str(path.with_name("stak.py")))
    assert "no such file" in line
    assert "did you mean 'stack.py'?" in line


def test_a_directory_is_not_a_file(tmp_path):
    assert "is a directory" in refusal(load_module, f"{tmp_path}/")


def test_a_missing_module_says_from_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    line = refusal(load_module, "no_such_module_here")
    assert line == f"no module named 'no_such_module_here' (looked from {tmp_path})"


def test_a_missing_name_is_answered_with_the_nearest(write):
    path = write("stack.py", "class Stack: pass\n")
    assert "did you mean 'Stack'?" in refusal(load_object, f"{path}:Stakc", "machine")


def test_names_that_are_nobodys_business_are_not_offered(write):
    path = write("stack.py", "class Stack: pass\n_private = 1\n")
    line = refusal(load_object, f"{path}:Queue", "machine")
    assert "Stack" in line
    assert "__builtins__" not in line
    assert "_private" not in line


@pytest.mark.parametrize("reference", ["{}", "{}:", "{}::"])
def test_a_reference_without_a_name_says_how_to_write_one(write, reference):
    path = write("stack.py", "class Stack: pass\n")
    line = refusal(load_object, reference.format(path), "machine")
    assert f"write {path}:NAME" in line


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("x = 1\ndef push(:\n    pass\n", 2, "invalid syntax"),
        ("if True:\nx = 1\n", 2, "expected an indented block"),
        ("x = 1\n\nx = y\n", 3, "NameError: name 'y' is not defined"),
        ("x = 1\nimport no_such_module_here\n", 2, "No module named 'no_such_module_here'"),
        ("from math import cosinus\n", 1, "ImportError: cannot import name 'cosinus'"),
        ("raise ValueError('first\\nsecond')\n", 1, "ValueError: first"),
        ("raise ValueError\n", 1, "ValueError"),
        ("def check():\n    assert 1 == 2, 'no'\n\ncheck()\n", 2, "AssertionError: no"),
    ],
)
def test_a_file_that_does_not_import_is_named_with_its_line(write, text, line, says):
    path = write("broken_machine.py", text)
    refused = refusal(load_module, str(path))
    assert f"{path}:{line}" in refused
    assert says in refused


def test_an_error_inside_a_library_is_blamed_on_the_users_line(write):
    path = write("broken_machine.py", "import json\n\nDATA = json.loads('')\n")
    assert f"{path}:3" in refusal(load_module, str(path))


def test_an_error_in_a_neighbour_is_named_where_it_is(write):
    neighbour = write("neighbour_of_stack.py", "x = 1\nx = y\n")
    path = write("stack.py", "import neighbour_of_stack\n")
    line = refusal(load_module, str(path))
    assert str(path) in line
    assert f"{neighbour}:2" in line


def test_a_script_that_ends_the_program_when_imported_is_an_error(write):
    path = write("script.py", "import sys\nsys.exit(0)\n")
    assert f"{path}:2" in refusal(load_module, str(path))


def test_an_exception_that_cannot_be_printed_is_still_one_line(write):
    path = write(
        "broken_machine.py",
        """\
        class Mute(Exception):
            def __str__(self):
                raise ValueError
        raise Mute
        """,
    )
    assert "Mute" in refusal(load_module, str(path))


def test_a_file_with_null_bytes_is_named(write):
    path = write("broken_machine.py", "x = 1\0\n")
    assert str(path) in refusal(load_module, str(path))


def test_a_file_whose_name_is_taken_says_by_whom(write):
    import random

    path = write("random.py", "x = 1\n")
    line = refusal(load_module, str(path))
    assert str(path) in line
    assert random.__file__ in line


def test_a_file_whose_name_cannot_be_a_modules_says_so(write):
    path = write("stack.v2.py", "x = 1\n")
    assert re.search(r"stack\.v2\.py", refusal(load_module, str(path)))


def test_an_error_that_is_the_users_already_goes_through_unchanged(write):
    path = write("stack.py", "from swarmtest import Space\nSpace([])\n")
    assert refusal(load_module, str(path)) == "a space needs at least one dimension"
