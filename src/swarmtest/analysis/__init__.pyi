"""The public names of `swarmtest.analysis`, each with the module that defines it."""

from swarmtest.analysis.intervals import benjamini_hochberg as benjamini_hochberg
from swarmtest.analysis.intervals import hits_needed as hits_needed
from swarmtest.analysis.intervals import wilson_interval as wilson_interval
from swarmtest.analysis.rank_tests import bootstrap_interval as bootstrap_interval
from swarmtest.analysis.rank_tests import mann_whitney as mann_whitney
from swarmtest.analysis.rank_tests import vargha_delaney as vargha_delaney
