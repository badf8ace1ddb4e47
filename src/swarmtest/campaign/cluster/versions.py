"""Whether a worker may run a campaign's tests: the same swarmtest, Python and packages.

Results are the same everywhere only if the programs are.
"""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any


def own_versions() -> dict[str, str]:
    """What has to be alike in any case."""
    return {"swarmtest": _installed("swarmtest"), "python": _python()}


def versions_of(packages: dict[str, str]) -> dict[str, Any]:
    """What a shipment says of versions: our own, and those of installed packages."""
    return own_versions() | {"packages": packages}


def unlike(shipment: dict[str, Any], told: dict[str, str | None]) -> str:
    """What is wrong with a worker that told Dask its versions; empty if nothing is.

    >>> unlike({"python": "3.12", "swarmtest": "1.0"}, {"python": "3.11.7.final.0"})
    'has Python 3.11, and the campaign runs under Python 3.12: results could differ'
    """
    python = ".".join((told.get("python") or "").split(".")[:2])
    return _difference(shipment, {"python": python, "swarmtest": told.get("swarmtest") or ""})


def refusal(shipment: dict[str, Any]) -> str:
    """Why this process must not run a shipment; empty if it may.

    >>> refusal(versions_of({}))
    ''
    >>> refusal(versions_of({"swarm-of-bees": "1.2"}))
    'has no swarm-of-bees, and the campaign tests swarm-of-bees 1.2: install that on the worker'
    """
    unlike_us = _difference(shipment, own_versions())
    if unlike_us:
        return unlike_us
    packages: dict[str, str] = shipment["packages"]
    for name, there in packages.items():
        here = _installed(name)
        if not here:
            return (
                f"has no {name}, and the campaign tests {name} {there}: install that on the worker"
            )
        if here != there:
            return f"has {name} {here}, and the campaign tests {name} {there}: results would differ"
    return ""


def _difference(shipment: dict[str, Any], own: dict[str, str]) -> str:
    for name, here in own.items():
        there = shipment[name]
        shown = name.replace("python", "Python")
        if not here:
            return f"has no {shown}: install {shown} {there} on it"
        if here != there:
            return (
                f"has {shown} {here}, and the campaign runs under {shown} {there}: "
                "results could differ"
            )
    return ""


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])
