"""Reporters that are laid into a sandbox, outside the tree, and loaded into its test runner.

They run on what the image has: Python 3.6, pytest 3.0, Node 14 and newer, without any package of ours.
"""
