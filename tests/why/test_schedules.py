"""A race is explained by the switches of its schedule."""

from __future__ import annotations

import pytest

from swarmtest.core.errors import UserError
from swarmtest.race.subject import ThreadsSubject
from swarmtest.why import Explanation, VariantBudget, explain_test

SHOP = """
from threading import Thread

class Shop:
    def __init__(self):
        self.sold = 0
        self.colour = "red"

    def sell(self):
        self.colour = "blue"
        sold = self.sold
        self.sold = sold + 1
        self.colour = "green"

def sell_twice():
    shop = Shop()
    threads = [Thread(target=shop.sell), Thread(target=shop.sell)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert shop.sold == 2
"""


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> ThreadsSubject:
    file = tmp_path_factory.mktemp("shop") / "shop.py"
    file.write_text(SHOP)
    return ThreadsSubject(f"{file}::sell_twice")


def failing_test(subject: ThreadsSubject):
    default = subject.space.configuration(["random-walk"])
    for seed in range(200):
        result = subject.execute(default, seed)
        if result.fault is not None:
            return subject.reduced(result.test, lambda test: True), result.fault
    raise AssertionError("no schedule shows the race")


@pytest.fixture(scope="module")
def explained(subject: ThreadsSubject) -> Explanation:
    test, fault = failing_test(subject)
    return explain_test(subject, test, fault)


def test_the_switch_that_is_needed_is_named_with_its_place(explained: Explanation) -> None:
    assert explained.is_schedule
    assert len(explained.steps) == 1
    words = explained.steps[0].feature
    assert "before it writes self.sold in Shop.sell" in words
    assert explained.paragraph.startswith(f"needs one switch: {words}; it has to be exactly there")


def test_switches_that_could_not_be_made_are_no_evidence(explained: Explanation) -> None:
    # Each thread has five accesses; most of the further switches come after its end.
    assert 0 < explained.variants < explained.runs
    assert explained.kept <= explained.variants


def test_the_explanation_of_a_schedule_survives_json(explained: Explanation) -> None:
    assert Explanation.from_json(explained.to_json()) == explained


def test_a_switch_that_is_not_needed_is_left_out(subject: ThreadsSubject) -> None:
    test, fault = failing_test(subject)
    switches = test["schedule"]["switches"]
    thread, other = switches[0]["thread"], switches[0]["next"]
    # After the other thread has written what it sold, a further switch changes nothing.
    extra = {"thread": other, "at": 4, "next": thread, "forced": False, "site": "", "nth": 0}
    longer = {**test, "schedule": {**test["schedule"], "switches": [*switches, extra]}}
    found = explain_test(subject, longer, fault, budget=VariantBudget(runs=200))
    assert len(found.steps) == 1


def test_a_run_with_noise_has_no_schedule_to_explain(subject: ThreadsSubject) -> None:
    test, fault = failing_test(subject)
    noise = {key: value for key, value in test.items() if key != "schedule"}
    with pytest.raises(UserError, match="seen with noise"):
        explain_test(subject, noise, fault)
