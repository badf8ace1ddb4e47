"""The pages about a store that somebody else wrote."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx
from hostile_store import Swarmtest, check_html, check_text, make_stores

MOST_PAGES = 60


def test_no_page_has_live_text_of_a_store(
    tmp_path: Path, swarmtest: Swarmtest, serve: Callable[..., Any]
) -> None:
    make_stores(tmp_path, swarmtest)
    served = serve(tmp_path, "--store", "names.db")
    address = str(served)
    waiting = [address]
    seen: set[str] = set()
    titles = 0
    with httpx.Client(timeout=60, follow_redirects=True) as client:
        client.get(address, params={"token": served.token})
        while waiting and len(seen) < MOST_PAGES:
            url = waiting.pop(0)
            seen.add(url)
            answer = client.get(url)
            assert answer.status_code < 500, url
            check_text(answer.text)
            if "html" not in answer.headers["content-type"]:
                continue
            check_html(answer.text)
            titles += "owned" in answer.text
            for link in re.findall(r'<a [^>]*href="([^"]*)"', answer.text):
                found = urldefrag(urljoin(url, unescape(link)))[0]
                if urlsplit(found).netloc == urlsplit(address).netloc:
                    waiting += [found] if found not in {*seen, *waiting} else []
    assert titles > 5


def test_pages_say_what_is_damaged_in_a_store(
    tmp_path: Path, swarmtest: Swarmtest, serve: Callable[..., Any]
) -> None:
    make_stores(tmp_path, swarmtest)
    with closing(sqlite3.connect(tmp_path / "good.db", isolation_level=None)) as store:
        store.execute('UPDATE campaigns SET options = \'{"subject": "evil.py"}\'')
    store.close()
    with serve(tmp_path, "--store", "good.db").admitted() as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "is damaged: campaign 1: its option" in answer.text
