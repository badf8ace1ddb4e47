"""The version of this swarmtest."""

from __future__ import annotations


def version() -> str:
    """Looked up when it is asked for: that takes as long as half of numpy, in every worker.

    >>> version()[0].isdigit()
    True
    """
    from importlib import metadata

    try:
        return metadata.version("swarmtest")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
