"""Hunt with ready models, and with what is written and read again."""

import io

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq, CommentedSet

from swarmtest import Compared, Machine, action, text


class CommentedSetTest(Compared):
    tested = CommentedSet
    like = "set"


class CommentedSeqTest(Compared):
    tested = CommentedSeq
    like = "list"
    without = "itself set_slice"


class RoundTrip(Machine):
    @action(value=text("a: -#\"'\n\t\x85\u2028é", 5))
    def write(self, value):
        written = io.StringIO()
        YAML().dump([value], written)
        assert YAML().load(written.getvalue()) == [value], "another value came back"
