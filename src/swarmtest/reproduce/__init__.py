"""Turn a fault into a report for an issue tracker: a script that needs no swarmtest, checked."""
