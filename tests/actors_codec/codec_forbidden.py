"""A module that no run allows: a test fails if it is ever imported."""

raise AssertionError("a module that is not allowed was imported")
