"""The incremental encoder of punycode gives another result if its input comes in two parts.

Release: Python 3.13.0
Hunt: hunt.py::CodecTest
Fault: encoded
Oracle: whole against parts
Known: not looked for (pull request 28944 is about the decoders)

"The joined output of calls to the encode()/decode() method is the same as if all the single
inputs were joined into one, and this input was encoded/decoded with the stateless
encoder/decoder."
"""

import codecs

encoder = codecs.getincrementalencoder("punycode")()
assert encoder.encode("bü") + encoder.encode("cher", True) == "bücher".encode("punycode")
