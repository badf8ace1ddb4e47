"""Campaigns: the loop that runs tests, its budgets, and the executors that run the trials.

`campaign` sets a campaign up, `loop` runs it, `recorder` writes what it finds to the store, and
`executors` run trials: in this process, in local worker processes, or on a Dask cluster.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
