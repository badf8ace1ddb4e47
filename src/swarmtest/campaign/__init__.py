"""The loop, its budgets, and the engines that run it."""

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.limits import Limits

__all__ = ["Budget", "Campaign", "Limits", "Outcome", "Progress"]
