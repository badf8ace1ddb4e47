"""Adding a number to an address loses its scope.

Release: Python 3.13.0
Hunt: hunt.py::AddressTest
Fault: plus
Oracle: adding and taking away
Known: not found in its tracker (issues 88152 and 129538 are about interfaces)

"Integers can be added to or subtracted from address objects." An address with a scope does not
equal the one without it.
"""

import ipaddress

address = ipaddress.ip_address("fe80::1%eth0")
assert address + 1 - 1 == address
