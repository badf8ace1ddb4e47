"""Public names that are imported when they are first used.

A package lists its public names in ``__init__.pyi``, one per line, as ``from MODULE import NAME as
NAME``. Type checkers read this list, and so does `exports_of`: there is no other one. The package's
``__init__.py`` needs one statement::

    __getattr__, __dir__ = exports_of(__name__)

Then ``from swarmtest.race import PCT`` imports the module of `PCT` and none of the others, and
``import swarmtest``, which pytest does in every run, imports hardly anything.
"""

import os
import sys

TYPE_CHECKING = False  # not that of `typing`: importing it takes longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def exports_of(
    package: str, renamed: "Mapping[str, str] | None" = None
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return ``__getattr__`` and ``__dir__`` of a package.

    `renamed` maps earlier names to those of today. They work, with a warning, but are not listed.

    >>> import swarmtest.suite
    >>> get, names = exports_of("swarmtest.suite")
    >>> get("Suite")
    <class 'swarmtest.suite.suite.Suite'>
    >>> names()
    ['Suite', 'SuiteRequest', 'SuiteTest', 'make_suite']
    """
    module_of: dict[str, str] = {}

    def names() -> list[str]:
        if not module_of:
            module_of.update(read_exports(package))
        return sorted(module_of)

    def get(name: str) -> object:
        if name == "__all__":
            return names()
        if renamed and name in renamed:
            import warnings

            new = renamed[name]
            warnings.warn(f"{package}.{name} is now called {new}", DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[package], new)
        if name.startswith("_") or name not in names():
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        __import__(module_of[name])
        value: object = getattr(sys.modules[module_of[name]], name)
        setattr(sys.modules[package], name, value)
        return value

    return get, names


def read_exports(package: str) -> dict[str, str]:
    """Return the module of each public name of a package, as listed in its ``__init__.pyi``.

    >>> import swarmtest.suite
    >>> read_exports("swarmtest.suite")["Suite"]
    'swarmtest.suite.suite'
    """
    module: Any = sys.modules[package]
    # The loader reads the file, not `open`: the package may be in a zip file.
    data = module.__spec__.loader.get_data(os.path.join(module.__path__[0], "__init__.pyi"))
    module_of = {}
    for line in data.decode().splitlines():
        if line.startswith("from "):
            _, origin, _, name, *_ = line.split()
            module_of[name] = origin
    return module_of
