"""Hunt with relations between the texts of an address; `swarmtest run hunt.py`."""

import ipaddress

from swarmtest import Machine, action, integers, sampled_from

ADDRESSES = [
    ipaddress.ip_address(a) for a in ("192.0.2.4", "::1", "fe80::1%eth0", "::ffff:1.2.3.4")
]
TEXTS = ["192.0.2.4/24", "192.0.2.4/32", "::1/64", "fe80::1%eth0/64"]
INTERFACES = [ipaddress.ip_interface(text) for text in TEXTS]


class AddressTest(Machine):
    @action(address=sampled_from(ADDRESSES))
    def texts(self, address):
        assert ipaddress.ip_address(address.exploded) == address, "exploded"
        assert ipaddress.ip_address(address.compressed) == address, "compressed"

    @action(address=sampled_from(ADDRESSES), number=integers(0, 3))
    def add(self, address, number):
        assert address + number - number == address, "plus"


class InterfaceTest(Machine):
    @action(interface=sampled_from(INTERFACES))
    def texts(self, interface):
        assert ipaddress.ip_interface(interface.with_prefixlen) == interface, "with_prefixlen"
        assert ipaddress.ip_interface(str(interface)) == interface, "str"

    @action(interface=sampled_from(INTERFACES), number=integers(0, 3))
    def add(self, interface, number):
        assert interface + number - number == interface, "plus"
