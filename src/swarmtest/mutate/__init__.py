"""Mutate."""
