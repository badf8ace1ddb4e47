"""Concurrency coverage of Python programs, and traces of their runs."""
