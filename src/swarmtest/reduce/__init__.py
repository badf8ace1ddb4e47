"""Reduction: shrink a test while it still fails, or still covers what it has to cover.

`reduce_test` shrinks one test, `reduce_named_test` a test that is named as on the command line, and
`reduce_campaign` the tests of all faults of a campaign.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmtest.reduce.fault_reductions import reduce_campaign as reduce_campaign
    from swarmtest.reduce.fault_reductions import reduce_faults as reduce_faults
    from swarmtest.reduce.named_reduction import reduce_named_test as reduce_named_test
    from swarmtest.reduce.reduction import reduce_test as reduce_test

_MODULES = {
    "reduce_campaign": "fault_reductions",
    "reduce_faults": "fault_reductions",
    "reduce_named_test": "named_reduction",
    "reduce_test": "reduction",
}
__all__ = ["reduce_campaign", "reduce_faults", "reduce_named_test", "reduce_test"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: pytest's plugin need not load all of this."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
