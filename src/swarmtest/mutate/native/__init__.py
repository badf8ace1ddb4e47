"""Mutation testing of C programs: mutants are compiled, as many as possible into one program."""
