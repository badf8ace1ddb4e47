"""What commands import: counts of modules, which hold on any machine; seconds are a benchmark's."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import swarmtest.ui.cli
from swarmtest.campaign.campaign import Campaign
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord

STACK = Path(__file__).parents[1] / "examples" / "stack.py"
HEAVY = {"numpy", "jinja2", "rich", "hypothesis", "starlette", "matplotlib", "pyarrow"}
COMMAND = """
import json, sys
from swarmtest.ui.cli import main
sys.argv = ["swarmtest", *{words!r}]
try:
    main()
finally:
    print("\\n" + json.dumps(sorted(sys.modules)))
"""


def modules_after(program, cwd, status=0):
    child = subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True)
    assert child.returncode == status, child.stderr
    return set(json.loads(child.stdout.splitlines()[-1]))


def modules_of(words, cwd, status=0):
    return modules_after(COMMAND.format(words=words), cwd, status)


def own(modules):
    return {name for name in modules if name.partition(".")[0] == "swarmtest"}


def commands_in(modules):
    """The modules of commands, and what only they share."""
    return {
        name
        for name in modules
        if name.startswith("swarmtest.ui.commands.") or name.endswith(".command")
    }


def packages(modules):
    return {name.partition(".")[0] for name in modules}


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / ".swarmtest" / "swarmtest.db") as store:
        store.add_campaign(CampaignRecord("stack.py", "coin", 7, {"dimensions": []}))
    return tmp_path


def test_list_imports_few_modules_and_nothing_that_runs_or_analyses_tests(store):
    loaded = modules_of(["list"], store)
    assert len(own(loaded)) <= 60
    assert not packages(loaded) & HEAVY
    rooms = {".".join(name.split(".")[:2]) for name in own(loaded)}
    unneeded = "analysis compare focus growth mutate plan race reduce roles search strategies suite"
    assert not rooms & {f"swarmtest.{room}" for room in unneeded.split()}


def test_a_run_of_ten_tests_imports_nothing_for_what_it_does_not_do(tmp_path):
    """It finds a fault and reduces it, in processes that are all forked from this one."""
    loaded = modules_of(["run", str(STACK), "--tests", "10"], tmp_path, status=1)
    assert not packages(loaded) & HEAVY
    rooms = {".".join(name.split(".")[:2]) for name in own(loaded)}
    unneeded = "analysis compare focus growth mutate plan race search suite"
    assert not rooms & {f"swarmtest.{room}" for room in unneeded.split()}
    with open_store(tmp_path / ".swarmtest" / "swarmtest.db") as kept:
        assert kept.summary(1)["trials"] == 10
        complete = {record.criterion: record.complete for record in kept.reductions(1)}
        assert complete == {"fault": True, "why": True}


def test_tiny_campaigns_run_the_same_tests_as_larger_ones():
    """Workers of tiny ones are forked, those of larger ones are interpreters of their own."""
    with open_store(":memory:") as store:
        for tests in (16, 17):
            Campaign(str(STACK), "coin", tests, workers=2, store=store).run()
        tiny, larger = (
            [trial._replace(cpu_ns=0, wall_ns=0) for trial in store.trials(campaign, before=16)]
            for campaign in (1, 2)
        )
        assert tiny == larger
        assert [fault[:3] for fault in store.faults(1)] == [f[:3] for f in store.faults(2)]


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_command(words, tmp_path):
    loaded = modules_of(words, tmp_path)
    assert not commands_in(loaded)
    assert not packages(loaded) & HEAVY


def test_the_list_of_commands_is_completed_without_importing_any(tmp_path):
    program = """
import json, sys
from swarmtest.ui.cli import group
from click.shell_completion import BashComplete
completion = BashComplete(group, {}, "swarmtest", "_SWARMTEST_COMPLETE")
names = [item.value for item in completion.get_completions([], "re")]
assert names == ["resume", "report", "replay", "reproduce", "reduce"], names
print(json.dumps(sorted(sys.modules)))
"""
    assert not commands_in(modules_after(program, tmp_path))


@pytest.mark.parametrize("name", swarmtest.ui.cli.COMMANDS)
def test_every_command_of_the_list_exists_and_says_what_it_does(name):
    group = swarmtest.ui.cli.group
    command = group.get_command(click.Context(group), name)
    assert command
    assert command.get_short_help_str(1000)
    assert swarmtest.ui.cli.COMMANDS[name].help.endswith(".")


@pytest.mark.parametrize("program", ["swarmtest", "swarmtest.pytest_plugin"])
def test_importing_the_package_or_its_plugin_loads_hardly_anything(program, tmp_path):
    loaded = modules_after(
        f"import {program}, json, sys; print(json.dumps(sorted(sys.modules)))", tmp_path
    )
    assert len(own(loaded)) <= 10
    assert not packages(loaded) & (HEAVY | {"click"})


def test_every_command_starts_with_nothing_but_the_core_dependencies(tmp_path):
    """Extras and pytest are imported only by what needs them, which says how to install them."""
    program = """
import importlib.abc, json, sys
optional = set(
    "hypothesis lark grammarinator tree_sitter pysat matplotlib pyarrow starlette uvicorn anyio "
    "psycopg distributed dask optuna coverage numba pytest _pytest".split()
)
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import swarmtest.ui.cli
missing = {}
for name in swarmtest.ui.cli.COMMANDS:
    try:
        swarmtest.ui.cli.group.get_command(None, name)
    except ImportError as error:
        missing[name] = str(error)
print(json.dumps(missing))
"""
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(child.stdout) == {}


THREADS = """
import os
import sys
from swarmtest.ui.cli import main
before = dict(os.environ)
sys.argv = ["swarmtest", "{command}", "--help"]
try:
    main()
except SystemExit:
    pass
import numpy
numpy.ones((800, 800)) @ numpy.ones((800, 800))
assert dict(os.environ) == before
print("\\n" + str(len(os.listdir("/proc/self/task"))))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")
def test_linear_algebra_of_an_analysis_runs_in_one_thread(tmp_path):
    """Several threads would mostly wait for each other; children do not inherit the limit."""
    program = THREADS.format(command="roles")
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[-1] == "1"


def test_the_compiler_of_a_build_imports_little(tmp_path):
    """A build starts it for every file."""
    loaded = modules_of(["cc"], tmp_path, status=2)
    assert "swarmtest.coverage.native.compiler" in loaded
    assert len(own(loaded)) <= 20
    assert not packages(loaded) & HEAVY
