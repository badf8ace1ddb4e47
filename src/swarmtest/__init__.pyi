"""What a user's file needs, each name with the module that defines it.

This is the only list of these names. Type checkers read this file, and so does `exports_of` (see
``_exports.py``), which imports a name's module when the name is first used. Write one name per
line, as ``from MODULE import NAME as NAME``. The packages below have such lists too.
"""

from swarmtest.campaign.budget import Budget as Budget
from swarmtest.campaign.campaign import Campaign as Campaign
from swarmtest.campaign.campaign import Outcome as Outcome
from swarmtest.campaign.executors.executor import Executor as Executor
from swarmtest.campaign.hypothesis_features import features as features
from swarmtest.campaign.swarm_loop import Trial as Trial
from swarmtest.campaign.swarm_loop import swarm as swarm
from swarmtest.core.configuration import Configuration as Configuration
from swarmtest.core.constraints import Constraint as Constraint
from swarmtest.core.constraints import at_least_one_of as at_least_one_of
from swarmtest.core.constraints import excludes as excludes
from swarmtest.core.constraints import mandatory as mandatory
from swarmtest.core.constraints import requires as requires
from swarmtest.core.dimensions import Choice as Choice
from swarmtest.core.dimensions import Feature as Feature
from swarmtest.core.dimensions import Flag as Flag
from swarmtest.core.dimensions import Integer as Integer
from swarmtest.core.dimensions import Test as Test
from swarmtest.core.errors import UserError as UserError
from swarmtest.core.result import Fault as Fault
from swarmtest.core.result import Result as Result
from swarmtest.core.result import Verdict as Verdict
from swarmtest.core.space import Space as Space
from swarmtest.coverage.watch import Coverage as Coverage
from swarmtest.store import open_store as open_store
from swarmtest.store.interface import Store as Store
from swarmtest.strategies.strategy import Strategy as Strategy
from swarmtest.subjects.command.oracles import Oracle as Oracle
from swarmtest.subjects.generated import generator as generator
from swarmtest.subjects.machine.generators import binary as binary
from swarmtest.subjects.machine.generators import booleans as booleans
from swarmtest.subjects.machine.generators import floats as floats
from swarmtest.subjects.machine.generators import integers as integers
from swarmtest.subjects.machine.generators import just as just
from swarmtest.subjects.machine.generators import lists as lists
from swarmtest.subjects.machine.generators import one_of as one_of
from swarmtest.subjects.machine.generators import sampled_from as sampled_from
from swarmtest.subjects.machine.generators import text as text
from swarmtest.subjects.machine.generators import tuples as tuples
from swarmtest.subjects.machine.machine import Machine as Machine
from swarmtest.subjects.machine.machine import Pool as Pool
from swarmtest.subjects.machine.machine import action as action
from swarmtest.subjects.machine.machine import consumes as consumes
from swarmtest.subjects.machine.machine import invariant as invariant
from swarmtest.subjects.oracles.compared import Compared as Compared
from swarmtest.subjects.oracles.metamorphic import with_checks as with_checks
from swarmtest.subjects.subject import NoTest as NoTest
from swarmtest.subjects.subject import Subject as Subject

__version__: str
