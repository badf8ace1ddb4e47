"""Compare strategies over repeated runs."""
