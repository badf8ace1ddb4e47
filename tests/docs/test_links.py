"""The pages of the documentation lead to each other and to the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from console_sessions import matches
from page_runs import BLOCK, PAGES, ROOT


def test_a_line_that_is_not_printed_would_be_noticed() -> None:
    assert matches(["a", "..."], ["a", "b"])
    assert matches(["a ... c"], ["a b c"])
    assert not matches(["a", "x"], ["a", "b"])
    assert not matches(["a"], ["a", "b"])


LINK = re.compile(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


INSIDE = [page for page in PAGES if page.parent.name == "internals" or page.stem == "architecture"]
"""The pages that name files of swarmtest."""


@pytest.mark.parametrize("page", INSIDE, ids=lambda page: page.name)
def test_a_page_about_the_code_names_files_that_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+/[\w.]*)`", page.read_text())
    assert named
    for path in named:
        assert (ROOT / path).exists() or any((ROOT / "src" / "swarmtest").rglob(path)), path


LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "changes" / "README.md"]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text()):
        if not path and not anchor:
            continue
        linked = page.parent / path if path else page
        assert linked.is_file(), path
        assert not anchor or anchor in anchors(linked), f"{path}#{anchor}"
