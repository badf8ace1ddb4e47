"""Campaigns: the loop that runs tests, its budgets, and the executors that run the trials.

The exported names are imported when they are first used: worker processes import modules of this
package and need none of these names.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmtest.campaign.budget import Budget, Limits, Progress
    from swarmtest.campaign.campaign import Campaign, Outcome
    from swarmtest.campaign.executors.executor import Executor, parse_executor

__all__ = ["Budget", "Campaign", "Executor", "Limits", "Outcome", "Progress", "parse_executor"]

_MODULE_OF = {
    "Budget": "budget",
    "Campaign": "campaign",
    "Executor": "executors.executor",
    "Limits": "budget",
    "Outcome": "campaign",
    "Progress": "budget",
    "parse_executor": "executors.executor",
}


def __getattr__(name: str) -> object:
    """Import an exported name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
