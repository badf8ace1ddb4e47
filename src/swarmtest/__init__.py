"""swarmtest: random testing that finds more bugs, with swarms of configurations.

The vocabulary is that of the papers and of ``docs/``: a *feature* is something a test may contain,
a *configuration* says which features a test may use and with what weight, a *strategy* chooses
configurations, a *subject* is what is tested, and a *campaign* runs many tests and records their
results.
"""

import os as _os
import sys as _sys

_homes: dict[str, str] = {}
"""Maps each public name to its module; filled when a name is first looked up."""


def _read_exports() -> dict[str, str]:
    """Return the module of each public name, as listed in ``__init__.pyi``."""
    if not _homes:
        data = __spec__.loader.get_data(_os.path.join(__path__[0], "__init__.pyi"))
        for line in data.decode().splitlines():
            if line.startswith("from "):
                _, module, _, name, *_ = line.split()
                _homes[name] = module
    return _homes


def __getattr__(name: str) -> object:
    """Import a public name when it is first used.

    Pytest loads this package in every run, so importing it has to be cheap.
    """
    if name == "__version__":
        from swarmtest.core.errors import version

        return version()
    if name == "__all__":
        return sorted(_read_exports())
    if name.startswith("_") or name not in _read_exports():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    __import__(_homes[name])
    value: object = getattr(_sys.modules[_homes[name]], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
