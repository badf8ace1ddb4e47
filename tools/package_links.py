"""The links of README.md in the metadata of the package.

An index of packages shows the page without the repository, so its links have to be absolute. The
address of the repository is in SWARMTEST_HOME, or in what a GitHub workflow sets. Where neither is
set, links to files become plain text: none may be broken. hatch_build.py uses this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def home_of(environment: Mapping[str, str]) -> str:
    """Return the address of the repository; empty if nothing says it.

    >>> home_of({"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "me/swarmtest"})
    'https://github.com/me/swarmtest'
    """
    if environment.get("SWARMTEST_HOME"):
        return str(environment["SWARMTEST_HOME"]).rstrip("/")
    if environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        return f"{server}/{environment['GITHUB_REPOSITORY']}"
    return ""


def urls_of(home: str) -> dict[str, str]:
    """Return the addresses that an index of packages shows.

    >>> urls_of("https://example.org/swarmtest")["Issues"]
    'https://example.org/swarmtest/issues'
    """
    if not home:
        return {}
    return {
        "Source": home,
        "Documentation": f"{home}/blob/HEAD/docs/index.md",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def with_absolute_links(page: str, home: str) -> str:
    """Return a page of the repository with links that work elsewhere.

    >>> with_absolute_links("[a](docs/a.md), ![b](b.svg)", "https://example.org/swarmtest")
    '[a](https://example.org/swarmtest/blob/HEAD/docs/a.md), \
![b](https://example.org/swarmtest/raw/HEAD/b.svg)'
    >>> with_absolute_links("[a](docs/a.md) ![b](b.svg)", "")
    'a '
    """

    def replace(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        if not home:
            return "" if picture else text
        return f"{picture}[{text}]({home}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return _LINK.sub(replace, page)
