"""`CommentedSet.discard` of a missing value raises KeyError.

Release: ruamel.yaml==0.19.1
Hunt: hunt.py::CommentedSetTest
Fault: discard: raises KeyError
Oracle: like = "set"
Known: not found in its tracker

CommentedSet is a MutableSet: "discard: Remove an element. Do not raise an exception if absent."
"""

from ruamel.yaml.comments import CommentedSet

CommentedSet().discard(1)
