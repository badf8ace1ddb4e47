"""Which campaign of a watch goes on: the one whose growth promises most for a CPU second."""

from __future__ import annotations

from store_examples import CAMPAIGN, trial

from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.watch.campaign_choice import choose_campaign, weigh_campaign


def test_the_campaign_that_still_finds_something_goes_on() -> None:
    with open_store(":memory:") as store:
        ids = store.target_ids([Target("event", str(n)) for n in range(40)])
        hits = {
            "done": lambda n: [ids[0]],
            "growing": lambda n: [ids[0], ids[n]],  # each test reaches something new
            "slow": lambda n: [ids[0], ids[n]],
        }
        weighed = []
        for name, reach in hits.items():
            number = store.add_campaign(CAMPAIGN)
            cpu_ns = 10**9 if name == "slow" else 10**6
            rows = [trial(n, hits=pack_hits(reach(n)), cpu_ns=cpu_ns) for n in range(40)]
            store.record(number, rows)
            weighed.append(weigh_campaign(store, store.campaign(number), name))
        done, growing, slow = weighed
        assert done.new_per_second == 0
        # 39 of the 40 targets were reached once, in 40 tests of a millisecond each.
        assert growing.new_per_second == 39 / 40 / 0.001
        assert slow.new_per_second == 39 / 40
        assert choose_campaign(weighed) == growing


def test_too_few_tests_come_first() -> None:
    with open_store(":memory:") as store:
        number = store.add_campaign(CAMPAIGN)
        store.record(number, [trial(n, cpu_ns=10**6) for n in range(29)])
        young = weigh_campaign(store, store.campaign(number), "young")
        store.record(number, [trial(29, cpu_ns=10**6)])
        known = weigh_campaign(store, store.campaign(number), "known")
    assert (young.new_per_second, known.new_per_second) == (None, 0)
    assert choose_campaign([known, young]) == young
