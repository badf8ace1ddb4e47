"""Random texts from grammars: alternatives are features, and tests are trees."""

from swarmtest.subjects.grammar.generator import GrammarGenerator, load_grammar
from swarmtest.subjects.grammar.model import Grammar
from swarmtest.subjects.grammar.subject import GrammarSubject

__all__ = ["Grammar", "GrammarGenerator", "GrammarSubject", "load_grammar"]
