"""`del` of a slice with a negative step deletes other elements, or raises IndexError.

Release: ruamel.yaml==0.19.1
Hunt: hunt.py::CommentedSeqTest
Fault: delete_slice
Oracle: like = "list"
Known: not found in what is stored of its tracker

A CommentedSeq is a list; `del o[::-2]` of a list deletes the last, the last but two and so on.
"""

from ruamel.yaml.comments import CommentedSeq

values = CommentedSeq([1, 2, 3, 4, 5])
del values[::-2]
assert list(values) == [2, 4]
