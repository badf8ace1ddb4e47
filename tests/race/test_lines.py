"""Modules without source: threads are switched before lines, where the interpreter reports them."""

from __future__ import annotations

import py_compile
import sys
import textwrap
from pathlib import Path

import pytest
from threaded_programs import MISSED_NOTIFY

from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import controlled_run, replay
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.weaving.weaver import woven

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="sys.monitoring needs Python 3.12"
)
NAME = "sourceless_box"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scope:
    """A program of which there is only bytecode."""
    source = tmp_path / f"{NAME}.py"
    source.write_text(textwrap.dedent(MISSED_NOTIFY))
    py_compile.compile(str(source), cfile=str(tmp_path / f"{NAME}.pyc"), doraise=True)
    source.unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return Scope(names=(NAME,))


def test_a_lost_wake_up_is_found_and_replayed_without_source(place: Scope) -> None:
    with woven(place):
        test = __import__(NAME).test
        runs = (controlled_run(test, RandomWalk(seed)) for seed in range(200))
        found = next(run for run in runs if run.fault)
        assert found.fault is not None
        assert found.fault.kind == "lost wake-up"
        assert [replay(test, found.schedule).fault for _ in range(5)] == [found.fault] * 5


def test_noise_is_made_before_lines(place: Scope) -> None:
    settings = NoiseSettings(300, "sleep", 5)
    with woven(place):
        test = __import__(NAME).test
        assert any(free_run(test, Noise(settings, seed)).fault for seed in range(200))


def test_pairs_of_lines_are_covered(place: Scope) -> None:
    with woven(place):
        test = __import__(NAME).test
        hits = controlled_run(test, RandomWalk(3), coverage=ConcurrencyCoverage(["pair"])).hits
    assert hits is not None
    assert any(
        "another thread" in target.name and " line " in target.name for target in hits.targets()
    )
