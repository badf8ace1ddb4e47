"""Thousands of faults: one page has a hundred, and the groups and the search have all of them."""

from __future__ import annotations

import pytest

from swarmtest.store.records import FaultRecord
from swarmtest.ui.dashboard.fault_list import FAULTS_PER_PAGE, FaultList, fault_list
from swarmtest.ui.report.faults import ReportedFault, fault_groups


def fault(number: int) -> ReportedFault:
    kind = ("KeyError", "IndexError")[number % 2]
    signature = f"{kind}: {number} [Shop.step{number % 40}: assert x != {number}]"
    record = FaultRecord(f"{number:08x}", "exception", signature, "", number, number, 9, None)
    return ReportedFault(record, 1, {1: 1 + number % 7}, (1, number))


FAULTS = [fault(number) for number in range(8000)]


def shown(page: FaultList) -> list[int]:
    return [int(each.record.id, 16) for each in page.faults]


def test_pages_follow_each_other_and_end() -> None:
    first = fault_list(FAULTS, {})
    assert shown(first) == [*range(FAULTS_PER_PAGE)]
    assert (first.pages, first.newer, first.older) == (80, "", "?page=2")
    last = fault_list(FAULTS, {"page": "999999"})
    assert shown(last)[-1] == 7999
    assert (last.older, last.newer) == ("", "?page=79")


def test_groups_have_every_fault_and_lead_to_it() -> None:
    page = fault_list(FAULTS, {})
    assert sum(len(group.faults) for group, _ in page.groups) == 8000
    group, query = page.groups[0]
    chosen = fault_list(FAULTS, {"group": group.name})
    assert query == f"?group={group.name.replace(' ', '+').replace('[', '%5B').replace(']', '%5D')}"
    assert chosen.found == len(group.faults) == 200
    assert {each.record.signature.split(":")[0] for each in chosen.faults} == {
        group.name.split(" ")[0]
    }


def test_words_and_orders() -> None:
    found = fault_list(FAULTS, {"words": "indexerror step39:"})
    assert found.found == 200
    assert shown(fault_list(FAULTS, {"sort": "newest"}))[0] == 7999
    assert fault_list(FAULTS, {"sort": "frequent"}).faults[0].count == 7
    assert fault_list(FAULTS, {"sort": "rare"}).faults[0].count == 1
    assert fault_list(FAULTS, {"sort": "nonsense", "page": "-1"}).sort == "first"
    assert fault_list([], {"words": "x"}).faults == ()


@pytest.mark.parametrize(
    ("signature", "group"),
    [
        ("KeyError: 'a' [Shop.buy: del x]", "KeyError [Shop.buy]"),
        ("AssertionError [buy: assert a[0]]", "AssertionError"),
        ("SIGFPE [calculate]", "SIGFPE [calculate]"),
        ("exit status 3", "exit status 3"),
        ("", ""),
    ],
)
def test_a_group_is_an_error_and_a_function(signature: str, group: str) -> None:
    record = FaultRecord("1", "exception", signature, "", 0, 0, 1, None)
    (only,) = fault_groups([ReportedFault(record, 1, {1: 1}, (1, 0))])
    assert only.name == group
