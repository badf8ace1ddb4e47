"""Puts the C accelerator into the wheel, if there is a compiler; the wheel is pure without one.

It also makes the links of README.md absolute in the metadata: see tools/package_links.py.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_PACKAGE = "swarmtest/race"


class AcceleratorBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles before the wheel's files are collected, and tidies up afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install builds it when it is first needed, so that it fits the source."""
        if version == "editable":
            return
        building = _loaded(Path(self.root) / "src" / _PACKAGE / "accelerator.py")
        self._directory = tempfile.TemporaryDirectory()
        made = Path(self._directory.name) / building.FILE
        try:
            building.build(made)
        except building.CannotBuild as error:
            self.app.display_warning(f"swarmtest: a wheel without the accelerator: {error}")
            return
        build_data["force_include"][str(made)] = f"{_PACKAGE}/{made.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is written."""
        if version != "editable":
            self._directory.cleanup()


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class AbsoluteLinks(MetadataHookInterface):
    """Writes the description and the addresses of the project into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called for each wheel and sdist."""
        links = _loaded(Path(self.root) / "tools" / "package_links.py")
        home = links.home_of(os.environ)
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = {"content-type": "text/markdown", "text": links.with_absolute_links(text, home)}
        metadata["readme"] = page
        metadata["urls"] = links.urls_of(home)
