"""A heap of tasks with handles. Sifting is shared by everything that changes the heap."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "sift down looks left only",
    "handles after a swap",
    "remove the last task",
    "raise priority upwards",
    "merge keeps the places",
    "peek of one task",
)
PRIORITIES = integers(0, 20)
TASKS = integers(0, 11)


class Tasks:
    def __init__(self) -> None:
        self.heap: list[tuple[int, int]] = []
        self.places: dict[int, int] = {}

    def _swap(self, one: int, other: int) -> None:
        self.heap[one], self.heap[other] = self.heap[other], self.heap[one]
        self.places[self.heap[one][1]] = one
        if not (bug("handles after a swap") and other > 4):
            self.places[self.heap[other][1]] = other

    def _up(self, at: int) -> None:
        while at and self.heap[at] < self.heap[(at - 1) // 2]:
            self._swap(at, (at - 1) // 2)
            at = (at - 1) // 2

    def _down(self, at: int) -> None:
        while 2 * at + 1 < len(self.heap):
            child = 2 * at + 1
            right = child + 1
            is_less = right < len(self.heap) and self.heap[right] < self.heap[child]
            if is_less and not bug("sift down looks left only"):
                child = right
            if self.heap[at] <= self.heap[child]:
                break
            self._swap(at, child)
            at = child

    def add(self, task: int, priority: int) -> None:
        self.places[task] = len(self.heap)
        self.heap.append((priority, task))
        self._up(len(self.heap) - 1)

    def pop(self) -> int:
        if not self.heap:
            raise IndexError("there is no task")
        task = self.heap[0][1]
        self.remove(task)
        return task

    def remove(self, task: int) -> None:
        at = self.places.pop(task)
        last = self.heap.pop()
        if last[1] == task and not bug("remove the last task"):
            return
        self.heap[at] = last
        self.places[last[1]] = at
        self._down(at)
        self._up(at)

    def change(self, task: int, priority: int) -> None:
        at = self.places[task]
        before, _ = self.heap[at]
        self.heap[at] = (priority, task)
        if priority < before and not (bug("raise priority upwards") and at > 2):
            self._up(at)
        elif priority > before:
            self._down(at)

    def peek(self) -> int:
        if bug("peek of one task") and len(self.heap) == 1:
            return self.heap[1][1]
        return self.heap[0][1]

    def merge(self, others: list[tuple[int, int]]) -> None:
        self.heap += others
        self.heap.sort()
        if not bug("merge keeps the places") or len(others) < 2:
            self.places = {task: at for at, (_, task) in enumerate(self.heap)}
        else:
            for _, task in others:
                self.places[task] = len(self.places)


class TasksMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.tasks = Tasks()
        self.model: dict[int, int] = {}

    def _best(self) -> tuple[int, int]:
        return min((priority, task) for task, priority in self.model.items())

    def _check(self) -> None:
        heap = self.tasks.heap
        for at in range(1, len(heap)):
            assert heap[(at - 1) // 2] <= heap[at], f"{heap[at]} is above {heap[(at - 1) // 2]}"
        assert sorted(heap) == sorted((p, t) for t, p in self.model.items()), "other tasks"

    @action(task=TASKS, priority=PRIORITIES)
    def add(self, task: int, priority: int) -> None:
        if task in self.model:
            return
        self.tasks.add(task, priority)
        self.model[task] = priority
        self._check()

    @action(when=lambda self: self.model)
    def pop(self) -> None:
        assert self.tasks.pop() == self._best()[1]
        del self.model[self._best()[1]]
        self._check()

    @action(task=TASKS, when=lambda self: self.model)
    def remove(self, task: int) -> None:
        chosen = sorted(self.model)[task % len(self.model)]
        self.tasks.remove(chosen)
        del self.model[chosen]
        self._check()

    @action(task=TASKS, priority=PRIORITIES, when=lambda self: self.model)
    def change(self, task: int, priority: int) -> None:
        chosen = sorted(self.model)[task % len(self.model)]
        self.tasks.change(chosen, priority)
        self.model[chosen] = priority
        self._check()

    @action(when=lambda self: self.model)
    def peek(self) -> None:
        assert self.tasks.peek() == self._best()[1]

    @action(task=TASKS, count=integers(1, 3), priority=PRIORITIES)
    def merge(self, task: int, count: int, priority: int) -> None:
        new = [(priority + k, task + k) for k in range(count) if task + k not in self.model]
        self.tasks.merge(new)
        self.model |= {task: priority for priority, task in new}
        self._check()
