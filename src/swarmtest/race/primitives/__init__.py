"""Replacements for Python's locks, threads and clocks that ask the current policy."""
