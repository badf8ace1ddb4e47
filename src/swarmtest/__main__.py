"""``python -m swarmtest``: the same as the ``swarmtest`` program."""

from swarmtest.cli import main

main()
