"""Dask."""
