"""`with_prefixlen` of an interface leaves its scope out.

Release: Python 3.13.0
Hunt: hunt.py::InterfaceTest
Fault: with_prefixlen
Oracle: the text of an interface is an interface
Known: in part, cpython issue 129538, open (the same of `ip`)

`with_prefixlen` is "a string representation of the interface with the mask in prefix notation".
`str` has the scope.
"""

import ipaddress

interface = ipaddress.ip_interface("fe80::1%eth0/64")
assert ipaddress.ip_interface(interface.with_prefixlen) == interface
