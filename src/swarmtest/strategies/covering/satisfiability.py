"""A small DPLL solver, enough for feature constraints of a few hundred short clauses.

Davis, Logemann, Loveland: A machine program for theorem-proving (1962).
"""

from collections.abc import Iterable, Mapping, Sequence

Clause = tuple[int, ...]


class Clauses:
    """Constraints on numbered features, as a conjunction of DIMACS clauses."""

    def __init__(self, clauses: Iterable[Sequence[int]], features: int) -> None:
        self.features = features
        self.all: list[Clause] = [tuple(dict.fromkeys(clause)) for clause in clauses]
        for literal in (literal for clause in self.all for literal in clause):
            if not 1 <= abs(literal) <= features:
                raise ValueError(f"literal {literal} names no feature out of 1..{features}")
        self._containing: dict[int, list[Clause]] = {}
        for clause in self.all:
            for literal in clause:
                self._containing.setdefault(literal, []).append(clause)
        self._units = [clause[0] for clause in self.all if len(clause) == 1]
        self._contradictory = () in self.all
        self._order = sorted(range(1, features + 1), key=self._occurrences, reverse=True)

    def solve(
        self, assumed: Iterable[int], preferred: Mapping[int, bool] | None = None
    ) -> dict[int, bool] | None:
        """A full assignment that holds ``assumed``, near ``preferred``; None if there is none."""
        values: dict[int, bool] = {}
        if self._contradictory or not self._propagate([*assumed, *self._units], values):
            return None
        preferred = preferred or {}
        # Each decision keeps the trail length before it, so that undoing needs no copies.
        decisions: list[tuple[int, int, bool]] = []
        position = 0
        while position < len(self._order):
            feature = self._order[position]
            if feature in values:
                position += 1
                continue
            literal = feature if preferred.get(feature, False) else -feature
            decisions.append((literal, len(values), False))
            while not self._propagate([decisions[-1][0]], values):
                if not self._flip_last(decisions, values):
                    return None
                position = 0
        return values

    def allow_flip(self, model: Mapping[int, bool], feature: int) -> bool:
        """Whether ``model``, which satisfies the clauses, still does with one feature flipped."""
        lost = feature if model[feature] else -feature
        return all(
            any(model[abs(other)] == (other > 0) for other in clause if other != lost)
            for clause in self._containing.get(lost, ())
        )

    def _occurrences(self, feature: int) -> int:
        return len(self._containing.get(feature, ())) + len(self._containing.get(-feature, ()))

    @staticmethod
    def _flip_last(decisions: list[tuple[int, int, bool]], values: dict[int, bool]) -> bool:
        while decisions:
            literal, trail, flipped = decisions.pop()
            while len(values) > trail:
                values.popitem()
            if not flipped:
                decisions.append((-literal, trail, True))
                return True
        return False

    def _propagate(self, literals: Iterable[int], values: dict[int, bool]) -> bool:
        """Set literals and all that follow by unit propagation; False on a contradiction."""
        queue = list(literals)
        while queue:
            literal = queue.pop()
            known = values.get(abs(literal))
            if known is not None:
                if known != (literal > 0):
                    return False
                continue
            values[abs(literal)] = literal > 0
            for clause in self._containing.get(-literal, ()):
                implied = self._implied(clause, values)
                if implied == 0:
                    return False
                if implied is not None:
                    queue.append(implied)
        return True

    @staticmethod
    def _implied(clause: Clause, values: Mapping[int, bool]) -> int | None:
        """The one literal left open; 0 if the clause is violated; None if nothing follows."""
        left = 0
        for literal in clause:
            value = values.get(abs(literal))
            if value is None:
                if left:
                    return None
                left = literal
            elif value == (literal > 0):
                return None
        return left
