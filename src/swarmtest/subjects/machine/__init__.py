"""Machines: a program under test as a Python class whose `@action` methods are the features.

`machine` and `generators` are what users write machines with. `subject` runs their tests, with a
loop that `compiled` generates for each class; `test`, `code`, `replay` and `reduction` print, save,
rerun and shrink a test.
"""
