"""A prefix tree of words with counts; questions are answered in the actions."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, sampled_from

BUGS = (
    "removing a prefix of a word",
    "longest prefix stops at a gap",
    "rename drops a taken word",
    "words of an empty prefix",
    "count is kept on overwrite",
)
WORDS = sampled_from(["a", "ab", "abc", "abd", "b", "ba", "bad", "bade", "c", "cab"])


class Node:
    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.value: int | None = None
        self.below = 0


class PrefixTree:
    def __init__(self) -> None:
        self.root = Node()

    def _walk(self, word: str) -> list[Node]:
        node, path = self.root, [self.root]
        for letter in word:
            if letter not in node.children:
                break
            node = node.children[letter]
            path.append(node)
        return path

    def add(self, word: str, value: int) -> None:
        known = len(self._walk(word)) > len(word) and self._walk(word)[-1].value is not None
        node = self.root
        for letter in word:
            if not known or (bug("count is kept on overwrite") and len(word) > 2):
                node.below += 1
            node = node.children.setdefault(letter, Node())
        node.value = value

    def remove(self, word: str) -> int:
        path = self._walk(word)
        if len(path) <= len(word) or path[-1].value is None:
            raise KeyError(f"no word {word}")
        value, path[-1].value = path[-1].value, None
        for node in path[:-1]:
            node.below -= 1
        for parent, letter in zip(path[-2::-1], reversed(word), strict=False):
            child = parent.children[letter]
            if child.value is None and (
                not child.children or (bug("removing a prefix of a word") and len(word) == 2)
            ):
                del parent.children[letter]
        return value

    def longest_prefix(self, word: str) -> str:
        best = 0
        for depth, node in enumerate(self._walk(word)):
            if node.value is not None:
                best = depth
            elif bug("longest prefix stops at a gap") and depth:
                break
        return word[:best]

    def words(self, prefix: str) -> list[str]:
        path = self._walk(prefix)
        if len(path) <= len(prefix):
            if bug("words of an empty prefix"):
                return [prefix[0] + word for word in self.words(prefix[1:])]
            return []
        found: list[str] = []
        self._collect(path[-1], prefix, found)
        return found

    def _collect(self, node: Node, word: str, found: list[str]) -> None:
        if node.value is not None:
            found.append(word)
        for letter in sorted(node.children):
            self._collect(node.children[letter], word + letter, found)

    def rename(self, word: str, new: str) -> None:
        value = self.remove(word)
        taken = new in self.words(new)
        if taken and bug("rename drops a taken word"):
            self.remove(new)
            return
        self.add(new, value)


class PrefixMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.tree = PrefixTree()
        self.model: dict[str, int] = {}
        self.clock = 0

    @action(word=WORDS)
    def add(self, word: str) -> None:
        self.clock += 1
        self.tree.add(word, self.clock)
        self.model[word] = self.clock

    @action(word=WORDS, raises=KeyError)
    def remove(self, word: str) -> None:
        expected = self.model.pop(word, None)
        if expected is not None:
            found = self.tree.remove(word)
            assert found == expected, f"{word} had {found}, not {expected}"
        else:
            self.tree.remove(word)

    @action(word=WORDS)
    def longest_prefix(self, word: str) -> None:
        found = self.tree.longest_prefix(word)
        wanted = max((w for w in self.model if word.startswith(w)), key=len, default="")
        assert found == wanted, f"longest prefix of {word} is {found!r}, not {wanted!r}"

    @action(prefix=WORDS)
    def words(self, prefix: str) -> None:
        wanted = sorted(word for word in self.model if word.startswith(prefix))
        assert self.tree.words(prefix) == wanted

    @action(word=WORDS, new=WORDS, when=lambda self: self.model)
    def rename(self, word: str, new: str) -> None:
        if word not in self.model:
            word = min(self.model)
        self.tree.rename(word, new)
        self.model[new] = self.model.pop(word)

    @action
    def count(self) -> None:
        below, words = self.tree.root.below, len(self.model)
        assert below == words, f"{below} words are counted, {words} are there"

    @action
    def every_word(self) -> None:
        for word in self.model:
            assert word in self.tree.words(word[0]), f"{word} is lost"
