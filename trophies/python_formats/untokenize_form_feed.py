"""`tokenize.untokenize` turns a form feed at the start of a line into an indent.

Release: Python 3.13.0
Hunt: hunt.py::TokenizeTest
Fault: other tokens
Oracle: round trip
Known: not found in its tracker (issue 83134 is the same guarantee, open)

"The result is guaranteed to tokenize back to match the input so that the conversion is lossless
and round-trips are assured."
"""

import io
import tokenize

tokens = list(tokenize.generate_tokens(io.StringIO("\fx").readline))
again = tokenize.untokenize(tokens)
read = tokenize.generate_tokens(io.StringIO(again).readline)
assert [token[:2] for token in read] == [token[:2] for token in tokens]
