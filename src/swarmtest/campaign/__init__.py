"""The loop, its budgets, and the engines that run it."""

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.campaign import Campaign, Limits, Outcome

__all__ = ["Budget", "Campaign", "Limits", "Outcome", "Progress"]
