"""HTTP answers in GitHub's shapes, the failing ones above all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.emulator.faults import Fault, Kind
from tests.emulator.limits import Meter

DOCS = "https://docs.github.example/rest"
SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    " If you reach out to GitHub Support for help, please include the request ID 0000:EMULATOR."
)


@dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    points: int = 0


def json_answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Answer:
    """Return a JSON answer; text goes out in ASCII with escapes, so NUL and lone surrogates arrive as they are."""
    content = json.dumps(body, separators=(",", ":")).encode("ascii")
    return Answer(status, content, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})


def message(status: int, text: str, **fields: Any) -> Answer:
    return json_answer(status, {"message": text, "documentation_url": DOCS, "status": str(status), **fields})


def bad_credentials() -> Answer:
    return message(401, "Bad credentials")


def not_found() -> Answer:
    return message(404, "Not Found")


def limit_reached(meter: Meter, login: str) -> Answer:
    """Return the answer for a used-up budget: 403 for REST, 200 with RATE_LIMITED for GraphQL."""
    text = f"API rate limit exceeded for user ID {login}."
    if meter.resource == "graphql":
        return json_answer(200, {"errors": [{"type": "RATE_LIMITED", "code": "graphql_rate_limit", "message": text}]})
    return message(403, text)


_GATEWAY = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
)


def instead(fault: Fault, meter: Meter, now: float) -> Answer | None:
    """Return the fault's own answer; None where the fault changes the true answer or its transport."""
    kind, wait = fault.kind, {"Retry-After": str(fault.seconds)}
    if kind in {Kind.RETRY_AFTER_403, Kind.SECONDARY_403, Kind.RETRY_AFTER_429, Kind.BARE_429}:
        answer = message(429 if "429" in kind else 403, SECONDARY)
        answer.body = answer.body.replace(
            DOCS.encode(), f"{DOCS}/rate-limits-for-the-rest-api#about-secondary-rate-limits".encode()
        )
        if kind in {Kind.RETRY_AFTER_403, Kind.RETRY_AFTER_429}:
            answer.headers |= wait
        return answer
    if kind in {Kind.PRIMARY_403, Kind.RATE_LIMITED_200}:
        answer = limit_reached(meter, "1")
        if kind is Kind.PRIMARY_403:
            answer = message(403, "API rate limit exceeded for user ID 1.")
        answer.headers |= {
            "x-ratelimit-remaining": "0",
            "x-ratelimit-used": str(meter.limit),
            "x-ratelimit-reset": str(int(now) + fault.seconds),
        }
        return answer
    if kind is Kind.UNAUTHORIZED_401:
        return bad_credentials()
    if kind is Kind.SOMETHING_WENT_WRONG_200:
        text = (
            "Something went wrong while executing your query. Please include `0000:EMULATOR` when reporting this issue."
        )
        return json_answer(200, {"data": None, "errors": [{"message": text}]})
    gateway = {
        Kind.BAD_GATEWAY_502: (502, "502 Bad Gateway"),
        Kind.UNAVAILABLE_503: (503, "503 Service Unavailable"),
        Kind.GATEWAY_TIMEOUT_504: (504, "504 Gateway Timeout"),
    }
    if kind in gateway:
        status, title = gateway[kind]
        return Answer(status, _GATEWAY.format(title).encode(), {"Content-Type": "text/html"})
    if kind is Kind.SERVER_ERROR_500:
        return message(500, "Server Error")
    plain = {
        Kind.HTML_200: b"<!DOCTYPE html><html><body>Unicorn! GitHub is down for maintenance.</body></html>",
        Kind.EMPTY_200: b"",
        Kind.NULL_200: b"null",
    }
    if kind in plain:
        content = "text/html; charset=utf-8" if kind is Kind.HTML_200 else "application/json; charset=utf-8"
        return Answer(200, plain[kind], {"Content-Type": content})
    return None


def rewritten(answer: Answer, fault: Fault) -> Answer:
    """Return the answer with the fault's headers and, where it rewrites, the body that it makes of the true one."""
    body = answer.body
    if fault.rewrite is not None and body:
        body = json.dumps(fault.rewrite(json.loads(body)), separators=(",", ":")).encode("ascii")
    return Answer(answer.status, body, answer.headers | dict(fault.headers), answer.points)


def starve(body: dict[str, Any], keep: int) -> None:
    """Remove all but the first `keep` nodes from a GraphQL answer, as its compute budget would."""
    data = body.get("data") or {}
    path: list[str | int] = []
    found: Any = data
    while isinstance(found, dict) and "nodes" not in found:
        name = next((key for key, value in found.items() if isinstance(value, dict) and key != "rateLimit"), None)
        if name is None:
            break
        path.append(name)
        found = found[name]
    if isinstance(found, dict) and isinstance(found.get("nodes"), list):
        nodes = found["nodes"]
        path += ["nodes", min(keep, len(nodes))]
        nodes[keep:] = [None] * len(nodes[keep:])
    error = {"type": "RESOURCE_LIMITS_EXCEEDED", "path": path, "message": "Resource limits for this query exceeded."}
    body.setdefault("errors", []).append(error)


def withhold(body: dict[str, Any], fault: Fault) -> None:
    """Take a connection from every pull request of a GraphQL answer, or some of its nodes."""
    for path, pull in list(pulls_in(body.get("data"), ())):
        connection = pull.get(fault.field)
        if not isinstance(connection, dict) or not connection["nodes"]:
            continue
        if fault.kind is Kind.NULL_NODES_200:
            connection["nodes"][fault.keep :] = [None] * len(connection["nodes"][fault.keep :])
        elif fault.kind is Kind.LOST_NODES_200:
            del connection["nodes"][fault.keep :]
        else:
            pull[fault.field] = None
        if fault.kind is Kind.FORBIDDEN_FIELD_200:
            text = "Resource not accessible by personal access token"
            error = {"type": "FORBIDDEN", "path": [*path, fault.field], "message": text}
            body.setdefault("errors", []).append(error)


def pulls_in(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """The pull requests of an answer with their paths; what is inside one is none."""
    if isinstance(value, dict) and {"id", "number"} <= value.keys():
        yield path, value
    elif isinstance(value, dict | list):
        for name, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from pulls_in(inside, (*path, name))
