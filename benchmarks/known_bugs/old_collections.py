"""Give `collections` the names that it had before Python 3.10, which old releases import."""

from __future__ import annotations

import collections
import collections.abc

for _name in ("Mapping", "MutableMapping", "MutableSet", "Iterable"):
    if not hasattr(collections, _name):
        setattr(collections, _name, getattr(collections.abc, _name))
