"""Settings that are read when they are first needed, by several threads, without a lock."""

from __future__ import annotations

from threaded import run_threads

TEXT = "host=localhost port=80 user=me retries=3 mode=fast"


class Settings:
    """Parsed at the first use."""

    def __init__(self) -> None:
        self.values: dict[str, str] | None = None
        self.loads = 0

    def load(self) -> None:
        self.values = {}
        self.loads += 1
        for pair in TEXT.split():
            name, _, value = pair.partition("=")
            self.values[name] = value

    def get(self, name: str) -> str:
        if self.values is None:
            self.load()
        assert self.values is not None
        return self.values[name]


def serves(settings: Settings) -> None:
    for number in range(4):
        "-".join([str(number)] * 3)
    settings.get("mode")


WORKERS = [serves, serves, serves]


def setup() -> Settings:
    return Settings()


def holds(settings: Settings) -> bool:
    return settings.loads == 1


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
