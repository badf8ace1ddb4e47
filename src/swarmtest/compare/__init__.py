"""Compare strategies over repeated runs.

`run_comparison` runs several strategies on a subject and compares what they find;
`compare_campaigns` compares campaigns that are in a store already.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
