"""Test logs: what a run says of each test, and the log of our own reporters, which is signed.

What runners print or write by themselves their own parsers read (`environments.suites.runners`); the code under test
can write it too (`environments.suites.testruns` says what is made of that).
"""

from __future__ import annotations

from environments.suites.testlogs.events import EventLog, read_events, sign
from environments.suites.testlogs.values import Status, did_run, failures, join, uncoloured, worst

__all__ = ["EventLog", "Status", "did_run", "failures", "join", "read_events", "sign", "uncoloured", "worst"]
