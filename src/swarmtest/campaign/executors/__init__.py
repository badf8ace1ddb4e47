"""Executors: where the trials of a campaign run."""
