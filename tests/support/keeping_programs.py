"""Programs whose tests are reduced in test_keeping.py; mutants need them in a file."""

from __future__ import annotations

import os


class Till:
    """A till with a discount; a receipt is only printed when something was sold."""

    def __init__(self) -> None:
        self.sum = 0
        self.sold = 0
        self.receipts: list[int] = []

    def sell(self, price: int) -> int:
        self.sum += price
        self.sold += 1
        if self.sum > 100:
            self.sum -= 1
        return self.sold

    def discount(self) -> None:
        if self.sold >= 2:
            self.sum = self.sum // 2

    def receipt(self) -> int:
        if self.sold:
            self.receipts.append(self.sum)
        return len(self.receipts)

    def countdown(self) -> int:
        left = 3
        while left > 0:
            left -= 1
        return left

    def fragile(self) -> None:
        if self.sold < 0:
            os._exit(9)
