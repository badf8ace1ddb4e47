"""The incremental decoder of punycode gives another text if its input comes in two parts.

Release: Python 3.13.0
Hunt: hunt.py::CodecTest
Fault: decoded
Oracle: whole against parts
Known: yes, named as broken in cpython pull request 28944

"The joined output of calls to the encode()/decode() method is the same as if all the single
inputs were joined into one, and this input was encoded/decoded with the stateless
encoder/decoder."
"""

import codecs

data = "bücher".encode("punycode")
decoder = codecs.getincrementaldecoder("punycode")()
assert decoder.decode(data[:3]) + decoder.decode(data[3:], True) == "bücher"
