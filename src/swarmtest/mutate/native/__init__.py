"""Native."""
