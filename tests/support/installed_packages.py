"""A package that offers something in entry points, as if it were installed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent


def install(folder: Path, group: str, entry: str, **modules: str) -> None:
    """Write modules into a folder on the path, with one entry point: ``name = module:Class``."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text))
    metadata = folder / "offering-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
