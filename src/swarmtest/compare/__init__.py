"""Compare strategies over repeated runs.

`run_comparison` runs several strategies on a subject and compares what they find;
`compare_campaigns` compares campaigns that are in a store already.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmtest.compare.comparison import compare_campaigns as compare_campaigns
    from swarmtest.compare.repeated_runs import run_comparison as run_comparison

__all__ = ["compare_campaigns", "run_comparison"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: reports need not load what runs campaigns."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from swarmtest.compare import comparison, repeated_runs

    return getattr(repeated_runs if name == "run_comparison" else comparison, name)
