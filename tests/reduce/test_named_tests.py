"""Tests that a user names: by the trial of a campaign, by a fault, or by a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.reduce.named_tests import _regenerated


def test_a_test_that_takes_too_long_to_generate_again_says_so() -> None:
    def test_of(configuration: Any, seed: int) -> None:
        while True:
            pass

    subject: Any = SimpleNamespace(test_of=test_of)
    with pytest.raises(UserError, match=r"takes longer than 50 ms: raise --timeout"):
        _regenerated(subject, Space(["a"]).default(), 1, seconds=0.05)
