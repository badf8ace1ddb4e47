"""The public names of `swarmtest.subjects`, each with the module that defines it."""

from swarmtest.subjects.api import api_machine as api_machine
from swarmtest.subjects.command.oracles import Oracle as Oracle
from swarmtest.subjects.command.subject import load_command_subject as load_command_subject
from swarmtest.subjects.generated import GeneratorSubject as GeneratorSubject
from swarmtest.subjects.grammar.generator import load_grammar as load_grammar
from swarmtest.subjects.grammar.subject import GrammarSubject as GrammarSubject
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject as RuleBasedSubject
from swarmtest.subjects.loading import subject_of as subject_of
from swarmtest.subjects.machine.generators import Generator as Generator
from swarmtest.subjects.machine.subject import MachineSubject as MachineSubject
from swarmtest.subjects.machine.test import MachineTest as MachineTest
from swarmtest.subjects.machine.test import Step as Step
from swarmtest.subjects.mutations import Mutations as Mutations
from swarmtest.subjects.oracles.compared import Compared as Compared
from swarmtest.subjects.oracles.metamorphic import with_checks as with_checks
from swarmtest.subjects.subject import NoTest as NoTest
from swarmtest.subjects.subject import Subject as Subject
