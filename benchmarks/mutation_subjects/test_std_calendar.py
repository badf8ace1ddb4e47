"""A suite of the standard library's calendar."""

from __future__ import annotations

import pytest
from std_calendar import (
    Calendar,
    IllegalMonthError,
    TextCalendar,
    isleap,
    leapdays,
    monthrange,
    timegm,
    weekday,
)


def test_leap_years():
    assert [year for year in range(1896, 1909) if isleap(year)] == [1896, 1904, 1908]
    assert isleap(2000)
    assert leapdays(1900, 2001) == 25


def test_weekdays():
    assert weekday(2024, 2, 29) == 3
    assert monthrange(2024, 2) == (3, 29)
    with pytest.raises(IllegalMonthError):
        monthrange(2024, 13)


def test_weeks():
    assert Calendar().monthdayscalendar(2024, 2)[0] == [0, 0, 0, 1, 2, 3, 4]
    assert len(list(Calendar(6).itermonthdates(2024, 2))) == 35


def test_text():
    text = TextCalendar().formatmonth(2024, 2)
    assert text.splitlines()[0].strip() == "February 2024"
    assert text.splitlines()[1] == "Mo Tu We Th Fr Sa Su"


def test_timegm():
    assert timegm((1970, 1, 2, 0, 0, 1)) == 86401
