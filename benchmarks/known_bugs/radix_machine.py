"""The pure Python tree of `py-radix` beside a dict of networks."""

from __future__ import annotations

from ipaddress import ip_network

from radix.radix import Radix

from swarmtest import Machine, action, integers

HIGH = integers(0, 255)
LENGTHS = integers(7, 16)


def prefix(high: int, low: int, length: int) -> str:
    return str(ip_network((high << 24 | low << 16, length), strict=False))


class RadixMachine(Machine):
    """Each operation happens to both."""

    steps = 14

    def start(self) -> None:
        self.tree = Radix()
        self.expected: dict[str, int] = {}

    def pick(self, number: int) -> str:
        return sorted(self.expected)[number % len(self.expected)]

    @action(high=HIGH, low=HIGH, length=LENGTHS)
    def add(self, high: int, low: int, length: int) -> None:
        name = prefix(high, low, length)
        node = self.tree.add(name)
        node.data["value"] = self.expected.setdefault(name, len(self.expected))

    @action(high=HIGH, low=HIGH, length=LENGTHS, raises=KeyError)
    def delete(self, high: int, low: int, length: int) -> None:
        name = prefix(high, low, length)
        known = self.expected.pop(name, None)
        try:
            self.tree.delete(name)
        except KeyError:
            assert known is None
            raise

    @action(number=HIGH, when=lambda self: self.expected)
    def search_known(self, number: int) -> None:
        name = self.pick(number)
        node = self.tree.search_exact(name)
        assert node is not None
        assert node.prefix == name

    @action(high=HIGH, low=HIGH, length=LENGTHS)
    def search_exact(self, high: int, low: int, length: int) -> None:
        name = prefix(high, low, length)
        assert (self.tree.search_exact(name) is not None) == (name in self.expected)

    @action(high=HIGH, low=HIGH)
    def search_best(self, high: int, low: int) -> None:
        host = ip_network((high << 24 | low << 16, 32))
        nodes = [ip_network(name) for name in self.expected]
        around = [network for network in nodes if host.subnet_of(network)]
        best = max(around, key=lambda network: network.prefixlen, default=None)
        node = self.tree.search_best(str(host))
        assert (node.prefix if node else None) == (str(best) if best else None)

    @action
    def prefixes(self) -> None:
        assert sorted(self.tree.prefixes()) == sorted(self.expected)

    @action
    def clear(self) -> None:
        self.tree = Radix()
        self.expected.clear()
