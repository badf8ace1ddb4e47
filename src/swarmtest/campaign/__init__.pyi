"""The public names of `swarmtest.campaign`, each with the module that defines it."""

from swarmtest.campaign.budget import Budget as Budget
from swarmtest.campaign.budget import Limits as Limits
from swarmtest.campaign.budget import Progress as Progress
from swarmtest.campaign.campaign import Campaign as Campaign
from swarmtest.campaign.campaign import Outcome as Outcome
from swarmtest.campaign.executors.executor import Executor as Executor
from swarmtest.campaign.executors.executor import parse_executor as parse_executor
from swarmtest.campaign.hypothesis_features import features as features
from swarmtest.campaign.swarm_loop import Trial as Trial
from swarmtest.campaign.swarm_loop import swarm as swarm
