"""Controlled runs: a scheduler decides which thread runs, one at a time."""
