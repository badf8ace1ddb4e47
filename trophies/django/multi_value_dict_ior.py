"""`|=` puts values in place of lists of values; look-ups then take a text apart.

Release: Django==5.2.19
Hunt: hunt.py::MultiValueDictTest
Fault: ior
Oracle: like = "dict"
Known: yes, ticket 36649, pull request 19931 of django/django, open

"A subclass of dictionary customized to handle multiple values for the same key." `update` and
`d[k] = v` keep lists; `|=` is dict's own, so `d['c']` is the last character of the text.
"""

from django.utils.datastructures import MultiValueDict

fields = MultiValueDict({"a": ["1"]})
fields |= {"c": "xyz"}
assert fields["c"] == "xyz"
