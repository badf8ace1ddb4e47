r"""`update` with itself raises RuntimeError.

Release: HeapDict==1.0.1
Hunt: hunt.py::HeapDictTest
Fault: update\(b\) with itself
Oracle: check_itself
Known: not found in its tracker

heapdict is a MutableMapping, and `update` with itself changes nothing, as for a dict.
"""

from heapdict import heapdict

queue = heapdict({1: 2})
queue.update(queue)
assert dict(queue) == {1: 2}
