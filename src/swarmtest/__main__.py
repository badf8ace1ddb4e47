"""``python -m swarmtest``: the same as the ``swarmtest`` program."""

from swarmtest.ui.cli import main

main()
