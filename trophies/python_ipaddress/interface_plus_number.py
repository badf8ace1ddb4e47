"""Adding a number to an interface loses its network.

Release: Python 3.13.0
Hunt: hunt.py::InterfaceTest
Fault: plus
Oracle: adding and taking away
Known: yes, cpython issue 88152, open

An interface is an address with its network, and inherits the arithmetic of addresses; `+` gives
one of a network with a single address.
"""

import ipaddress

interface = ipaddress.ip_interface("192.0.2.4/24")
assert interface + 1 - 1 == interface
