"""Free."""
