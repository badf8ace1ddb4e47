"""The experiments of "A platform for search-based testing of concurrent software" (PADTAD 2010).

    python benchmarks/search.py [--quick] [--program NAME] [--store FILE] [--pictures DIRECTORY]
    python benchmarks/search.py --exploration STORE:CAMPAIGN ... [--pictures DIRECTORY]

Tables 3 and 4 and figures 2 to 5 of the paper, on Python ports of its programs with real threads:
which settings of noise reach most? A whole space of settings is explored for each program, and
what is recorded is searched again. `--store` keeps the explorations; `--exploration` studies one
that is there, of these programs or of any other search.

Targets: variables that threads share, pairs of places one after the other (and whether the thread
changed), synchronisation (visited, blocked, blocking), and faults. Beyond the paper: what was
chosen with hindsight is run again with other seeds. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness import print_figures, progress
from race_ways import loaded
from search_spaces import NONE, PROGRAMS, Program, Settings, explored
from search_tables import Effort, Tables, replayed_per_second

from swarmtest import Store, open_store
from swarmtest.core.errors import UserError
from swarmtest.search import Exploration


def grown(runs: int) -> Settings:
    return Settings((0, 600), runs, kinds=("mixed",), heuristics=(NONE, "shared_only"))


FULL = Effort(Settings((0, 10, 100, 300, 1000), 5, strengths=(1, 10)), 100, grown(100), 100)
QUICK = Effort(
    Settings(
        (0, 100, 1000), 3, strengths=(3,), heuristics=(NONE, "halt_one_thread", "shared_only")
    ),
    12,
    grown(12),
    20,
)
QUICK_PROGRAMS = ("web_crawler",)


def recorded(text: str) -> Exploration:
    path, _, campaign = text.rpartition(":")
    if not path or not campaign.isdigit():
        raise UserError(f"an exploration is STORE:CAMPAIGN, like search.db:1, not {text!r}")
    with open_store(path, must_exist=True, read_only=True) as store:
        exploration = Exploration.load(store, int(campaign))
    if not exploration.targets:
        raise UserError(f"{text} has no targets: its tests told no hits, so there is no coverage")
    exploration.name += f"-{campaign}"
    return exploration


def made(name: str, tables: Tables, store: Store) -> tuple[Exploration, dict[str, Any]]:
    """A program's whole space, and all that is told of it."""
    with loaded(name) as subject:
        program = Program(subject)
        progress(f"{name}: all settings")
        exploration = explored(program.space(tables.effort.settings), store)
        progress(f"{name}: a few settings, many runs; then searches of what is recorded")
        tables.grow(explored(program.space(tables.effort.grown), store))
        return exploration, tables.study(exploration) | tables.run_again(program, exploration)


def summary(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How far apart best and random sequences are, and hill climbing and random search."""
    kinds = [of_kind for one in found.values() for of_kind in one["kinds"].values()]
    ratios = [one["random_sequence"] / one["best_sequence"] for one in kinds]
    figures: dict[str, Any] = {
        "random_vs_best_min": min(ratios),
        "random_vs_best_max": max(ratios),
        "hill_wins": sum(one["hill"] > one["random"] for one in kinds),
        "random_wins": sum(one["random"] > one["hill"] for one in kinds),
    }
    pairs = [one["kinds"]["pair"] for one in found.values() if "pair" in one["kinds"]]
    if pairs:
        figures["pairs_random_vs_best_min"] = min(
            one["random_sequence"] / one["best_sequence"] for one in pairs
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one program, fewer settings")
    parser.add_argument("--store", default=":memory:", metavar="FILE", help="keep explorations")
    parser.add_argument("--exploration", action="append", metavar="STORE:CAMPAIGN")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="only this one")
    parser.add_argument("--pictures", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    tables = Tables(QUICK if options.quick else FULL, options.pictures)
    found: dict[str, dict[str, Any]] = {}
    try:
        for text in options.exploration or ():
            exploration = recorded(text)
            found[exploration.name] = tables.study(exploration)
        if not found:
            with open_store(options.store) as store:
                for name in options.program or (QUICK_PROGRAMS if options.quick else PROGRAMS):
                    exploration, found[name] = made(name, tables, store)
    except UserError as error:
        parser.error(str(error))
    tables.show()
    replayed = replayed_per_second(exploration)
    live = found[exploration.name]["points"] / found[exploration.name]["cpu_seconds"]
    print(f"replayed {replayed:,.0f} points per CPU second; {exploration.name} itself {live:,.0f}")
    print_figures(
        {"quick": options.quick, "programs": found}
        | summary(found)
        | {"replay_vs_live": replayed / live}
    )


if __name__ == "__main__":
    main()
