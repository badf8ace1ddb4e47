"""The public names of `swarmtest.reduce`, each with the module that defines it."""

from swarmtest.reduce.fault_reductions import reduce_campaign as reduce_campaign
from swarmtest.reduce.fault_reductions import reduce_faults as reduce_faults
from swarmtest.reduce.keep_criteria import Keep as Keep
from swarmtest.reduce.named_reduction import reduce_named_test as reduce_named_test
from swarmtest.reduce.quality import Quality as Quality
from swarmtest.reduce.quality import quality_of as quality_of
from swarmtest.reduce.reduction import Reduced as Reduced
from swarmtest.reduce.reduction import reduce_test as reduce_test
from swarmtest.reducer.criteria import CoverageKept as CoverageKept
from swarmtest.reducer.criteria import MutantsKept as MutantsKept
from swarmtest.reducer.criteria import Repeated as Repeated
from swarmtest.reducer.criteria import ShellCommand as ShellCommand
from swarmtest.reducer.criteria import TargetsKept as TargetsKept
from swarmtest.reducer.reducer import Reducer as Reducer
from swarmtest.reducer.reducer import Reduction as Reduction
