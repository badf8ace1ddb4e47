"""The public names of `swarmtest.focus`, each with the module that defines it."""

from swarmtest.focus.focus import Focus as Focus
from swarmtest.focus.outcome import Count as Count
from swarmtest.focus.outcome import FocusedFault as FocusedFault
from swarmtest.focus.outcome import FocusedTarget as FocusedTarget
from swarmtest.focus.outcome import FocusOutcome as FocusOutcome
from swarmtest.focus.request import FocusRequest as FocusRequest
