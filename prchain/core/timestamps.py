"""Times as every table and export keeps them: text, UTC, ISO 8601 with seconds (``2024-05-01T12:30:00Z``)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

FORMAT = "%Y-%m-%dT%H:%M:%SZ"
"""Sorts as it reads, on every database."""


def now() -> str:
    """The time."""
    return stamp(datetime.now(UTC))


def stamp(time: datetime) -> str:
    """A time of four digits of year; one without a zone is taken for UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).strftime(FORMAT).zfill(20)


def of_unix(seconds: int) -> str:
    """The time of so many seconds since 1970, which are not negative."""
    days, rest = divmod(seconds, 86_400)
    return f"{_day(days)}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


@cache
def _day(days: int) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(days):%Y-%m-%d}"
