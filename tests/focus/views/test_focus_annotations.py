"""The outcome of focused testing as GitHub workflow commands, JUnit XML and SARIF."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from focus_example import HOSTILE, any_text, counts, fault, line, pull_request, saying
from hypothesis import example, given, settings

from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.views.annotations import (
    code_quality,
    github_annotations,
    junit_xml,
    sarif,
)
from swarmtest.focus.views.rows import repository_path
from swarmtest.ui.terminal.text import one_line, printable

TOP = Path("/repo")


def read(outcome: FocusOutcome, here: Path | None = None) -> list[tuple[str, dict[str, str], str]]:
    """What a runner understands: level, properties and message of each command."""
    found = []
    for text in github_annotations(outcome, TOP, here).splitlines():
        command = re.fullmatch("::([a-z]+) (.*?)::(.*)", text)
        assert command
        level, told, message = command.groups()
        properties = dict(one.split("=", 1) for one in told.split(","))
        values = {name: _unescaped(value) for name, value in properties.items()}
        found.append((level, values, _unescaped(message)))
    return found


def _unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_a_new_fault_is_an_error_at_its_line():
    level, place, message = read(pull_request())[0]
    assert level == "error"
    assert place == {"file": "shop/cart.py", "line": "31", "title": "new fault 3fa94c01"}
    assert message.splitlines()[0] == "KeyError: '…' [Cart.total]"
    assert message.splitlines()[-1] == "replay: swarmtest replay 7#17"


def test_lines_never_hit_are_a_warning_for_each_range():
    warnings = [(place, told) for level, place, told in read(pull_request()) if level == "warning"]
    assert [(p["line"], p.get("endLine")) for p, _ in warnings] == [("31", None), ("40", "41")]
    assert warnings[0][1] == "never hit in 2,200 tests"


def test_the_verdict_is_a_notice():
    level, _, message = read(pull_request())[-1]
    assert level == "notice"
    assert message.endswith("11 of 14 changed lines hit (1,600 tests)")


def test_an_old_fault_is_no_annotation():
    assert "77aa0210" not in github_annotations(pull_request(), TOP)


def test_a_fault_without_a_place_is_an_error_of_the_whole_run():
    _, place, _ = read(replace(pull_request(), faults=(fault(location=None),)))[0]
    assert place == {"title": "new fault 3fa94c01"}


def test_at_most_ten_of_a_level_and_the_last_counts_the_rest():
    faults = tuple(fault(f"id{n:02}") for n in range(13))
    lines = tuple(line(n, **counts(0, 0, 0)) for n in range(2, 50, 2))
    found = read(replace(pull_request(), faults=faults, targets=lines))
    for level, rest in (("error", "and 3 more faults"), ("warning", "and 14 more places")):
        messages = [message for one, _, message in found if one == level]
        assert len(messages) == 10
        assert rest in messages[-1]
        assert not any("more" in message for message in messages[:-1])


def test_paths_are_told_from_the_workspace():
    _, place, _ = read(pull_request(), here=TOP / "backend")[0]
    assert place["file"] == "backend/shop/cart.py"


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_through_a_runner_as_it_was(text):
    found = read(saying(text))
    assert [level for level, _, _ in found][:3] == ["error"] * 3
    assert found[-1][0] == "notice"
    _, place, message = found[0]
    if one_line(text):
        assert message.split("\n")[0] == one_line(text)
    assert place["file"] == one_line(repository_path(text, TOP))


# GitLab's Code Quality report.


def entries(outcome: FocusOutcome) -> list[dict[str, Any]]:
    """The entries; that GitLab would take the report is checked on the way."""
    report: list[dict[str, Any]] = json.loads(code_quality(outcome, TOP).encode())
    for entry in report:
        assert entry.keys() == {
            "check_name",
            "description",
            "fingerprint",
            "location",
            "severity",
        }
        assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert not entry["location"]["path"].startswith("./")
    assert len({entry["fingerprint"] for entry in report}) == len(report)
    return report


def test_gitlab_gets_a_new_fault_and_each_range_never_hit():
    places = [
        (entry["severity"], entry["location"]["lines"]["begin"], entry["description"])
        for entry in entries(pull_request())
    ]
    assert ("minor", 40, "changed lines 40 to 41 never hit") in places
    assert ("critical", 31, "new fault: KeyError: '…' [Cart.total]") in places


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_text_is_a_valid_report_for_gitlab(text):
    for entry in entries(saying(text)):
        assert "\n" not in entry["description"]


# JUnit XML.


SHAPE = {
    "testsuites": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testcase"}),
    "testcase": ({"classname", "name", "time"}, {"properties", "skipped", "failure"}),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "skipped": ({"message"}, set()),
    "failure": ({"message"}, set()),
}
"""What the common schema asks: attributes that must be there, elements that may."""


def cases(outcome: FocusOutcome, strict: bool = False) -> dict[str, Element]:
    """The test cases by name; that the file has the common shape is checked on the way."""
    whole = ElementTree.fromstring(junit_xml(outcome, strict).encode())
    assert whole.tag == "testsuites"
    for element in whole.iter():
        needed, allowed = SHAPE[element.tag]
        assert needed <= set(element.keys()), (element.tag, element.attrib)
        assert {child.tag for child in element} <= allowed
        assert all(not child.tag.startswith("{") for child in element)
    for suite in (whole, whole[0]):
        assert int(suite.attrib["tests"]) == len(whole.findall(".//testcase"))
        assert int(suite.attrib["failures"]) == len(whole.findall(".//failure"))
        assert int(suite.attrib["skipped"]) == len(whole.findall(".//skipped"))
    for case in whole.iter("testcase"):
        assert len(case.findall("failure")) + len(case.findall("skipped")) <= 1
        assert [child.tag for child in case][:1] in ([], ["properties"], ["failure"], ["skipped"])
    return {case.attrib["name"]: case for case in whole.iter("testcase")}


def test_a_target_that_was_hit_passes_and_tells_its_hits():
    case = cases(pull_request())["line:shop/cart.py:26"]
    told = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert told["directed_hits"] == "372"
    assert told["undirected_tests"] == "900"
    assert not case.findall("failure") + case.findall("skipped")
    assert (case.get("file"), case.get("line")) == ("shop/cart.py", "26")


def test_a_line_never_hit_is_skipped_unless_that_is_asked_for():
    name = "line:shop/cart.py:31"
    skipped = cases(pull_request())[name].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "never hit in 2,200 tests"
    assert cases(pull_request(), strict=True)[name].find("failure") is not None


def test_a_dropped_target_is_skipped_with_the_reason():
    skipped = cases(pull_request())["line:shop/cart.py:52"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not aimed at: hit by 89% of tests anyway"


def test_a_new_fault_fails_with_its_details_and_how_to_replay_it():
    case = cases(pull_request())["3fa94c01 KeyError: '…' [Cart.total]"]
    failure = case.find("failure")
    assert failure is not None
    assert failure.text
    assert failure.get("message") == "new fault: KeyError: '…' [Cart.total]"
    assert "replay: swarmtest replay 7#17" in failure.text
    assert "return self.prices[name]" in failure.text


def test_a_fault_that_was_not_checked_fails():
    case = cases(replace(pull_request(), faults=(fault(status=""),)))
    assert case["3fa94c01 KeyError: '…' [Cart.total]"].find("failure") is not None


def test_an_old_fault_is_skipped():
    case = cases(pull_request())["77aa0210 AssertionError: stock is never negative [Shop.buy]"]
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "in the base version too"


def test_an_outcome_of_nothing_is_an_empty_suite():
    assert cases(FocusOutcome("shop.py", 1, "half-swarm")) == {}


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_through_a_parser_as_it_was(text):
    found = cases(saying(text))
    case = found[one_line(f"1 {text}")]
    failure = case.find("failure")
    assert failure is not None
    assert failure.text
    assert failure.text.endswith(printable(text).replace("\r", "\\r"))
    assert one_line(line(3, text).target) in found


# SARIF: what the official schema and GitHub ask for.


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
    results: list[dict[str, Any]] = run["results"]
    return results


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
