"""The import hook: whatever a program looks like and however it is imported, its lines are seen."""

from __future__ import annotations

import importlib
import inspect
import pickle
import runpy
import subprocess
import sys
import traceback
import zipfile
from pathlib import Path

import pytest

SHOP = {
    "shop/__init__.py": "from .cart import total\n",
    "shop/cart.py": """
        from __future__ import annotations
        from . import prices
        from .deep.tax import added as plus

        def total(n):
            if n > 2:
                return prices.HIGH
            return plus(prices.LOW)
        """,
    "shop/prices.py": "LOW = 1\nHIGH = 9\n",
    "shop/deep/__init__.py": "",
    "shop/deep/tax.py": "from ..prices import LOW\ndef added(n):\n    return n + LOW\n",
}


def test_packages_and_relative_imports(project, reached):
    project.write(SHOP)
    coverage = project.watch("shop")
    shop = project.load("shop")
    assert reached(coverage, lambda: shop.total(1)) == [
        "line:shop/cart.py:6",
        "line:shop/cart.py:8",
        "line:shop/deep/tax.py:3",
    ]


def test_a_harness_that_imports_names_from_the_program(project, reached):
    project.write(SHOP, harness="from shop.cart import total\nfrom shop.deep import tax\n")
    coverage = project.watch("shop")
    harness = project.load("harness")
    assert "line:shop/cart.py:7" in reached(coverage, lambda: harness.total(5))


def test_namespace_packages(project, reached):
    project.write({"space/inner/one.py": "def one():\n    return 1\n"})
    coverage = project.watch("space")
    one = project.load("space.inner.one")
    assert reached(coverage, one.one) == ["line:space/inner/one.py:2"]


def test_a_module_by_its_file_and_a_folder_by_its_path(project, reached):
    project.write(
        {"alone.py": "def f():\n    return 1\n", "src/far.py": "def g():\n    return 2\n"}
    )
    sys.path.insert(0, str(project.root / "src"))
    try:
        coverage = project.watch("alone.py", "src")
        alone, far = project.load("alone"), project.load("far")
    finally:
        sys.path.remove(str(project.root / "src"))
    assert len(reached(coverage, lambda: (alone.f(), far.g()))) == 2


def test_a_folder_that_is_reached_through_a_link(project, reached):
    project.write({"real/linked.py": "def f():\n    return 1\n"})
    (project.root / "link").symlink_to(project.root / "real")
    sys.path.insert(0, str(project.root / "link"))
    try:
        coverage = project.watch("real/")
        linked = project.load("linked")
    finally:
        sys.path.remove(str(project.root / "link"))
    assert len(reached(coverage, linked.f)) == 1


def test_only_chosen_modules_are_touched(project):
    project.write(mine="import other\nx = 1\n", other="y = 1\n")
    project.watch("mine")
    mine = project.load("mine")
    assert "__swarm_hits__" in vars(mine)
    assert "__swarm_hits__" not in vars(mine.other)


def test_a_star_import_brings_no_names_of_ours(project):
    project.write(star="def f():\n    return 1\n", into="from star import *\n")
    project.watch("star")
    assert [n for n in vars(project.load("into")) if "swarm" in n] == []


def test_source_file_and_traceback_are_those_of_the_module(project):
    project.write(lib="import os\n\n\ndef f(x):\n    y = 1\n    return y // x\n")
    project.watch("lib", kinds=("line", "branch", "predicate", "path"))
    lib = project.load("lib")
    assert inspect.getsource(lib.f) == "def f(x):\n    y = 1\n    return y // x\n"
    assert lib.__file__ == str(project.root / "lib.py")
    with pytest.raises(ZeroDivisionError) as caught:
        lib.f(0)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.lineno, last.line, last.colno) == (6, "return y // x", 11)
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2


def test_a_module_that_is_loaded_again_is_still_seen(project, reached):
    project.write(again="def f():\n    return 1\n")
    coverage = project.watch("again")
    again = importlib.reload(project.load("again"))
    assert reached(coverage, again.f) == ["line:again.py:2"]


def test_a_module_that_was_edited_between_two_loads_has_new_targets(project, reached):
    project.write(edited="def f():\n    return 1\n")
    coverage = project.watch("edited")
    old = reached(coverage, project.load("edited").f)
    project.write(edited="\n\nx = 1\ndef f():\n    return 1\n")
    new = reached(coverage, project.load("edited").f)
    assert (old, new) == (["line:edited.py:2"], ["line:edited.py:3"])
    hashes = {t.content for t in coverage.catalogue.targets if t.function == "f"}
    assert len(hashes) == 1


def test_a_module_that_is_run_as_a_script(project):
    project.write(script="def f():\n    return 1\nif __name__ == '__main__':\n    f()\n")
    coverage = project.watch("script")
    runpy.run_module("script", run_name="__main__")
    coverage.begin()
    assert [str(coverage.catalogue.targets[n]) for n in sorted(coverage.outside)] == [
        f"line:script.py:{line}" for line in (1, 2, 3, 4)
    ]


def test_objects_and_functions_can_be_pickled(project):
    project.write(things="class Box:\n    def __init__(self):\n        self.x = 1\ndef f(): pass\n")
    project.watch("things", kinds=("line", "path"))
    things = project.load("things")
    assert pickle.loads(pickle.dumps(things.Box())).x == 1
    assert pickle.loads(pickle.dumps(things.f)) is things.f


def test_a_file_that_cannot_be_parsed_fails_as_it_does_without_probes(project):
    project.write(broken="def f(:\n    pass\n")
    with pytest.raises(SyntaxError) as plain:
        project.load("broken")
    project.watch("broken")
    with pytest.raises(SyntaxError) as woven:
        project.load("broken")
    assert (woven.value.filename, woven.value.lineno) == (plain.value.filename, 1)
    assert woven.value.msg == plain.value.msg


def test_a_file_that_is_not_text_fails_as_it_does_without_probes(project):
    (project.root / "latin.py").write_bytes(b"x = '\xe9'\n")
    with pytest.raises(SyntaxError):
        project.load("latin")
    project.watch("latin")
    with pytest.raises(SyntaxError):
        project.load("latin")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cookie", "# -*- coding: latin-1 -*-\ndef f():\n    return 'é'\n".encode("latin-1")),
        ("bom", b"\xef\xbb\xbfdef f():\n\n    return '\xc3\xa9'\n"),
        ("dos", b"def f():\r\n    x = '\xc3\xa9'\r\n    return x\r\n"),
        ("tabs", "def f():\n\tif 1:\n\t\tx = 'é'\n\treturn x".encode()),
        ("formfeed", "\x0c\ndef f():\n\x0c\n    return 'é'\n".encode()),
    ],
)
def test_encodings_and_ends_of_lines(project, reached, name, data):
    (project.root / f"{name}.py").write_bytes(data)
    coverage = project.watch(name)
    module = project.load(name)
    assert module.f() == "é"
    (last, *_) = reversed(reached(coverage, module.f))
    text = data.decode("latin-1").split("\n")[int(last.rpartition(":")[2]) - 1]
    assert "return" in text


def test_the_content_of_a_target_is_its_line_also_after_odd_separators(project):
    project.write(odd="a = 1\n\x0c\ndef f():\n    '''x\u2028y'''\n    return 7\n")
    project.write(even="def f():\n    return 7\n")
    coverage = project.watch("odd", "even")
    project.load("odd"), project.load("even")
    coverage.take()
    contents = [t.content for t in coverage.catalogue.targets if t.function == "f"]
    assert len(contents) == 2
    assert len(set(contents)) == 1


def test_an_empty_module_and_one_with_a_docstring_only(project):
    project.write(empty="", documented='"""Only words."""\n')
    coverage = project.watch("empty", "documented")
    project.load("empty")
    assert project.load("documented").__doc__ == "Only words."
    coverage.take()
    assert [t for t in coverage.catalogue.targets if "empty" in t.file] == []


def test_a_c_extension_is_said(project):
    coverage = project.watch("_testmultiphase", "_bisect")
    sys.modules.pop("_testmultiphase", None)
    try:
        importlib.import_module("_testmultiphase")
    except ImportError:
        pytest.skip("this Python has no _testmultiphase")
    (problem,) = coverage.problems
    assert "_testmultiphase is a C extension" in problem
    assert "native.md" in problem


def test_a_module_that_was_imported_before_is_said_with_the_fix(project):
    project.write(early="x = 1\n", late="y = 1\n")
    project.load("early")
    coverage = project.watch("early", "late")
    project.load("late")
    (problem,) = coverage.problems
    assert problem.startswith("early was imported before coverage began")
    assert "start coverage first, then import it" in problem


def test_a_module_in_a_zip_file_is_said(project):
    with zipfile.ZipFile(project.root / "code.zip", "w") as archive:
        archive.writestr("zipped.py", "x = 1\n")
    sys.path.insert(0, str(project.root / "code.zip"))
    try:
        coverage = project.watch("zipped")
        assert project.load("zipped").x == 1
    finally:
        sys.path.remove(str(project.root / "code.zip"))
    assert "zipped" in coverage.problems[0]


def test_a_program_that_defines_its_own_baseexception(project, reached):
    project.write(
        own="""
        class BaseException(Exception):
            pass

        def f(x):
            a = 1
            b = 1 // x
            return b
        """
    )
    coverage = project.watch("own")
    own = project.load("own")

    def call():
        with pytest.raises(ZeroDivisionError):
            own.f(0)

    assert reached(coverage, call) == ["line:own.py:5", "line:own.py:6"]


def test_a_class_whose_namespace_makes_up_names(project):
    project.write(
        auto="""
        class Names(dict):
            def __missing__(self, key):
                if key.startswith("__"):
                    raise KeyError(key)
                self[key] = len(self)
                return self[key]

        class Meta(type):
            @classmethod
            def __prepare__(cls, name, bases):
                return Names()

        class Colours(metaclass=Meta):
            red
            green
        """
    )
    project.watch("auto")
    assert project.load("auto").Colours.green > project.load("auto").Colours.red


def test_workers_that_are_spawned_can_load_what_was_pickled(project):
    project.write(
        work="def double(x):\n    return 2 * x\n",
        main="""
        import multiprocessing
        from swarmtest.coverage.watch import Coverage

        if __name__ == "__main__":
            with Coverage("line,branch", cover=["work"]) as coverage:
                import work
                coverage.reset()
                for way in ("spawn", "fork"):
                    with multiprocessing.get_context(way).Pool(1) as pool:
                        print(pool.map(work.double, [1, 2]))
        """,
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "main.py"],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split("\n")[:2] == ["[2, 4]", "[2, 4]"], done.stderr


def test_two_coverages_of_the_same_module_one_after_the_other(project, reached):
    project.write(twice="def f(x):\n    if x:\n        return 1\n    return 2\n")
    first = project.watch("twice", kinds=("line", "branch"))
    module = project.load("twice")
    assert len(reached(first, lambda: module.f(0))) == 3
    first.uninstall()
    second = project.watch("twice")
    assert len(reached(second, lambda: project.load("twice").f(1))) <= 2
    module = project.load("twice")
    assert reached(second, lambda: module.f(1)) == ["line:twice.py:2", "line:twice.py:3"]


def test_two_coverages_at_once(project, reached):
    project.write(mine="def f():\n    return 1\n", yours="def g():\n    return 1\n")
    first, second = project.watch("mine"), project.watch("mine", "yours")
    mine, yours = project.load("mine"), project.load("yours")
    assert reached(second, yours.g) == ["line:yours.py:2"]
    assert len(reached(second, mine.f)) + len(reached(first, mine.f)) >= 1


def test_a_module_with_probes_of_another_coverage_is_said_too(project):
    project.write(held="x = 1\n")
    project.watch("held").uninstall()
    first = project.watch("held")
    project.load("held")
    first.uninstall()
    assert "held" in "".join(project.watch("held").problems)


def test_the_same_source_has_the_same_targets_in_every_process(project):
    project.write(SHOP)
    text = (
        "from swarmtest.coverage.watch import Coverage\n"
        "with Coverage('line,block,branch', cover=['shop']) as c:\n"
        "    import shop\n    c.begin()\n"
        "print([(str(t), t.key, t.content) for t in c.catalogue.targets])\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", text],
            cwd=Path(project.root),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in "12"
    }
    assert len(told) == 1
    assert "branch:shop/cart.py:6->7" in told.pop()
