"""Suites: a campaign's tests, few and small, that keep what all of them reached."""

from swarmtest.suites.checking import SavedSuite, save_suite
from swarmtest.suites.choosing import SuiteRequest
from swarmtest.suites.making import make_suite
from swarmtest.suites.suite import Suite, SuiteTest

__all__ = ["SavedSuite", "Suite", "SuiteRequest", "SuiteTest", "make_suite", "save_suite"]
