"""The emulator: a world served over HTTP, with limits, a log and faults."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.emulator import answers
from tests.emulator.answers import Answer, json_answer
from tests.emulator.clock import VirtualClock
from tests.emulator.faults import WITHHELD, Call, Fault, Kind
from tests.emulator.graphql_api import GraphQLApi, Prepared
from tests.emulator.http import HttpServer
from tests.emulator.limits import Meter, Meters
from tests.emulator.rest import RestApi
from tests.emulator.world import World

ANONYMOUS_BUDGET = 60
_BENDS = frozenset({Kind.SHORT_PAGE, Kind.LOST_CURSOR, Kind.REPEATED_CURSOR})


@dataclass(frozen=True)
class Exchange:
    """One request and what became of it. `started` is the emulator's time, `early` means sooner than it was told to."""

    method: str
    path: str
    query: dict[str, str]
    operation: str | None
    variables: dict[str, Any]
    token: str | None
    status: int
    points: int
    nodes: int
    started: float
    fault: str | None
    resource: str
    page_size: int | None
    early: bool


class Emulator:
    """Serves a world on 127.0.0.1 at a free port while the context is open.

    `tokens` maps accepted tokens to their hourly points (GraphQL and REST apart); another token answers 401. `clock`
    gives the time in seconds for limits and resets; by default a `VirtualClock`, which only moves when told to.
    `rate_limit=False` serves like a GitHub Enterprise Server without limits: `rateLimit` null, no headers.
    """

    def __init__(
        self,
        world: World,
        *,
        tokens: dict[str, int] | None = None,
        faults: Sequence[Fault] = (),
        clock: Callable[[], float] | None = None,
        page_cap: int = 40_000,
        rate_limit: bool = True,
    ) -> None:
        self.world = world
        self.tokens = dict(tokens) if tokens is not None else {"test-token": 5000}
        self.faults = list(faults)
        self.clock: Any = clock if clock is not None else VirtualClock()
        self.rate_limit = rate_limit
        self.log: list[Exchange] = []
        self.meters = Meters({**self.tokens, "": ANONYMOUS_BUDGET}, self.clock)
        self._graphql = GraphQLApi(world)
        self._not_before: dict[tuple[str, str], float] = {}
        self._previous: dict[str, Answer] = {}
        self._server = HttpServer(self.answer)
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.api_url = f"{self.url}/api/v3"
        self._rest = RestApi(world, self.api_url, page_cap)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Emulator:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    @property
    def requests(self) -> int:
        """How many requests were answered, failures and 304s too."""
        return len(self.log)

    def points(self, token: str | None = None) -> int:
        """Return the GraphQL points charged to a token, or to all."""
        return self.meters.total(token, "graphql")

    def rest_points(self, token: str | None = None) -> int:
        """Return the REST requests charged to a token, or to all."""
        return self.meters.total(token, "core")

    @property
    def early(self) -> list[Exchange]:
        """The requests that came sooner than a Retry-After or a reset allowed."""
        return [exchange for exchange in self.log if exchange.early]

    # -- answering -----------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[Answer, Fault | None]:
        """Answer one request and log it; the fault returned is one of transport."""
        with self.world.lock:
            return self._answer(method, target, headers, body)

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[Answer, Fault | None]:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        token = _token(headers.get("Authorization"))
        is_graphql = method == "POST" and parts.path.rstrip("/").endswith("/graphql")
        path = parts.path.removeprefix("/api/v3") or "/"
        prepared, request = (self._prepare(body)) if is_graphql else (None, {})
        variables: dict[str, Any] = request.get("variables") or {}
        resource = "graphql" if is_graphql else "core"
        page_size = prepared.cost.page_size if prepared and prepared.cost else None
        if prepared is None and "per_page" in query and query["per_page"].isdigit():
            page_size = int(query["per_page"])
        call = Call(
            method, path, query, prepared.operation if prepared else None, variables, token, resource, page_size
        )
        struck = [fault for fault in self.faults if fault.strikes(call)]
        started = self.clock()
        answer = self._truth_or_fault(call, prepared, request, headers, struck)
        early = any(started < self._not_before.get((token or "", what), 0.0) for what in (resource, "all"))
        self._note_wait(token, resource, answer, started)
        for fault in struck:
            answer = answers.rewritten(answer, fault)
        cost = prepared.cost if prepared else None
        self.log.append(
            Exchange(
                method,
                path,
                query,
                call.operation,
                variables,
                token,
                answer.status,
                answer.points,
                cost.nodes if cost else 0,
                started,
                ",".join(fault.kind for fault in struck) or None,
                resource,
                page_size,
                early,
            )
        )
        for fault in struck:
            if fault.change is not None:
                fault.change(self.world)
        transport = {Kind.TRUNCATED, Kind.RESET, Kind.SLOW, Kind.DRIP}
        return answer, next((fault for fault in struck if fault.kind in transport), None)

    def _prepare(self, body: bytes) -> tuple[Prepared, dict[str, Any]]:
        try:
            request = json.loads(body)
            query = request["query"]
        except (ValueError, KeyError, TypeError):
            return Prepared(
                None, None, None, ({"message": "A query attribute must be specified and must be a string."},)
            ), {}
        return self._graphql.prepare(query, request.get("variables") or {}, request.get("operationName")), request

    def _truth_or_fault(
        self, call: Call, prepared: Prepared | None, request: dict[str, Any], headers: Any, struck: list[Fault]
    ) -> Answer:
        token = call.token
        if (token is None and prepared is not None) or (token is not None and token not in self.tokens):
            return answers.bad_credentials()
        meter = self.meters.of(token or "", call.resource)
        for fault in struck:
            if fault.kind is Kind.EXHAUSTED:
                meter.exhaust()
            if fault.kind is Kind.REPEATED_PAGE and (call.operation or call.path) in self._previous:
                return self._previous[call.operation or call.path]
            if (failure := answers.instead(fault, meter, self.clock())) is not None:
                # a query that ran into a gateway's patience has cost what it costs
                if failure.status in {502, 504} and prepared and prepared.cost:
                    failure.points = prepared.cost.points
                    meter.charge(failure.points)
                return self._with_limits(failure, meter)
        if call.path == "/rate_limit":
            return self._with_limits(self._limits(token or ""), meter)
        if self.rate_limit and meter.remaining <= 0:
            return self._with_limits(answers.limit_reached(meter, "1"), meter)
        if prepared is not None:
            answer = self._query(call, prepared, request, meter, struck)
        elif call.method == "GET":
            answer = self._rest.get(call.path, call.query, "viewer")
            answer = self._tagged(answer, headers.get("If-None-Match"))
            if answer.status != 304:
                answer.points = 1
                meter.charge(1)
        else:
            answer = answers.not_found()
        if any(fault.kind is Kind.BAD_JSON for fault in struck):
            answer.body = answer.body[:-1] + b',"'
        answer = self._with_limits(answer, meter)
        self._previous[call.operation or call.path] = answer
        return answer

    def _query(
        self, call: Call, prepared: Prepared, request: dict[str, Any], meter: Meter, struck: list[Fault]
    ) -> Answer:
        if prepared.errors or prepared.cost is None:
            return json_answer(200, {"errors": list(prepared.errors)})
        cost = prepared.cost
        meter.charge(cost.points)
        bend = next((str(fault.kind) for fault in struck if fault.kind in _BENDS), None)
        body = self._graphql.run(
            prepared,
            call.variables,
            request.get("operationName"),
            rate_limit=meter.graphql(cost.points, cost.nodes) if self.rate_limit else None,
            viewer="viewer",
            bend=bend,
        )
        for fault in struck:
            if fault.kind is Kind.RESOURCE_LIMITS_200:
                answers.starve(body, fault.keep)
            elif fault.kind in WITHHELD:
                answers.withhold(body, fault)
        answer = json_answer(200, body)
        answer.points = cost.points
        return answer

    def _limits(self, token: str) -> Answer:
        if not self.rate_limit:
            return answers.message(404, "Rate limiting is not enabled.")
        core, graphql = self.meters.of(token, "core").rest(), self.meters.of(token, "graphql").rest()
        return json_answer(200, {"resources": {"core": core, "graphql": graphql}, "rate": core})

    def _with_limits(self, answer: Answer, meter: Meter) -> Answer:
        headers = meter.headers() if self.rate_limit else {}
        return Answer(answer.status, answer.body, headers | answer.headers, answer.points)

    @staticmethod
    def _tagged(answer: Answer, known: str | None) -> Answer:
        if answer.status != 200:
            return answer
        tag = f'W/"{hashlib.sha256(answer.body).hexdigest()}"'
        answer.headers["ETag"] = tag
        return Answer(304, b"", answer.headers) if known == tag else answer

    def _note_wait(self, token: str | None, resource: str, answer: Answer, now: float) -> None:
        """Remember until when a client was told to stay away: from everything, or from a resource that is spent."""
        headers = answer.headers
        spent = headers.get("x-ratelimit-remaining") == "0"
        if "Retry-After" in headers:
            self._not_before[token or "", "all"] = now + float(headers["Retry-After"])
        elif spent and (answer.status in {403, 429} or b'"RATE_LIMITED"' in answer.body[:80]):
            self._not_before[token or "", resource] = float(headers["x-ratelimit-reset"])


def _token(header: str | None) -> str | None:
    if not header:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() in {"token", "bearer"} else header
