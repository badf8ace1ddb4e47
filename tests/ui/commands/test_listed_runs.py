"""`swarmtest list` gives the runs of a comparison one line, and no other campaigns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from swarmtest.store.records import CampaignRecord
from swarmtest.ui.commands.list import compared_runs

TWO_BY_TWO = ["coin 0", "all-on 0", "coin 1", "all-on 1"]


def groups(runs: list[str], **changed: Any) -> list[list[int]]:
    """Return the ids of the campaigns that share a line; `changed` is about the last one."""
    records = []
    for id, run in enumerate(runs, 1):
        strategy, seed = run.split()
        records.append(CampaignRecord("stack.py::Stack", strategy, int(seed), {}, {"n": 9}, id=id))
    records[-1] = replace(records[-1], **changed)
    return [[record.id for record in group] for group in compared_runs(records)]


def test_the_runs_of_a_comparison_share_a_line() -> None:
    assert groups(["layered 0", *TWO_BY_TWO, "coin 0"]) == [[1], [2, 3, 4, 5], [6]]


def test_a_comparison_that_was_interrupted_shares_a_line() -> None:
    assert groups([*TWO_BY_TWO, "coin 2"]) == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    "runs",
    [
        ["coin 0", "all-on 0"],  # one seed: somebody has tried both
        ["coin 0", "coin 1", "coin 2"],
        ["coin 0", "coin 0", "all-on 0", "all-on 1"],
        ["coin 0", "all-on 0", "layered 1", "coin 2"],
    ],
)
def test_other_campaigns_have_a_line_each(runs: list[str]) -> None:
    assert groups(runs) == [[number] for number in range(1, len(runs) + 1)]


@pytest.mark.parametrize("changed", [{"subject": "queue.py::Queue"}, {"options": {"n": 8}}])
def test_a_campaign_that_differs_is_not_one_of_the_runs(changed: dict[str, Any]) -> None:
    assert groups([*TWO_BY_TWO, "coin 2"], **changed) == [[1, 2, 3, 4], [5]]
