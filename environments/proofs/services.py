"""Services that tests look for on this machine and do not find: no image of ours runs one."""

from __future__ import annotations

import re

_NAMES = {
    "5432": "PostgreSQL",
    "3306": "MySQL",
    "6379": "Redis",
    "11211": "memcached",
    "27017": "MongoDB",
    "5672": "RabbitMQ",
    "9200": "Elasticsearch",
    "9092": "Kafka",
    "389": "LDAP",
    "1433": "SQL Server",
}
"""Ports that clients ask by default, of the IANA registry and the services' own manuals."""

# Output is hostile: every repetition is bounded.
_REFUSED = r"(?:refused|ECONNREFUSED|[Uu]nable to connect|[Cc](?:an't|annot|ould not) connect|errno 111)"
_PORT = rf"(?<![\w.])({'|'.join(_NAMES)})(?!\d)"
_ASKED = (
    re.compile(rf"{_REFUSED}[^\n]{{0,160}}?{_PORT}"),
    re.compile(rf"{_PORT}[^\n]{{0,160}}?{_REFUSED}"),
)
_SOCKETS = (
    (re.compile(r"[Cc]an't connect to (?:local )?(?:MySQL|MariaDB|server)[^\n]{0,80}socket"), "MySQL"),
    (re.compile(r"connection to server on socket [^\n]{0,120}failed"), "PostgreSQL"),
)


def wanted_service(output: str) -> str | None:
    """The service that a run's output says it could not reach; None where it says nothing of the kind."""
    for pattern in _ASKED:
        if found := pattern.search(output):
            return _NAMES[found[1]]
    return next((name for pattern, name in _SOCKETS if pattern.search(output)), None)
