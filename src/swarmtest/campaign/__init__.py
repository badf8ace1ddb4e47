"""The loop, its budgets, and the engines that run it."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmtest.campaign.budget import Budget, Limits, Progress
    from swarmtest.campaign.campaign import Campaign, Outcome

__all__ = ["Budget", "Campaign", "Limits", "Outcome", "Progress"]

_HOME = {
    "Budget": "budget",
    "Campaign": "campaign",
    "Limits": "budget",
    "Outcome": "campaign",
    "Progress": "budget",
}


def __getattr__(name: str) -> object:
    """Imported when it is used: a worker process lives in this room and needs none of these."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return found
