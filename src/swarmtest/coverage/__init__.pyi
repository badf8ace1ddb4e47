"""The public names of `swarmtest.coverage`, each with the module that defines it."""

from swarmtest.core.targets import Catalogue as Catalogue
from swarmtest.core.targets import Hits as Hits
from swarmtest.core.targets import Source as Source
from swarmtest.core.targets import Target as Target
from swarmtest.coverage.native.build import Build as Build
from swarmtest.coverage.native.library import Library as Library
from swarmtest.coverage.native.program import Program as Program
from swarmtest.coverage.native.program import Run as Run
from swarmtest.coverage.options import CoverageOptions as CoverageOptions
from swarmtest.coverage.watch import Coverage as Coverage
