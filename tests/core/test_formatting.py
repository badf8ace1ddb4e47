"""Numbers as people read them: the same in terminals, reports, the dashboard and pytest."""

import pytest

from swarmtest.core.formatting import (
    counted,
    format_percent,
    part_percent,
    plural,
    rough_duration,
    words_for,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (1, "100%"),
        (0.5, "50%"),
        (0.123, "12%"),
        (0.0591, "5.9%"),
        (0.05, "5.0%"),
        (0.00112, "0.11%"),
        (0.0000123, "0.0012%"),
        (1e-9, "<0.0001%"),
        (1e-66, "<0.0001%"),
        (0.996, "99.6%"),
        (0.9996, "99.96%"),
        (0.99999, ">99.99%"),
        (sum([0.1] * 10), "100%"),
    ],
)
def test_a_share_is_nothing_or_everything_only_if_it_is(share, text):
    assert format_percent(share) == text


def test_decimals_are_the_most_there_are():
    assert [format_percent(share, 1) for share in (0.5, 0.4039, 0.00123)] == [
        "50%",
        "40.4%",
        "0.12%",
    ]
    assert [format_percent(share, 0) for share in (0.0591, 0.004, 0.9996)] == [
        "6%",
        "0.4%",
        "99.96%",
    ]
    assert format_percent(0.975, 2) == "97.5%"


def test_a_part_of_nothing_is_a_dash():
    assert (part_percent(0, 0), part_percent(2, 3)) == ("-", "66.7%")


def test_nouns_follow_their_numbers():
    assert [plural(count, "branch") for count in (0, 1, 2)] == [
        "0 branches",
        "1 branch",
        "2 branches",
    ]
    assert plural(2**100, "test") == "about 10^30 tests"
    assert words_for("du") == ("definition-use path", "definition-use paths")
    assert counted(1.0, "line", "new ") == "1 new line"
    assert rough_duration(7300) == "2 h"
