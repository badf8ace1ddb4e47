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
    """Import a public name when it is first used: readers of results need not load campaigns."""
    if name == "run_comparison":
        from swarmtest.compare.repeated_runs import run_comparison

        return run_comparison
    if name == "compare_campaigns":
        from swarmtest.compare.comparison import compare_campaigns

        return compare_campaigns
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
