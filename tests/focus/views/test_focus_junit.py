"""The outcome of focused testing as JUnit XML."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from focus_example import HOSTILE, any_text, fault, line, pull_request, saying
from hypothesis import example, given, settings

from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.views.annotations import junit_xml
from swarmtest.ui.terminal.text import one_line, printable

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
        assert int(suite.get("tests")) == len(whole.findall(".//testcase"))
        assert int(suite.get("failures")) == len(whole.findall(".//failure"))
        assert int(suite.get("skipped")) == len(whole.findall(".//skipped"))
    for case in whole.iter("testcase"):
        assert len(case.findall("failure")) + len(case.findall("skipped")) <= 1
        assert [child.tag for child in case][:1] in ([], ["properties"], ["failure"], ["skipped"])
    return {case.get("name"): case for case in whole.iter("testcase")}


def test_a_target_that_was_hit_passes_and_tells_its_hits():
    case = cases(pull_request())["line:shop/cart.py:26"]
    told = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert told["directed_hits"] == "372"
    assert told["undirected_tests"] == "900"
    assert not case.findall("failure") + case.findall("skipped")
    assert (case.get("file"), case.get("line")) == ("shop/cart.py", "26")


def test_a_line_never_hit_is_skipped_unless_that_is_asked_for():
    name = "line:shop/cart.py:31"
    assert cases(pull_request())[name].find("skipped").get("message") == "never hit in 2,200 tests"
    assert cases(pull_request(), strict=True)[name].find("failure") is not None


def test_a_dropped_target_is_skipped_with_the_reason():
    skipped = cases(pull_request())["line:shop/cart.py:52"].find("skipped")
    assert skipped.get("message") == "not aimed at: hit by 89% of tests anyway"


def test_a_new_fault_fails_with_its_details_and_how_to_replay_it():
    case = cases(pull_request())["3fa94c01 KeyError: '…' [Cart.total]"]
    failure = case.find("failure")
    assert failure.get("message") == "new fault: KeyError: '…' [Cart.total]"
    assert "replay: swarmtest replay 7#17" in failure.text
    assert "return self.prices[name]" in failure.text


def test_a_fault_that_was_not_checked_fails():
    case = cases(replace(pull_request(), faults=(fault(status=""),)))
    assert case["3fa94c01 KeyError: '…' [Cart.total]"].find("failure") is not None


def test_an_old_fault_is_skipped():
    case = cases(pull_request())["77aa0210 AssertionError: stock is never negative [Shop.buy]"]
    assert case.find("skipped").get("message") == "in the base version too"


def test_an_outcome_of_nothing_is_an_empty_suite():
    assert cases(FocusOutcome("shop.py", 1, "half-swarm")) == {}


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_through_a_parser_as_it_was(text):
    found = cases(saying(text))
    case = found[one_line(f"1 {text}")]
    assert case.find("failure").text.endswith(printable(text).replace("\r", "\\r"))
    assert one_line(line(3, text).target) in found
