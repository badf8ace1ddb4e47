"""Reducer."""
