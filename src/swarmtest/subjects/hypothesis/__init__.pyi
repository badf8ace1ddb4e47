"""The public names of `swarmtest.subjects.hypothesis`, each with the module that defines it."""

from swarmtest.subjects.hypothesis.declaration import is_state_machine as is_state_machine
from swarmtest.subjects.hypothesis.declaration import state_machine_of as state_machine_of
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject as RuleBasedSubject
