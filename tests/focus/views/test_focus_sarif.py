"""The outcome of focused testing as SARIF: what the official schema and GitHub ask for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from focus_example import HOSTILE, any_text, fault, pull_request, saying
from hypothesis import example, given, settings

from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.views.annotations import sarif

TOP = Path("/repo")


def results(outcome: FocusOutcome, here: Path | None = None) -> list[dict[str, Any]]:
    """The results of the log, whose shape is checked on the way."""
    text = sarif(outcome, TOP, here)
    text.encode()
    log = json.loads(text)
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result.get("baselineState", "new") in ("new", "unchanged", "updated", "absent")
        assert result["message"]["text"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        for location in result["locations"]:
            place = location["physicalLocation"]
            assert re.fullmatch(r"[\w./%~-]*|file:///[\w./%~-]*", place["artifactLocation"]["uri"])
            region = place["region"]
            assert 1 <= region["startLine"] <= region.get("endLine", region["startLine"])
    return run["results"]


def of_rule(outcome: FocusOutcome, rule: str) -> list[dict[str, Any]]:
    return [result for result in results(outcome) if result["ruleId"] == rule]


def test_faults_have_a_level_and_a_state_by_age():
    told = {
        one["partialFingerprints"]["swarmtestFault/v1"]: (one["level"], one.get("baselineState"))
        for one in of_rule(pull_request(), "SWARM001")
    }
    assert told == {
        "3fa94c01": ("error", "new"),
        "9b3e5512": ("error", None),
        "77aa0210": ("note", "unchanged"),
    }


def test_a_fault_says_how_to_replay_it():
    assert "replay: swarmtest replay 7#17" in results(pull_request())[0]["message"]["text"]


def test_lines_never_hit_are_one_result_for_each_range():
    regions = [
        one["locations"][0]["physicalLocation"]["region"]
        for one in of_rule(pull_request(), "SWARM002")
    ]
    assert regions == [{"startLine": 31}, {"startLine": 40, "endLine": 41}]


def test_a_fault_without_a_place_is_shown_at_the_first_target():
    [result] = of_rule(replace(pull_request(), faults=(fault(location=None),)), "SWARM001")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "shop/cart.py"
    assert "where it failed is not known" in result["message"]["text"]


def test_paths_are_told_from_the_top_of_the_repository():
    place = results(pull_request(), TOP / "backend")[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "backend/shop/cart.py", "uriBaseId": "%SRCROOT%"}


def test_a_path_with_odd_characters_is_a_uri():
    [result] = of_rule(
        replace(pull_request(), faults=(fault(location=("a b/ü#?.py", 3)),)), "SWARM001"
    )
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (uri.isascii(), unquote(uri)) == (True, "a b/ü#?.py")


def test_an_outcome_of_nothing_has_no_results():
    assert results(FocusOutcome("shop.py", 1, "half-swarm")) == []


@given(any_text)
@example(HOSTILE)
@example("[look](http://elsewhere)")
@settings(max_examples=60, deadline=None)
def test_any_text_is_valid_and_no_link(text):
    for result in results(saying(text)):
        assert not re.search(r"\]\(", result["message"]["text"])
