"""Campaigns on a cluster: batches travel to Dask workers, and run there as they do locally."""
