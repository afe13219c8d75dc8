"""Tests among the hidden ones whose result is known beforehand: a run that tells another one was not honest.

What code under test does in the runner's process cannot be excluded, but it does not know which tests are hidden ones.
One that makes tests pass makes these pass as well. Code that knows the hidden tests' names can spare them.
"""
