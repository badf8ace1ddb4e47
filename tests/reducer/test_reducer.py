"""The reducer: what is left is needed, nothing is asked twice, nothing that was found is lost."""

from __future__ import annotations

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.core.errors import UserError
from swarmtest.reducer.criteria import Repeated
from swarmtest.reducer.reducer import NotInteresting, Reducer, minimised


class Asked:
    """A criterion that notes what it was asked about."""

    def __init__(self, holds):
        self.holds = holds
        self.about = []

    def __call__(self, parts):
        self.about.append(parts)
        return self.holds(parts)


def by_chance(seed, share):
    """A criterion without any sense: some sets hold, others do not, and the original does."""
    answers = {}

    def holds(parts):
        key = tuple(parts)
        if key not in answers:
            answers[key] = random.Random(f"{seed} {key}").random() < share
        return answers[key]

    return holds


criteria_without_sense = st.builds(by_chance, st.integers(0, 10**6), st.floats(0.02, 0.6))


def is_1_minimal(parts, holds):
    return not any(holds((*parts[:i], *parts[i + 1 :])) for i in range(len(parts)))


@st.composite
def monotone(draw):
    """A number of parts, and causes any of which is enough."""
    count = draw(st.integers(1, 60))
    causes = draw(st.lists(st.sets(st.integers(0, count - 1)), min_size=1, max_size=4))
    return count, lambda parts: any(cause <= set(parts) for cause in causes)


@given(monotone())
def test_no_part_of_the_answer_can_go_where_more_is_never_worse(case):
    count, holds = case
    found = Reducer(range(count), holds).run()
    assert found.complete
    assert holds(found.parts)
    assert is_1_minimal(found.parts, holds)


@given(st.integers(0, 25), criteria_without_sense)
def test_no_part_of_the_answer_can_go_where_the_criterion_has_no_sense(count, holds):
    found = Reducer(range(count), holds, checked=False).run()
    assert found.complete
    assert found.parts == tuple(range(count)) or holds(found.parts)
    assert is_1_minimal(found.parts, holds)


@given(st.lists(st.integers(0, 3), max_size=25), criteria_without_sense)
def test_the_order_is_kept_and_the_original_is_not_changed(parts, holds):
    before = list(parts)
    found = Reducer(parts, holds, checked=False).run()
    assert parts == before
    assert found.kept == tuple(sorted(set(found.kept)))
    assert found.parts == tuple(parts[i] for i in found.kept)
    assert found.before == len(parts)


@given(st.lists(st.integers(0, 2), max_size=25), criteria_without_sense)
def test_nothing_is_asked_twice_even_if_other_parts_make_the_same(parts, holds):
    asked = Asked(holds)
    found = Reducer(parts, asked, checked=False).run()
    assert len(asked.about) == len(set(asked.about)) == found.calls


def test_parts_that_are_equal_to_python_but_not_alike_are_told_apart():
    parts = [1, True, 1.0]
    found = Reducer(parts, lambda kept: any(part is True for part in kept)).run()
    assert found.parts == (True,)
    assert found.parts[0] is True


def test_parts_need_not_be_hashable():
    parts = [["push", i] for i in range(20)]
    found = Reducer(parts, lambda kept: ["push", 7] in kept).run()
    assert found.parts == (["push", 7],)


@given(monotone(), st.integers(0, 80))
def test_a_saved_state_leads_to_the_same_answer(case, stop):
    count, holds = case
    whole = Reducer(range(count), holds).run()
    asked = 0

    def interrupted(parts):
        nonlocal asked
        asked += 1
        if asked > stop:
            raise KeyboardInterrupt
        return holds(parts)

    half = Reducer(range(count), interrupted).run()
    state = json.loads(json.dumps(half.state))
    rest = Reducer(range(count), holds, state=state).run()
    assert rest.parts == whole.parts
    assert rest.complete


@given(criteria_without_sense, st.integers(1, 40))
def test_a_saved_state_leads_to_the_same_answer_without_sense_too(holds, stop):
    whole = Reducer(range(18), holds, checked=False).run()
    asked = Asked(holds)

    def interrupted(parts):
        if len(asked.about) >= stop:
            raise KeyboardInterrupt
        return asked(parts)

    half = Reducer(range(18), interrupted, checked=False).run()
    rest = Reducer(range(18), holds, state=json.loads(json.dumps(half.state))).run()
    assert rest.parts == whole.parts


def test_a_state_of_another_test_is_refused():
    state = Reducer(range(3), lambda parts: True).run().state
    with pytest.raises(UserError, match="of 3 parts, not of these 4"):
        Reducer(range(4), lambda parts: True, state=state)


def test_an_interrupt_keeps_the_best_so_far_and_says_so():
    def impatient(parts):
        if len(parts) < 40:
            raise KeyboardInterrupt
        return True

    found = Reducer(range(100), lambda parts: bool(parts) and impatient(parts)).run()
    assert found.interrupted
    assert not found.complete
    assert 40 <= len(found.parts) < 100


def test_the_time_limit_keeps_the_best_so_far_and_the_rest_can_follow(monkeypatch):
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("swarmtest.reducer.reducer.time", clock)

    def slow(parts):
        nonlocal now
        now += 2.0
        return {3, 300, 700} <= set(parts)

    reducer = Reducer(range(1000), slow)
    found = reducer.run(seconds=29)
    assert not found.complete
    assert not found.interrupted
    assert (found.calls, found.seconds) == (15, 30)  # one was under way when the time was up
    assert slow(found.parts)
    assert len(found.parts) < 1000
    assert reducer.run().parts == (3, 300, 700)


def test_no_time_at_all_leaves_the_original():
    found = Reducer(range(5), lambda parts: True).run(seconds=0)
    assert found.parts == (0, 1, 2, 3, 4)
    assert found.calls == 0


def test_an_original_that_is_not_interesting_is_said():
    with pytest.raises(NotInteresting, match="does not meet its own criterion"):
        Reducer(range(5), lambda parts: False).run()


def test_a_fault_that_shows_too_seldom_is_said_with_counts():
    runs = iter([True, False, False, False, *(True, False, False, True, False)])
    with pytest.raises(NotInteresting, match="2 of 5 runs met it, 3 are needed") as error:
        Reducer(range(3), Repeated(lambda parts: next(runs), k=3, n=5)).run()
    assert (error.value.met, error.value.runs) == (2, 5)


def test_progress_tells_sizes_that_only_shrink_and_every_call():
    told: list[Any] = []
    found = Reducer(range(50), lambda parts: 7 in parts, on_progress=told.append).run()
    sizes = [progress.size for progress in told]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert told[-1].calls == found.calls
    assert told[-1].stage == "done"


# Parts that need each other.


@st.composite
def definitions_and_uses(draw):
    count = draw(st.integers(1, 40))
    needs = [
        sorted(draw(st.sets(st.integers(0, i - 1), max_size=2))) if i else [] for i in range(count)
    ]
    wanted = draw(st.sets(st.integers(0, count - 1), max_size=3))
    return needs, wanted


@given(definitions_and_uses())
def test_no_part_is_tried_without_what_it_needs(case):
    needs, wanted = case
    asked = Asked(lambda parts: wanted <= set(parts))
    found = Reducer(range(len(needs)), asked, needs=needs).run()
    for parts in asked.about:
        assert all(set(needs[part]) <= set(parts) for part in parts)
    there = set()
    ahead = list(wanted)
    while ahead:
        part = ahead.pop()
        there.add(part)
        ahead.extend(needs[part])
    assert set(found.parts) == there


def test_knowing_what_needs_what_saves_calls():
    calls = [0, 0]
    for seed in range(20):
        rng = random.Random(seed)
        needs = [rng.sample(range(max(0, i - 20), i), min(i, rng.randrange(3))) for i in range(200)]
        wanted = set(rng.sample(range(200), 2))

        def holds(parts, wanted=wanted, needs=needs):
            there = set(parts)
            return wanted <= there and all(there.issuperset(needs[i]) for i in parts)

        for known in (False, True):
            calls[known] += Reducer(range(200), holds, needs=needs if known else ()).run().calls
    assert calls[True] < 0.7 * calls[False]  # measured: 0.53


def test_a_part_that_needs_a_later_one_is_refused():
    with pytest.raises(ValueError, match="part 0 can only need parts before it"):
        Reducer(range(2), lambda parts: True, needs=[[1], []])


# Several causes, and parts that can only go together.


def shows_one_of(causes, parts):
    return any(cause <= set(parts) for cause in causes)


def test_the_smaller_of_two_causes_is_found_wherever_it_is():
    small, large = {10, 90}, {0, 1, 2, 3, 4, 5}
    for causes in ((small, large), (large, small)):
        found = Reducer(range(100), partial(shows_one_of, causes)).run()
        assert set(found.parts) == small


def test_the_smaller_of_two_causes_is_found_wherever_it_ends():
    """Neither is in one half, so that the gallop decides, which leaves the one that ends first."""
    large = {0, 15, 30, 45, 60, 75}
    for small in ({10, 70}, {20, 99}):
        causes = small, large
        found = Reducer(range(100), partial(shows_one_of, causes)).run()
        assert set(found.parts) == small


def test_a_cause_spread_over_one_half_is_found_without_a_look_at_the_others():
    small, large = {10, 90}, {1, 11, 21, 31, 41}
    asked = Asked(lambda parts: any(cause <= set(parts) for cause in (small, large)))
    assert set(Reducer(range(100), asked).run().parts) == large
    assert len(asked.about) < 40


def test_looking_for_another_cause_costs_one_call_if_there_is_none():
    """Two sets are asked about that lack all that is needed: none at all, and all the others."""
    needed = {5, 11, 50, 77}
    asked = Asked(lambda parts: needed <= set(parts))
    Reducer(range(100), asked).run()
    without = [parts for parts in asked.about if not needed & set(parts)]
    assert without == [(), tuple(i for i in range(100) if i not in needed)]


def test_pairs_of_braces_go_together():
    parts = "{a{b}}{{}}x"

    def balanced(kept):
        depth = 0
        for part in kept:
            depth += (part == "{") - (part == "}")
            if depth < 0:
                return False
        return depth == 0 and "x" in kept

    assert Reducer(parts, balanced).run().parts == ("x",)


# Suggestions.


def test_a_good_suggestion_saves_most_calls():
    needed = set(random.Random(1).sample(range(1000), 20))

    def holds(parts):
        return needed <= set(parts)

    plain = Reducer(range(1000), holds).run()
    helped = Reducer(range(1000), holds, suggestions=[{1, 2}, needed | {3, 4, 5}]).run()
    assert helped.parts == plain.parts
    assert helped.calls < plain.calls / 2


# Workers.


@settings(max_examples=25)
@given(monotone())
def test_with_workers_the_answer_is_the_same(case):
    count, holds = case
    with ThreadPoolExecutor(3) as pool:
        found = Reducer(range(count), holds, executor=pool, probes=3).run()
    assert found.parts == Reducer(range(count), holds).run().parts


def test_two_workers_need_fewer_rounds():
    """Rounds are what time is made of when each call takes long."""
    needed = set(random.Random(3).sample(range(200), 8))
    alone = Asked(lambda parts: needed <= set(parts))
    Reducer(range(200), alone).run()
    pairs = threading.Barrier(2)
    rounds = 0

    def in_step(parts):
        """A call ends when two are under way: each pair of calls is one round."""
        nonlocal rounds
        try:
            if pairs.wait(timeout=2) == 0:
                rounds += 1
        except threading.BrokenBarrierError:
            pairs.reset()
            rounds += 1
        return needed <= set(parts)

    with ThreadPoolExecutor(2) as pool:
        Reducer(range(200), in_step, executor=pool, probes=2).run()
    assert rounds < len(alone.about) / 1.25


def test_an_error_in_a_worker_is_not_hidden():
    def broken(parts):
        raise ZeroDivisionError

    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError):
        Reducer(range(5), broken, executor=pool).run()


def test_the_time_limit_holds_for_workers_too():
    def slow(parts):
        time.sleep(0.02)
        return 3 in parts

    with ThreadPoolExecutor(2) as pool:
        found = Reducer(range(2000), slow, executor=pool).run(seconds=0.1)
    assert not found.complete
    assert 3 in found.parts


# What is left of a sequence: what is needed, in order, and nothing else.


class Counted:
    """A criterion that counts how often it is asked."""

    def __init__(self, needed):
        self.needed = set(needed)
        self.asked = 0

    def __call__(self, kept):
        self.asked += 1
        return self.needed <= set(kept)


@given(st.integers(0, 60), st.data())
def test_exactly_the_needed_parts_are_left_in_their_order(count, data):
    needed = data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=count))
    assert minimised(range(count), Counted(needed)) == tuple(sorted(needed))


@given(st.lists(st.integers(0, 5), max_size=30), st.data())
def test_whatever_the_criterion_no_single_part_of_the_answer_can_go(parts, data):
    """Also where parts depend on each other, and where there are several smallest answers."""
    wanted = data.draw(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=3))

    def interesting(kept):
        return any(one <= set(kept) for one in wanted) and sum(kept) % 7 != 3

    if not interesting(parts):
        return
    left = minimised(parts, interesting)
    assert interesting(left)
    for i in range(len(left)):
        assert not interesting([*left[:i], *left[i + 1 :]])


@given(st.lists(st.booleans(), max_size=30))
def test_parts_are_never_reordered(parts):
    numbered = list(enumerate(parts))
    left = minimised(numbered, lambda kept: sum(on for _, on in kept) == sum(parts))
    assert left == tuple(part for part in numbered if part[1])


@pytest.mark.parametrize(
    ("count", "needed", "ddmin"), [(200, 5, 169), (200, 15, 597), (3_500, 12, 1_037)]
)
def test_it_takes_a_third_of_the_runs_of_delta_debugging(count, needed, ddmin):
    """`ddmin`: what the textbook's takes on average, over many seeds."""
    runs = 0
    for seed in range(100):
        criterion = Counted(random.Random(seed).sample(range(count), needed))
        minimised(range(count), criterion)
        runs += criterion.asked
    assert runs / 100 < ddmin / 3
