"""Everything the documentation shows comes out as shown: the first of every three pages.

The pages are tried in three files, so that they can run beside each other.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from page_runs import PAGES, Run, run_page


@pytest.mark.parametrize("page", PAGES[::3], ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(page: Path, workplace: Path, swarmtest: Run) -> None:
    run_page(page, workplace, swarmtest)
