"""What works behind the pages: looking at the machine, computing beside, code without a subject."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from xml.etree import ElementTree

import pytest

from swarmtest.core.errors import UserError
from swarmtest.store import open_store
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest
from swarmtest.subjects.machine.test import MachineTest, Step
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.ui.dashboard.queries import QueryPool
from swarmtest.ui.dashboard.store_watch import EventBroadcaster
from swarmtest.ui.dashboard.system import MachineMonitor, campaign_process, is_swarmtest
from swarmtest.ui.report.figures import DiscoveryPlot, ExpectedPoint, PlottedCurve
from swarmtest.ui.report.svg_figures import figure_svg


@pytest.fixture
def busy():
    """A process that does nothing but work, with a password on its command line."""
    words = ["-c", "while True: pass", "--store", "postgresql://me:hush@host/swarmtest"]
    process = subprocess.Popen([sys.executable, *words])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_seen_with_its_work_but_without_a_password(busy, until) -> None:
    machine = MachineMonitor()

    def works() -> bool:
        machine.processes([busy.pid])
        time.sleep(0.25)
        return machine.processes([busy.pid])[0].cpu > 0.02

    until(works, "it works")
    (seen,) = machine.processes([busy.pid])
    assert seen.pid == busy.pid
    assert seen.memory > 1_000_000
    assert "postgresql://me:***@host/swarmtest" in seen.name
    assert "hush" not in seen.name


def test_only_processes_of_swarmtest_are_taken_for_campaigns(busy, tmp_path, start, until) -> None:
    """Whatever a store says of a pid: nothing else is ever interrupted."""
    until(lambda: "while True" in MachineMonitor().processes([busy.pid])[0].name, "it has begun")
    assert not is_swarmtest(busy.pid)
    assert campaign_process(busy.pid) is None
    assert MachineMonitor().processes([2**22 + 1]) == []
    open_store(tmp_path / "s.db").close()
    ours = start("dashboard", "--store", "s.db", "--port", 0, cwd=tmp_path)
    until(lambda: is_swarmtest(ours.pid), "it runs")
    assert campaign_process(ours.pid) is None, "its parent is no campaign"


@pytest.fixture
def computing():
    made = QueryPool(lambda: open_store(":memory:"), EventBroadcaster())
    yield made
    made.close()


def test_a_question_is_answered_beside_the_page_and_once_for_the_same_data(
    computing: QueryPool, until
) -> None:
    go, asked = threading.Event(), []

    def question(store):
        asked.append(store.campaigns())
        assert go.wait(60)
        return len(asked)

    first = computing.ask("roles:1", 100, question)
    assert (first.value, first.is_computing) == (None, True)
    assert computing.ask("roles:1", 100, question).is_computing
    go.set()
    until(lambda: computing.ask("roles:1", 100, question).value == 1, "it is answered")
    older = computing.ask("roles:1", 200, question, hurry=True)
    assert (older.value, older.is_computing) == (1, True), "the old answer until there is a new one"
    until(lambda: computing.ask("roles:1", 200, question).value == 2, "it is answered again")
    assert len(asked) == 2


def test_a_question_that_cannot_be_answered_says_why(computing: QueryPool, until) -> None:
    def refused(store):
        raise UserError("no features")

    def broken(store):
        raise KeyError("x")

    for topic, question in (("a", refused), ("b", broken)):
        until(lambda t=topic, q=question: computing.ask(t, 1, q).problem, "it is refused")
    assert computing.ask("a", 1, refused).problem == "no features"
    assert computing.ask("b", 1, broken).problem.startswith("a bug in swarmtest: KeyError")


def test_what_is_ahead_is_a_wedge_behind_the_curve() -> None:
    curve = PlottedCurve(
        1, "coin", (1.0, 50.0, 100.0), (1, 3, 4), ExpectedPoint(200, 5.0, 4.0, 900.0)
    )
    drawn = figure_svg(DiscoveryPlot("x", "Faults by tests", "tests", "faults", (curve,)))
    tree = ElementTree.fromstring(drawn)
    paths = {one.get("class"): one.attrib["d"] for one in tree.iter() if one.tag.endswith("path")}
    end = float(paths["wedge"].split("L")[1].split(",")[0])
    last = float(paths["curve s0"].rpartition("H")[2].partition("V")[0])
    assert end > last, "twice as many tests lie to the right of those that were run"
    heights = [float(pair.rstrip("z").split(",")[1]) for pair in paths["wedge"][1:].split("L")]
    assert min(heights) >= 10, "a wide interval is cut at the top of the plot"


def test_tests_of_any_kind_are_code_without_their_subject() -> None:
    steps = (Step("new", (1,), label=1), Step("use", ({"$ref": 1}, [2.5, None]), raised="KeyError"))
    machine = StoredTests().code(MachineTest("shop/cart.py::Cart", steps).to_json())
    assert machine.splitlines()[2:] == [
        "machine = Cart()",
        "machine.start()",
        "v1 = machine.new(1)",
        "machine.use(v1, [2.5, None])  # raises KeyError",
    ]
    rules = RuleTest("stack.py::Rules", (RuleStep("push", 1, (5,), texts={"value": "5"}),))
    assert "v1 = state.push(value=5)" in StoredTests().code(rules.to_json())
    assert StoredTests().code({"format": "swarmtest grammar test 1", "text": "1 + 1"}) == "1 + 1"


@pytest.mark.parametrize("broken", [None, [], 7, {"format": "x"}, {"steps": 3}])
def test_a_test_that_is_not_one_is_shown_as_it_is(broken) -> None:
    assert StoredTests().code(broken).replace(" ", "").startswith(str(broken)[:1].replace("N", "n"))
    saved = {"format": "swarmtest machine test 1", "steps": "broken"}
    assert '"steps": "broken"' in StoredTests().code(saved)
