"""`clear` keeps the value of the empty key.

Release: PyTrie==0.4.0
Hunt: hunt.py::TrieTest
Fault: after clear
Oracle: like = "dict"
Known: not looked for

A trie is a MutableMapping: "Remove all items".
"""

from pytrie import StringTrie

trie = StringTrie({"": 1})
trie.clear()
assert list(trie) == []
