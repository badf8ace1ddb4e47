"""Why a test fails: experiments on one reduced test, and what they show.

`explain_test` explains one failing test, and `explain_fault` a fault in a store. Statistics over
many failing tests are in `swarmtest.roles`; what is here needs only one failing test.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
