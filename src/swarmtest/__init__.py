"""swarmtest: random testing that finds more bugs, with swarms of configurations.

The vocabulary is that of the papers and of ``docs/``: a *feature* is something a test may contain,
a *configuration* says which features a test may use and with what weight, a *strategy* chooses
configurations, a *subject* is what is tested, and a *campaign* runs many tests and records their
results.

The names here are those that a file with a machine, a subject or a campaign needs. What belongs to
a capability is in its package: `swarmtest.strategies`, `swarmtest.roles`, `swarmtest.focus`,
`swarmtest.race` and the others.
"""

from swarmtest._exports import exports_of as _exports_of

_get_export, _list_exports = _exports_of(__name__)


def __getattr__(name: str) -> object:
    """Return a public name, the version, or with a warning a name that has moved."""
    if name == "__version__":
        from swarmtest.core.errors import version

        return version()
    try:
        return _get_export(name)
    except AttributeError:
        from swarmtest._moved_names import PLACES, find_moved

        if name not in PLACES:
            raise
        return find_moved(name)


def __dir__() -> list[str]:
    return [*_list_exports(), "__version__"]
