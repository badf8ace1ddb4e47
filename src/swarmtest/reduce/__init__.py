"""Reduction: shrink a test while it still fails, or still covers what it has to cover.

`reduce_test` shrinks one test, `reduce_named_test` a test that is named as on the command line, and
`reduce_campaign` the tests of all faults of a campaign.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
