"""A text with a cursor and undo. All changes go through one function, which bugs make fail."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "undo of a replacement",
    "redo after a change",
    "delete at the end",
    "paste keeps the cursor",
    "join is endless",
)


class EditError(Exception):
    """A change that cannot be made."""


class Text:
    def __init__(self) -> None:
        self.content = ""
        self.cursor = 0
        self.clip = ""
        self.done: list[tuple[int, str, str]] = []
        self.undone: list[tuple[int, str, str]] = []

    def _apply(self, at: int, old: str, new: str) -> None:
        if self.content[at : at + len(old)] != old:
            raise EditError(f"no {old!r} at {at} in {self.content!r}")
        self.content = self.content[:at] + new + self.content[at + len(old) :]
        self.cursor = at + len(new)

    def change(self, at: int, old: str, new: str) -> None:
        self._apply(at, old, new)
        self.done.append((at, old, new))
        if not bug("redo after a change"):
            self.undone.clear()

    def insert(self, text: str) -> None:
        self.change(self.cursor, "", text)

    def delete(self, count: int) -> None:
        end = self.cursor + count
        if not bug("delete at the end"):
            end = min(end, len(self.content))
        old = "".join(self.content[at] for at in range(self.cursor, end))
        self.change(self.cursor, old, "")

    def replace(self, count: int, text: str) -> None:
        self.change(self.cursor, self.content[self.cursor : self.cursor + count], text)

    def undo(self) -> None:
        at, old, new = self.done.pop()
        if bug("undo of a replacement") and old and new:
            new = new[:-1] + "?"
        self._apply(at, new, old)
        self.undone.append((at, old, new))

    def redo(self) -> None:
        at, old, new = self.undone.pop()
        self._apply(at, old, new)
        self.done.append((at, old, new))

    def copy(self, count: int) -> None:
        self.clip = self.content[self.cursor : self.cursor + count]

    def paste(self) -> None:
        before = self.cursor
        self.insert(self.clip)
        if bug("paste keeps the cursor") and len(self.clip) > 2:
            self.cursor = before

    def words(self, at: int = 0) -> list[str]:
        end = self.content.find(" ", at)
        if end < 0:
            return [self.content[at:]]
        follow = at if bug("join is endless") and end > 3 else end + 1
        return [self.content[at:end], *self.words(follow)]


class TextMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.text = Text()
        self.model, self.cursor, self.clip = "", 0, ""
        self.history: list[str] = []
        self.future: list[str] = []

    def _changed(self, new: str, cursor: int) -> None:
        self.history.append(self.model)
        self.future.clear()
        self.model, self.cursor = new, cursor

    def _check(self) -> None:
        assert self.text.content == self.model
        assert self.text.cursor == self.cursor

    @action(word=integers(0, 3))
    def insert(self, word: int) -> None:
        text = ("ab", "c d", "efg ", "")[word]
        self.text.insert(text)
        at = self.cursor
        self._changed(self.model[:at] + text + self.model[at:], at + len(text))
        self._check()

    @action(count=integers(1, 3))
    def delete(self, count: int) -> None:
        self.text.delete(count)
        self._changed(self.model[: self.cursor] + self.model[self.cursor + count :], self.cursor)
        self._check()

    @action(count=integers(1, 3))
    def replace(self, count: int) -> None:
        self.text.replace(count, "xy")
        at = self.cursor
        self._changed(self.model[:at] + "xy" + self.model[at + count :], at + 2)
        self._check()

    @action(when=lambda self: self.history)
    def undo(self) -> None:
        self.text.undo()
        self.future.append(self.model)
        self.model = self.history.pop()
        assert self.text.content == self.model, "undone wrongly"
        self.cursor = self.text.cursor

    @action(when=lambda self: self.text.undone)
    def redo(self) -> None:
        assert self.future, "there is nothing to redo"
        self.text.redo()
        self.history.append(self.model)
        self.model = self.future.pop()
        assert self.text.content == self.model, "redone wrongly"
        self.cursor = self.text.cursor

    @action(place=integers(0, 9))
    def move(self, place: int) -> None:
        self.text.cursor = self.cursor = min(place, len(self.model))

    @action(count=integers(1, 4))
    def copy(self, count: int) -> None:
        self.text.copy(count)
        self.clip = self.model[self.cursor : self.cursor + count]

    @action
    def paste(self) -> None:
        self.text.paste()
        at = self.cursor
        self._changed(self.model[:at] + self.clip + self.model[at:], at + len(self.clip))
        self._check()

    @action
    def words(self) -> None:
        assert self.text.words() == self.model.split(" ")
