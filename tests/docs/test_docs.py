"""Everything the documentation shows is run here, and has to come out as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from console_sessions import check_console, matches
from debian_packages import CSMITH, need

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = re.compile(r"(?:#|//) file: (\S+)\n")
"""The first line of a block, in any language, that is a file which a reader would write."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS = {
    "c_program.md": ("gcc",),
    "mutation.md": ("gcc",),
    "native.md": ("gcc", "addr2line"),
    "native_races.md": ("gcc", "addr2line"),
    "compilers.md": CSMITH,
}
"""Programs and headers without which a page cannot be tried."""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to work in, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SWARMTEST_STORE", raising=False)
    monkeypatch.setenv("SWARMTEST_WORKERS", "1")  # what is shown is the same, and starts sooner
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(page: Path, workplace: Path, swarmtest: Run) -> None:
    need(*NEEDS.get(page.name, ()))
    names: dict[str, object] = {"__name__": "__docs__"}
    for language, body in BLOCK.findall(page.read_text()):
        file = FILE.match(body)
        if file:
            (workplace / file[1]).write_text(body)
            # An earlier test may have imported another file of this name.
            sys.modules.pop(Path(file[1]).stem, None)
        elif language == "python":
            exec(compile(body, "<docs>", "exec"), names)
        elif language == "console":
            check_console(body, swarmtest)


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
