"""A directed graph beside sets of edges. Errors come from its own helpers, C code and recursion."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "remove keeps incoming edges",
    "merge loses edges",
    "order of two roots",
    "distance counts nodes",
    "degree after reversal",
    "reachable through a loop",
)
NODES = integers(0, 5)


class GraphError(Exception):
    """A question without an answer."""


class Graph:
    def __init__(self) -> None:
        self.after: dict[str, set[str]] = {}
        self.degree: dict[str, int] = {}

    def add(self, node: str) -> None:
        self.after.setdefault(node, set())
        self.degree.setdefault(node, 0)

    def connect(self, one: str, other: str) -> None:
        self.add(one)
        self.add(other)
        if other not in self.after[one]:
            self.after[one].add(other)
            self.degree[other] += 1

    def disconnect(self, one: str, other: str) -> None:
        if other not in self.after.get(one, ()):
            raise GraphError(f"{one} does not lead to {other}")
        self.after[one].remove(other)
        self.degree[other] -= 1

    def remove(self, node: str) -> None:
        for other in self.after.pop(node):
            self.degree[other] -= 1
        self.degree.pop(node)
        for nodes in self.after.values():
            if not bug("remove keeps incoming edges"):
                nodes.discard(node)

    def merge(self, one: str, other: str) -> None:
        """Let one node take over the edges of another."""
        for follower in sorted(self.after[other] - {one}):
            if bug("merge loses edges") and len(self.after[other]) > 1 and follower == "n5":
                continue
            self.connect(one, follower)
        self.remove(other)

    def reverse(self) -> None:
        edges = [(one, other) for one, others in self.after.items() for other in others]
        self.after = {node: set() for node in self.after}
        if not bug("degree after reversal"):
            self.degree = dict.fromkeys(self.after, 0)
        for one, other in edges:
            self.connect(other, one)

    def reachable(self, node: str, seen: frozenset[str] = frozenset()) -> set[str]:
        found = {node}
        for other in self.after[node]:
            if other not in seen or bug("reachable through a loop"):
                found |= self.reachable(other, seen | {node, other})
        return found

    def distance(self, one: str, other: str) -> int:
        layer, steps, seen = {one}, 0, {one}
        while other not in layer:
            layer = {n for node in layer for n in self.after[node]} - seen
            seen |= layer
            steps += 1
            if not layer:
                raise GraphError(f"no path from {one} to {other}")
        return steps + (bug("distance counts nodes") and steps > 1)

    def order(self) -> list[str]:
        degree = dict(self.degree)
        free = sorted(node for node, count in degree.items() if not count)
        ordered = []
        if bug("order of two roots") and len(free) > 2:
            free.pop()
        while free:
            ordered.append(free.pop(0))
            for other in sorted(self.after[ordered[-1]]):
                degree[other] -= 1
                if not degree[other]:
                    free.append(other)
        if len(ordered) < len(self.after):
            raise GraphError("there is a cycle")
        return ordered


class GraphMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.graph = Graph()
        self.nodes: set[str] = set()
        self.edges: set[tuple[str, str]] = set()

    def _some(self, which: int) -> str:
        return sorted(self.nodes)[which % len(self.nodes)]

    def _reach(self, start: str) -> dict[str, int]:
        far, layer = {start: 0}, {start}
        while layer:
            layer = {b for a, b in self.edges if a in layer} - far.keys()
            far |= dict.fromkeys(layer, max(far.values()) + 1)
        return far

    def _has_cycle(self) -> bool:
        return any(
            node in self._reach(b) for node in self.nodes for a, b in self.edges if a == node
        )

    @action(node=NODES)
    def add(self, node: int) -> None:
        self.graph.add(f"n{node}")
        self.nodes.add(f"n{node}")

    @action(one=NODES, other=NODES)
    def connect(self, one: int, other: int) -> None:
        self.graph.connect(f"n{one}", f"n{other}")
        self.nodes |= {f"n{one}", f"n{other}"}
        self.edges.add((f"n{one}", f"n{other}"))

    @action(one=NODES, other=NODES, raises=GraphError)
    def disconnect(self, one: int, other: int) -> None:
        self.graph.disconnect(f"n{one}", f"n{other}")
        self.edges.remove((f"n{one}", f"n{other}"))

    @action(which=NODES, when=lambda self: self.nodes)
    def remove(self, which: int) -> None:
        node = self._some(which)
        if (node, node) in self.edges:
            return
        self.graph.remove(node)
        self.nodes.remove(node)
        self.edges = {edge for edge in self.edges if node not in edge}

    @action(one=NODES, other=NODES, when=lambda self: len(self.nodes) > 1)
    def merge(self, one: int, other: int) -> None:
        first, second = self._some(one), self._some(other)
        if first == second or (second, second) in self.edges:
            return
        self.graph.merge(first, second)
        taken = {(first, b) for a, b in self.edges if a == second and b != first}
        self.edges = {edge for edge in self.edges | taken if second not in edge}
        self.nodes.remove(second)

    @action
    def reverse(self) -> None:
        self.graph.reverse()
        self.edges = {(b, a) for a, b in self.edges}

    @action(which=NODES, when=lambda self: self.nodes)
    def reachable(self, which: int) -> None:
        node = self._some(which)
        assert self.graph.reachable(node) == set(self._reach(node)), f"from {node}"

    @action(one=NODES, other=NODES, when=lambda self: self.nodes)
    def distance(self, one: int, other: int) -> None:
        first, second = self._some(one), self._some(other)
        far = self._reach(first).get(second)
        try:
            found = self.graph.distance(first, second)
        except GraphError:
            assert far is None, f"there is a path of {far}"
        else:
            assert found == far, f"{found} != {far}"

    @action
    def order(self) -> None:
        try:
            ordered = self.graph.order()
        except GraphError:
            assert self._has_cycle(), "there is no cycle"
        else:
            assert sorted(ordered) == sorted(self.nodes), f"{ordered} lacks some"
            assert all(ordered.index(a) < ordered.index(b) for a, b in self.edges)

    @invariant
    def has_the_edges(self) -> None:
        found = {(a, b) for a, others in self.graph.after.items() for b in others}
        assert found == self.edges

    @invariant
    def knows_degrees(self) -> None:
        for node, count in self.graph.degree.items():
            incoming = sum(b == node for _, b in self.edges)
            assert count == incoming, f"{node} has {incoming} incoming edges, not {count}"
