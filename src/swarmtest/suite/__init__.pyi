"""The public names of `swarmtest.suite`, each with the module that defines it."""

from swarmtest.suite.build import make_suite as make_suite
from swarmtest.suite.selection import SuiteRequest as SuiteRequest
from swarmtest.suite.suite import Suite as Suite
from swarmtest.suite.suite import SuiteTest as SuiteTest
