"""A line of today's file is found in earlier versions of it, and never twice."""

from __future__ import annotations

import random
import time
from textwrap import dedent

from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.languages.line_mapping import (
    OldLine,
    common_lines,
    hunks,
    old_lines,
    share_in_common,
)

WORDS = ["", "else:", "    pass", "return x", "x = 1", "    x = 1", "total = total + price", "}"]
texts = st.lists(st.sampled_from(WORDS), max_size=25).map("\n".join)


def mapped(old: str, new: str) -> dict[int, tuple[int, str]]:
    return {line: (o.line, o.how) for line, o in old_lines(dedent(old), dedent(new)).items()}


@given(texts)
def test_a_file_that_did_not_change_maps_to_itself(text: str) -> None:
    lines = range(1, len(text.splitlines()) + 1)
    assert old_lines(text, text) == {line: OldLine(line, "same") for line in lines}


@given(texts, texts)
def test_no_two_lines_come_from_the_same_one(old: str, new: str) -> None:
    found = old_lines(old, new)
    assert len({one.line for one in found.values()}) == len(found)
    assert all(1 <= line <= len(new.splitlines()) for line in found)
    assert all(1 <= one.line <= len(old.splitlines()) for one in found.values())


@given(texts, texts)
def test_lines_that_are_the_same_or_moved_have_the_same_text(old: str, new: str) -> None:
    before, after = old.splitlines(), new.splitlines()
    for line, one in old_lines(old, new).items():
        if one.how != "edited":
            assert before[one.line - 1].strip() == after[line - 1].strip()


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_every_line_that_survives_insertions_and_deletions_maps_to_its_origin(
    count: int, rng: random.Random
) -> None:
    old = [f"value_{i} = compute({i})" for i in range(1, count + 1)]
    new = [(line, number) for number, line in enumerate(old, start=1)]
    for step in range(rng.randrange(20)):
        place = rng.randrange(len(new) + 1)
        if rng.random() < 0.5:
            new.insert(place, (f"inserted_{step} = True", 0))
        elif new:
            del new[min(place, len(new) - 1)]
    found = old_lines("\n".join(old), "\n".join(line for line, _ in new))
    for place, (_, origin) in enumerate(new, start=1):
        if origin:
            assert found[place] == OldLine(origin, "same")
        else:
            assert place not in found or found[place].how == "edited"


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_what_differs_and_what_is_common_make_up_both_texts(old: list[int], new: list[int]) -> None:
    pairs = common_lines(old, new)
    assert all(old[i] == new[j] for i, j in pairs)
    assert pairs == sorted(pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    found = list(hunks(old, new))
    assert sum(len(hunk.old) for hunk in found) == len(old) - len(pairs)
    assert sum(len(hunk.new) for hunk in found) == len(new) - len(pairs)


@settings(max_examples=50)
@given(st.permutations(range(12)), st.permutations(range(12)))
def test_of_lines_that_occur_once_the_most_stay_in_place(old: list[int], new: list[int]) -> None:
    places = [new.index(line) for line in old]
    longest = [1] * len(places)
    for i, place in enumerate(places):
        longest[i] = 1 + max((longest[k] for k in range(i) if places[k] < place), default=0)
    assert len(common_lines(old, new)) == max(longest)


def test_a_line_that_was_only_indented_is_the_same() -> None:
    old = "total = add(price)\nreturn total\n"
    new = "if price:\n    total = add(price)\nreturn total\n"
    assert mapped(old, new) == {2: (1, "same"), 3: (2, "same")}


def test_line_ends_do_not_matter() -> None:
    assert mapped("a = 1\nb = 2\n", "a = 1\r\nb = 2\r\n") == {1: (1, "same"), 2: (2, "same")}


def test_a_function_that_moved_to_the_end_is_found_there() -> None:
    old = """\
        def add(self, item):
            check(item)
            self.items.append(item)

        def clear(self):
            self.items.clear()
            self.total = 0

        def total(self):
            return sum(self.items)
        """
    new = """\
        def clear(self):
            self.items.clear()
            self.total = 0

        def total(self):
            return sum(self.items)

        def add(self, item):
            check(item)
            self.items.append(item)
        """
    found = mapped(old, new)
    assert found[8] == (1, "moved")
    assert found[10] == (3, "moved")
    assert found[1] == (5, "same")


def test_a_short_line_that_turns_up_elsewhere_has_not_moved() -> None:
    old = "start()\nreturn x\nmiddle_of_it()\nend_of_it()\n"
    new = "start()\nmiddle_of_it()\nend_of_it()\nreturn x\n"
    assert 4 not in mapped(old, new)


def test_a_long_line_of_its_own_that_turns_up_elsewhere_has_moved() -> None:
    old = "start()\nself.total += price * count\nmiddle()\nend()\n"
    new = "start()\nmiddle()\nend()\nself.total += price * count\n"
    assert mapped(old, new)[4] == (2, "moved")


def test_a_line_in_place_of_another_is_edited_even_if_it_is_not_like_it() -> None:
    assert mapped("a = f()\nx = 1\nb = g()\n", "a = f()\nlog(7)\nb = g()\n")[2] == (2, "edited")


def test_of_more_lines_than_before_those_are_edited_that_are_alike() -> None:
    old = """\
        begin()
        self.total += price * count
        end()
        """
    new = """\
        begin()
        logging.debug("adding")
        self.total += price * count * rate
        notify(self)
        end()
        """
    found = mapped(old, new)
    assert found[3] == (2, "edited")
    assert 2 not in found
    assert 4 not in found


def test_a_block_that_was_written_anew_is_not_taken_for_the_old_one() -> None:
    old = "begin()\n" + "".join(f"first_{i}(alpha, {i})\n" for i in range(9)) + "end()\n"
    new = "begin()\n" + "".join(f"while q{i}: yield '{i}x'\n" for i in range(9)) + "end()\n"
    assert mapped(old, new) == {1: (1, "same"), 11: (11, "same")}


def test_the_share_in_common_counts_lines_however_they_are_ordered_and_indented() -> None:
    assert share_in_common("a\nb\nc\n", "  c\n\na\nb\n") == 1
    assert share_in_common("a\nb\n", "c\nd\n") == 0
    assert share_in_common("", "") == 1
    assert share_in_common("", "a") == 0


def cpu_seconds_for(old: list[str], new: list[str]) -> float:
    start = time.process_time()
    old_lines("\n".join(old), "\n".join(new))
    return time.process_time() - start


def test_files_of_5000_lines_take_little_time_even_in_bad_cases() -> None:
    """0.02 to 0.1 s of CPU time each; `difflib` needs minutes for some of them."""
    rng = random.Random(5)
    own = [f"value_{i} = {rng.random()}" for i in range(5000)]
    shuffled = rng.sample(own, len(own))
    few, other = ([rng.choice("abc") for _ in range(5000)] for _ in range(2))
    turns = [["x", "y"][i % 2] for i in range(5000)], [["y", "x", "x"][i % 3] for i in range(5000)]
    cases = [
        (own, shuffled),
        (own, few),
        (few, other),
        turns,
        (own, [f"q{i}" for i in range(4900)]),
    ]
    for old, new in cases:
        assert cpu_seconds_for(old, new) < 30
