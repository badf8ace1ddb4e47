"""A suite of the standard library's heapq."""

from __future__ import annotations

from std_heapq import heapify, heappop, heappush, heapreplace, merge, nlargest, nsmallest


def test_heap():
    heap = [5, 3, 8, 1]
    heapify(heap)
    heappush(heap, 0)
    assert [heappop(heap) for _ in range(5)] == [0, 1, 3, 5, 8]
    heap = [2, 3]
    assert heapreplace(heap, 9) == 2


def test_merge():
    assert list(merge([1, 4], [2, 3])) == [1, 2, 3, 4]
    assert list(merge([4, 1], [3, 2], reverse=True)) == [4, 3, 2, 1]
    assert list(merge(["aa"], ["b"], key=len)) == ["b", "aa"]


def test_best():
    assert nlargest(2, [1, 5, 3]) == [5, 3]
    assert nsmallest(1, ["bb", "a"], key=len) == ["a"]
    assert nsmallest(2, [3, 1, 2]) == [1, 2]
