"""Executors run the tests of a search at its points."""
