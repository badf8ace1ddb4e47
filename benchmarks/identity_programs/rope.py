"""A text kept as a tree of pieces: insert, delete, split and index walk the tree."""

from __future__ import annotations

from dataclasses import dataclass

from switches import bug

from swarmtest import Machine, action, integers, invariant, sampled_from

BUGS = (
    "index at a boundary",
    "delete a whole piece",
    "weight of a joined piece",
    "repeat shares one tree",
    "find across pieces",
)
TEXTS = sampled_from(["a", "bc", "def", "ghij"])
PLACES = integers(0, 30)


@dataclass
class Piece:
    text: str = ""
    left: Piece | None = None
    right: Piece | None = None
    weight: int = 0

    def __str__(self) -> str:
        return self.text if self.left is None else f"{self.left}{self.right}"


def length(piece: Piece) -> int:
    if piece.left is None or piece.right is None:
        return len(piece.text)
    return piece.weight + length(piece.right)


def joined(left: Piece, right: Piece) -> Piece:
    if length(left) == 0:
        return right
    if length(right) == 0:
        return left
    weight = length(left)
    if bug("weight of a joined piece") and length(right) == 4 and weight > 4:
        weight -= 1
    return Piece("", left, right, weight)


def split(piece: Piece, at: int) -> tuple[Piece, Piece]:
    if piece.left is None or piece.right is None:
        return Piece(piece.text[:at]), Piece(piece.text[at:])
    if at <= piece.weight:
        left, rest = split(piece.left, at)
        return left, joined(rest, piece.right)
    rest, right = split(piece.right, at - piece.weight)
    return joined(piece.left, rest), right


class Rope:
    def __init__(self) -> None:
        self.root = Piece()

    def insert(self, at: int, text: str) -> None:
        left, right = split(self.root, at)
        self.root = joined(joined(left, Piece(text)), right)

    def delete(self, start: int, count: int) -> None:
        left, rest = split(self.root, start)
        gone, right = split(rest, count)
        if bug("delete a whole piece") and gone.left is None and len(gone.text) == 3:
            left = gone
        self.root = joined(left, right)

    def at(self, index: int) -> str:
        piece = self.root
        while piece.left is not None and piece.right is not None:
            if index < piece.weight or (bug("index at a boundary") and index == piece.weight):
                piece = piece.left
            else:
                index, piece = index - piece.weight, piece.right
        return piece.text[index]

    def repeat(self) -> None:
        """Append the text to itself."""
        self.root = joined(self.root, self.root)
        if bug("repeat shares one tree"):
            self.root.right = self.root

    def find(self, letter: str) -> int:
        if bug("find across pieces") and self.root.left is not None:
            return str(self.root.right).index(letter) + self.root.weight
        return str(self.root).index(letter)


class RopeMachine(Machine):
    steps = 18

    def start(self) -> None:
        self.rope = Rope()
        self.text = ""

    @action(at=PLACES, text=TEXTS)
    def insert(self, at: int, text: str) -> None:
        at %= len(self.text) + 1
        self.rope.insert(at, text)
        self.text = self.text[:at] + text + self.text[at:]

    @action(start=PLACES, count=integers(1, 5), when=lambda self: self.text)
    def delete(self, start: int, count: int) -> None:
        start %= len(self.text)
        count = min(count, len(self.text) - start)
        self.rope.delete(start, count)
        self.text = self.text[:start] + self.text[start + count :]

    @action(index=PLACES, when=lambda self: self.text)
    def at(self, index: int) -> None:
        index %= len(self.text)
        assert self.rope.at(index) == self.text[index]

    @action(when=lambda self: 0 < len(self.text) < 12)
    def repeat(self) -> None:
        self.rope.repeat()
        self.text += self.text

    @action(letter=sampled_from("abdgj"))
    def find(self, letter: str) -> None:
        if letter in self.text:
            found = self.rope.find(letter)
            assert found == self.text.index(letter), f"{letter} at {found} of {self.text}"

    @invariant
    def has_the_text(self) -> None:
        assert str(self.rope.root) == self.text

    @invariant
    def knows_its_length(self) -> None:
        assert length(self.rope.root) == len(self.text)
