"""`exploded` of an IPv6 address with a scope raises AddressValueError.

Release: Python 3.13.0
Hunt: hunt.py::AddressTest
Fault: AddressValueError
Oracle: the text of an address is an address
Known: yes, cpython issue 88178; fixed in August 2026

Addresses with a scope are documented since 3.9, and so is `exploded`, the long form of an
address.
"""

import ipaddress

assert ipaddress.ip_address("fe80::1%eth0").exploded
