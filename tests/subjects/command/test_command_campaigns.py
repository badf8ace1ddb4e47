"""Campaigns over commands: workers, invalid tests, time, what is stored."""

from __future__ import annotations

import json

import pytest

from swarmtest import Campaign, UserError
from swarmtest.store import open_store
from swarmtest.subjects.loading import SubjectReference

TOML = """
[generate]
command = ['sh', '-c', 'case "$*" in *x*) exit 3; esac; echo $*', 'sh', '{features}']
seed = "none"
[features]
a = "-a"
b = "-b"
x = "-x"
[[steps]]
name = "grep"
run = ["grep", "-c", "b", "{test}"]
expect = [1]
"""


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "subject.toml"
    path.write_text(TOML)
    return path


def test_faults_and_invalid_tests_are_counted_apart(toml, tmp_path):
    # Without -x the generator works, so nothing is wrong with all of it together but for x.
    toml.write_text(TOML.replace("a = ", 'ok = { on = "-o", excludes = ["x"] }\na = '))
    store = str(tmp_path / "store.db")
    outcome = Campaign(
        SubjectReference(str(toml)), "coin", 60, seed=1, workers=2, store=store
    ).run()
    assert [fault.signature for fault in outcome.faults] == ["grep: exit status 0"]
    with open_store(store) as opened:
        rows = list(opened.trials(outcome.campaign))
        stored = opened.faults(outcome.campaign)[0].test
        assert stored
        test = json.loads(stored)
    assert "-b" in test["text"]
    assert "b" in test["features"]
    invalid = [row for row in rows if row.verdict == 2]
    assert invalid
    assert {row.missing for row in invalid} == {"the generator ended with exit status 3"}
    assert all(row.fault is None for row in invalid)
    valid = [row for row in rows if row.verdict != 2]
    assert min(row.cpu_ns for row in valid) > 500_000  # two processes cannot be had for less


def test_a_generator_that_fails_by_itself_is_told_before_any_test(toml, tmp_path):
    with pytest.raises(
        UserError, match="there is no test with all features on: the generator ended"
    ):
        Campaign(SubjectReference(str(toml)), "coin", 10, store=str(tmp_path / "s.db")).run()


def test_strategies_that_give_weights_are_refused_for_switches(toml, tmp_path):
    toml.write_text(TOML.replace("exit 3", "true"))
    campaign = Campaign(SubjectReference(str(toml)), "activation", 10, store=str(tmp_path / "s.db"))
    with pytest.raises(UserError, match="gives features weights"):
        campaign.run()
