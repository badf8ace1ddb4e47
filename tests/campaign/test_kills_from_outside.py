"""A kill is not a verdict: only what a test does again is its fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarmtest.store import open_store

STEADY = Path(__file__).with_name("steady_under_kills.py")


@pytest.fixture
def run(swarmtest, tmp_path):
    def run(name, **env):
        store = tmp_path / f"{name}.db"
        done = swarmtest(
            *("run", STEADY, "-n", 150, "-j", 2, "-s", "coin", "--seed", 3, "--store", store),
            "--no-reduce",
            cwd=tmp_path,
            **env,
        )
        return done, store

    return run


def faults_of(store):
    with open_store(str(store)) as opened:
        return [(f.id, f.first_trial, f.trial, f.size, f.test, f.count) for f in opened.faults(1)]


def test_a_campaign_under_kills_equals_the_undisturbed_one(run, rows, tmp_path, swarmtest):
    undisturbed, quiet = run("quiet")
    marks = tmp_path / "marks"
    marks.mkdir()
    disturbed, noisy = run("noisy", MARKS=str(marks))
    killed = [int(mark.name) // 20 % 5 == 0 for mark in marks.iterdir()]
    assert sum(killed) >= 2, "hosts"
    assert len(killed) - sum(killed) >= 8, "children"
    assert disturbed.returncode == undisturbed.returncode == 1, disturbed.stderr
    assert rows(noisy) == rows(quiet)
    assert faults_of(noisy) == faults_of(quiet)
    assert "killed from outside once" in disturbed.stdout + disturbed.stderr
    shown = swarmtest("show", "--store", noisy, cwd=tmp_path)
    assert "killed from outside once, so they ran again" in shown.stdout
    assert "killed" not in swarmtest("show", "--store", quiet, cwd=tmp_path).stdout
