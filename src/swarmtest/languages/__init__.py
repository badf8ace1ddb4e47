"""Read the code of programs under test, in Python and C, and its history."""
