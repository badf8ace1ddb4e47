"""Hypothesis's rule-based state machines as subjects.

`declaration` imports nothing of Hypothesis: it is used to find out whether something is a state
machine at all. `subject` imports most of Hypothesis; a user with a state machine has done that.
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
