"""Directed."""
