"""Read Python: statements, control flow, and the places where functions are called."""
