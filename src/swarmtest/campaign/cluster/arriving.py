"""A shipment's arrival on a worker: unpacked once, under a directory of the worker's own.

Files lie there at the paths that they have at home, so one prefix translates between the two.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from swarmtest.campaign.cluster.packing import unpacked
from swarmtest.instrument.scope import ROOT_MARKS


class Arrival:
    """Where a shipment's files are, and how a host has to start to find them."""

    def __init__(self, shipment: dict[str, Any], directory: str) -> None:
        self.prefix = os.path.join(os.path.realpath(directory), f"swarmtest-{shipment['hash']}")
        if not os.path.isdir(self.prefix):
            _unpack(shipment, self.prefix)
        self.directory = self.prefix + shipment["directory"]
        self.path = [self.prefix + entry for entry in shipment["path"]]
        self.coverage = self._placed(shipment["coverage"])

    def _placed(self, coverage: dict[str, Any] | None) -> dict[str, Any] | None:
        """What is watched, with paths that are valid here."""
        if coverage is None:
            return None
        beside = coverage["beside"] and self._here(coverage["beside"])
        return coverage | {
            "beside": beside,
            "cover": [self._here(one) for one in coverage["cover"]],
        }

    def _here(self, path: str) -> str:
        moved = self.prefix + path
        return moved if os.path.isabs(path) and os.path.exists(moved) else path


def _unpack(shipment: dict[str, Any], place: str) -> None:
    """Several threads may try; the first one's directory stays."""
    made = tempfile.mkdtemp(prefix="swarmtest-unpacking-", dir=os.path.dirname(place))
    for name, mode, content in unpacked(shipment["pack"]):
        file = Path(made + name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    os.makedirs(made + shipment["directory"], exist_ok=True)
    project = Path(made + shipment["project"])
    project.mkdir(parents=True, exist_ok=True)
    if not any((project / mark).exists() for mark in ROOT_MARKS):
        # Files are named from the project's top, and the worker's own may lie above.
        (project / "setup.cfg").touch()
    with contextlib.suppress(OSError):
        os.rename(made, place)
    shutil.rmtree(made, ignore_errors=True)
