"""Which service a run's output says it could not reach."""

from __future__ import annotations

import time

import pytest

from environments.proofs.services import wanted_service


@pytest.mark.parametrize(
    ("line", "service"),
    [
        ('connection to server at "127.0.0.1", port 5432 failed: Connection refused', "PostgreSQL"),
        ("redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.", "Redis"),
        ("Error: connect ECONNREFUSED 127.0.0.1:27017", "MongoDB"),
        ("dial tcp [::1]:5672: connect: connection refused", "RabbitMQ"),
        ("(2002, \"Can't connect to local MySQL server through socket '/run/mysqld/mysqld.sock' (2)\")", "MySQL"),
        ("(2002, \"Can't connect to local server through socket '/run/mysqld/mysqld.sock' (2)\")", "MySQL"),
        ('connection to server on socket "/run/postgresql/.s.PGSQL.5432" failed: No such file', "PostgreSQL"),
        ("dial tcp 127.0.0.1:54321: connect: connection refused", None),
        ("assert 5432 == 5433", None),
        ("ConnectionRefusedError: [Errno 111] Connection refused", None),
        ("tests/test_redis.py::test_6379 PASSED", None),
    ],
)
def test_the_port_or_the_socket_that_refuses_names_the_service(line: str, service: str | None) -> None:
    assert wanted_service(f"first\n{line}\nlast") == service


@pytest.mark.parametrize("piece", ["refused ", "5432 ", "Can't connect to MySQL ", "refused\n5432\n"])
def test_a_long_output_takes_no_time(piece: str) -> None:
    began = time.monotonic()
    wanted_service(piece * (400_000 // len(piece)))
    assert time.monotonic() - began < 5
