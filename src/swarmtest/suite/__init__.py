"""Regression suites: few, short tests of a campaign that keep what the whole campaign reached."""
