"""A hundred thousand trials: pages are as quick as for a hundred; what takes long comes later."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from swarmtest.core.space import Space
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord, pack_floats

TRIALS = 100_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with so many trials, twelve features and three faults."""
    place = tmp_path_factory.mktemp("large")
    space = Space([f"feature{i}" for i in range(12)])
    rng = random.Random(0)
    names = space.feature_names
    chosen = [[name for i, name in enumerate(names) if bits >> i & 1] for bits in range(1, 4096)]
    packed = [(one.to_bytes(), one.bits) for one in map(space.configuration, chosen)]
    half = pack_floats([0.5])
    faults = [
        FaultRecord(f"{i:08x}", "exception", f"Error {i}", "", i, i, 9, None) for i in range(3)
    ]
    with open_store(place / ".swarmtest" / "swarmtest.db") as store:
        budget = {"budget": {"tests": TRIALS}}
        record = CampaignRecord("large.py::Large", "coin", 0, space.to_json(), budget, "finished")
        number = store.add_campaign(record)
        for start in range(0, TRIALS, 20_000):
            rows = []
            for trial in range(start, start + 20_000):
                data, bits = rng.choice(packed)
                fault = f"{trial % 3:08x}" if bits & 3 == 1 and trial % 7 == 0 else None
                rows.append(
                    TrialRecord(
                        trial, data, half, seed=trial, verdict=int(fault is not None), fault=fault,
                        steps=50, cpu_ns=200_000, wall_ns=210_000,
                    )
                )  # fmt: skip
            store.record(number, rows, faults)
    return place


@pytest.fixture(scope="module")
def server(large: Path, serve):
    return serve(large)


def test_a_page_does_not_wait_for_what_takes_long(server) -> None:
    with server.admitted() as client:
        page = client.get("/campaigns/1").text
        assert "computing what is left" in page
        assert "100,000" in page


def test_configurations_are_turned_like_pages(server) -> None:
    with server.admitted() as client:
        middle = client.get("/campaigns/1/configurations?before=50000").text
        assert _numbers(middle) == [*range(49_999, 49_949, -1)]
        older = client.get(_link(middle, "next")).text
        assert _numbers(older) == [*range(49_949, 49_899, -1)]
        assert _numbers(client.get(_link(older, "prev")).text) == _numbers(middle)
        failed = client.get("/campaigns/1/configurations?fault=00000001").text
        assert all(number % 3 == 1 for number in _numbers(failed))


def test_what_takes_long_arrives_by_itself(server, visit) -> None:
    visitor = visit(server.rstrip("/"))
    page = visitor.go("/campaigns/1/roles")
    page.get_by_text("triggers: feature0").first.wait_for()
    page.get_by_text("suppressors: feature1").first.wait_for()
    page = visitor.go("/campaigns/1")
    page.locator(".verdict-line").wait_for()


def test_pages_cost_little_whatever_the_number_of_trials(server, until) -> None:
    """Far below what reading a hundred thousand rows takes, on a slow machine too."""
    with server.admitted() as client:
        until(lambda: "computing" not in client.get("/campaigns/1").text, "all is computed")
        until(lambda: "computing" not in client.get("/campaigns/1/faults").text, "all is computed")
        before = server.cpu_seconds()
        for _ in range(5):
            for path in ("", "/faults", "/roles", "/configurations", "/trials/77777"):
                assert client.get(f"/campaigns/1{path}").status_code == 200
        assert (server.cpu_seconds() - before) / 25 < 0.25


def _numbers(page: str) -> list[int]:
    return [int(number) for number in re.findall(r"/trials/(\d+)", page)]


def _link(page: str, relation: str) -> str:
    found = re.search(rf'href="([^"]+)" rel="{relation}"', page)
    assert found
    return found[1].replace("&amp;", "&")
