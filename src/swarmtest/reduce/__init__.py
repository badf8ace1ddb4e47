"""Reduce."""
