"""Reading and writing coverage in the formats of other tools: LCOV, Cobertura, coverage.py."""
