"""Reduction from Python: `swarmtest.reduce.reduce_campaign` and `reduce_named_test`."""

import json
import subprocess
import sys
from typing import Any

import pytest

from swarmtest import Campaign, Machine, UserError, action, open_store
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.reduce import reduce_campaign, reduce_named_test

PROGRAM = """
class Door:
    def __init__(self): self.open = False
    def push(self):
        self.open = True
    def knock(self):
        pass
"""
MACHINE = """
from {program} import Door
from swarmtest import Machine, action

class DoorMachine(Machine):
    steps = 30
    def start(self): self.door = Door()
    @action
    def push(self): self.door.push()
    @action
    def knock(self): self.door.knock()
    @action
    def lock(self): assert not self.door.open, "locked while open"
"""


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A campaign of a machine in a file, in the store ``s.db`` of the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    program = f"door_{tmp_path.name}"  # a module that no other test has imported
    (tmp_path / f"{program}.py").write_text(PROGRAM)
    (tmp_path / "machine.py").write_text(MACHINE.format(program=program))
    done = subprocess.run(
        [sys.executable, "-c", _RUN], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return int(done.stdout)


_RUN = (
    "from swarmtest import Campaign; "
    "print(Campaign('machine.py', 'default', 20, store='s.db', workers=1).run().campaign)"
)


def test_a_stopped_reduction_of_a_campaign_is_continued(campaign):
    first = reduce_campaign("s.db", campaign, seconds=0.0)
    assert len(first.untried) == 1
    assert first.reductions == {}
    progress: list[Any] = []
    faults: list[Any] = []
    done = reduce_campaign("s.db", campaign, on_run=progress.append, on_fault=faults.append)
    [reduction] = done.reductions.values()
    assert (reduction.size, reduction.complete, done.untried) == (2, True, ())
    assert faults == [reduction]
    assert progress[-1].size == 2
    assert {(step.fault, step.number, step.faults) for step in progress} == {
        (first.untried[0], 1, 1)
    }
    with open_store("s.db") as store:
        assert reductions_of(store, campaign) == done.reductions
        again = reduce_campaign(store, campaign, on_run=progress.append)
    assert again.reductions == done.reductions
    assert len(faults) == 1  # what is complete is not reduced again


def test_faults_can_be_selected(campaign):
    assert reduce_campaign("s.db", campaign, faults=[]).reductions == {}


def test_a_store_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.db"):
        reduce_campaign(str(tmp_path / "none.db"), 1)
    assert not (tmp_path / "none.db").exists()


def test_a_campaign_of_a_subject_without_a_name_is_refused():
    class Lamp(Machine):
        @action
        def switch(self):
            raise ValueError("broken")

    with open_store(":memory:") as store:
        number = Campaign(Lamp, "default", 3, store=store, workers=0).run().campaign
        with pytest.raises(UserError, match="cannot be imported by name"):
            reduce_campaign(store, number)


def test_a_named_test_keeps_its_fault_and_progress_is_reported(campaign):
    progress: list[Any] = []
    reduction = reduce_named_test(
        f"{campaign}#0", store="s.db", coverage=None, progress=progress.append
    )
    assert [step[0] for step in reduction.reduced.test["steps"]] == ["push", "lock"]
    assert reduction.reduced.fault
    assert reduction.reduced.fault.id == reduction.named.fault
    assert (progress[-1].size, progress[-1].part) == (2, "step")
    assert progress[-1].runs <= reduction.reduced.runs
    assert reduction.quality
    assert reduction.quality.srr == reduction.reduced.srr


def test_a_named_test_keeps_targets_and_no_import_hook_is_left_behind(campaign):
    before = list(sys.meta_path)
    reduction = reduce_named_test(f"{campaign}#0", ["fault", "coverage=50"], store="s.db")
    assert sys.meta_path == before
    assert reduction.quality
    assert reduction.quality.cpr is not None
    assert reduction.quality.cpr >= 0.5


def test_a_named_reduction_resumes_from_its_state(campaign, tmp_path):
    request = {"store": "s.db", "coverage": None, "state": tmp_path / "state.json"}
    stopped = reduce_named_test(f"{campaign}#0", budget=0.0, **request)
    assert not stopped.reduced.complete
    done = reduce_named_test(f"{campaign}#0", **request)
    assert done.reduced.complete
    assert json.loads((tmp_path / "state.json").read_text())["answers"]
    again = reduce_named_test(f"{campaign}#0", **request)
    assert again.reduced.test == done.reduced.test
    assert again.reduced.runs < done.reduced.runs
    with pytest.raises(UserError, match="is of another reduction"):
        reduce_named_test(f"{campaign}#0", runs=(2, 3), **request)


def test_the_api_does_not_load_the_command_line():
    program = (
        "import sys; from swarmtest.reduce import reduce_campaign, reduce_named_test; "
        "assert not {'click', 'rich', 'swarmtest.ui.options'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error():
    import swarmtest.reduce

    with pytest.raises(AttributeError, match="no attribute 'reduce_all'"):
        swarmtest.reduce.reduce_all  # type: ignore[attr-defined]  # noqa: B018
