"""Bookings of rooms. Answers, exceptions with dates in them, and one invariant are checked."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "back to back overlaps",
    "cancel frees one hour",
    "extend ignores the next",
    "move keeps the old one",
    "free rooms of an hour",
    "busiest of an empty day",
)
HOURS = integers(0, 11)
ROOMS = 3


class Taken(Exception):
    """The room is not free."""

    def __init__(self, room: int, hour: int) -> None:
        super().__init__(f"room {room} is taken at {hour:02}:00")


class Calendar:
    def __init__(self) -> None:
        self.bookings: dict[int, tuple[int, int, int]] = {}
        self.hours: list[dict[int, int]] = [{} for _ in range(ROOMS)]
        self.next = 1

    def _take(self, number: int, room: int, begin: int, end: int) -> None:
        for hour in range(begin, end):
            if self.hours[room].get(hour, number) != number:
                raise Taken(room, hour)
        for hour in range(begin, end):
            self.hours[room][hour] = number
        self.bookings[number] = (room, begin, end)

    def _free(self, number: int) -> None:
        room, begin, end = self.bookings.pop(number)
        for hour in range(begin, end):
            del self.hours[room][hour]

    def book(self, room: int, begin: int, length: int) -> int:
        end = begin + length
        if bug("back to back overlaps") and length > 1 and end in self.hours[room]:
            raise Taken(room, end)
        self._take(self.next, room, begin, end)
        self.next += 1
        return self.next - 1

    def cancel(self, number: int) -> None:
        room, begin, end = self.bookings[number]
        if bug("cancel frees one hour") and end - begin == 3:
            del self.bookings[number]
            del self.hours[room][begin]
        else:
            self._free(number)

    def extend(self, number: int) -> None:
        room, begin, end = self.bookings[number]
        if bug("extend ignores the next"):
            self.hours[room][end] = number
            self.bookings[number] = (room, begin, end + 1)
        else:
            self._take(number, room, begin, end + 1)

    def move(self, number: int, room: int) -> None:
        old, begin, end = self.bookings[number]
        if room == old:
            return
        self._take(number, room, begin, end)
        for hour in range(begin, end - (bug("move keeps the old one") and end - begin > 1)):
            del self.hours[old][hour]

    def free_rooms(self, hour: int) -> list[int]:
        if bug("free rooms of an hour"):
            return [room for room in range(ROOMS) if not self.hours[room].get(hour, 0) > 1]
        return [room for room in range(ROOMS) if hour not in self.hours[room]]

    def busiest(self) -> int:
        counts = [len(hours) for hours in self.hours]
        if not any(counts) and bug("busiest of an empty day"):
            return counts.index(1)
        return counts.index(max(counts))


class CalendarMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.calendar = Calendar()
        self.model: dict[int, tuple[int, int, int]] = {}

    def _holder(self, room: int, hour: int) -> int:
        holders = [n for n, (r, b, e) in self.model.items() if r == room and b <= hour < e]
        return holders[0] if holders else 0

    def _some(self, which: int) -> int:
        return sorted(self.model)[which % len(self.model)]

    @action(room=integers(0, 2), begin=HOURS, length=integers(1, 3))
    def book(self, room: int, begin: int, length: int) -> None:
        taken = any(self._holder(room, hour) for hour in range(begin, begin + length))
        try:
            number = self.calendar.book(room, begin, length)
        except Taken:
            if not taken:
                raise
        else:
            assert not taken, f"booked twice: {room}, {begin}"
            self.model[number] = (room, begin, begin + length)

    @action(which=HOURS, when=lambda self: self.model)
    def cancel(self, which: int) -> None:
        number = self._some(which)
        self.calendar.cancel(number)
        del self.model[number]

    @action(which=HOURS, when=lambda self: self.model)
    def extend(self, which: int) -> None:
        number = self._some(which)
        room, begin, end = self.model[number]
        taken = self._holder(room, end)
        try:
            self.calendar.extend(number)
        except Taken:
            assert taken
        else:
            assert not taken, "two bookings in one hour"
            self.model[number] = (room, begin, end + 1)

    @action(which=HOURS, room=integers(0, 2), when=lambda self: self.model)
    def move(self, which: int, room: int) -> None:
        number = self._some(which)
        old, begin, end = self.model[number]
        taken = room != old and any(self._holder(room, hour) for hour in range(begin, end))
        try:
            self.calendar.move(number, room)
        except Taken:
            assert taken
        else:
            assert not taken
            self.model[number] = (room, begin, end)

    @action(hour=HOURS)
    def free_rooms(self, hour: int) -> None:
        free = [room for room in range(ROOMS) if not self._holder(room, hour)]
        assert self.calendar.free_rooms(hour) == free

    @action
    def busiest(self) -> None:
        lengths = [sum(e - b for r, b, e in self.model.values() if r == room) for room in range(3)]
        assert lengths[self.calendar.busiest()] == max(lengths)

    @invariant
    def hours_are_those_of_bookings(self) -> None:
        for room, hours in enumerate(self.calendar.hours):
            for hour in range(16):
                assert hours.get(hour, 0) == self._holder(room, hour), f"room {room} at {hour}"
