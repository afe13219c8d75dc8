"""A bare client of the emulator: nothing is retried, hidden or interpreted."""

from __future__ import annotations

from typing import Any

import requests

from tests.emulator import Emulator

TOKEN = "test-token"

LISTING = """
query Listing($first: Int!, $after: String, $field: IssueOrderField = CREATED_AT, $direction: OrderDirection = ASC) {
  rateLimit { cost limit remaining used resetAt nodeCount }
  repository(owner: "acme", name: "widgets") {
    pullRequests(first: $first, after: $after, orderBy: {field: $field, direction: $direction}) {
      totalCount
      pageInfo { hasNextPage endCursor hasPreviousPage startCursor }
      nodes { id number createdAt updatedAt }
    }
  }
}
"""


class Client:
    """One connection, one token."""

    def __init__(self, emulator: Emulator, token: str | None = TOKEN) -> None:
        self.emulator = emulator
        self.session = requests.Session()
        self.session.trust_env = False
        if token is not None:
            self.session.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def post(self, query: str, **variables: Any) -> requests.Response:
        body: Any = {"query": query, "variables": variables}
        return self.session.post(f"{self.emulator.url}/api/graphql", json=body, timeout=10)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the body of a GraphQL answer."""
        body: dict[str, Any] = self.post(query, **variables).json()
        return body

    def get(self, path: str, **headers: str) -> requests.Response:
        url = f"{self.emulator.api_url}{path}"
        return self.session.get(url, headers=headers, timeout=10, allow_redirects=False)

    def listing(self, first: int = 20, **variables: Any) -> dict[str, Any]:
        """Return one page of pull requests."""
        page: dict[str, Any] = self.ask(LISTING, first=first, **variables)["data"]["repository"]["pullRequests"]
        return page

    def numbers(self, first: int = 20, **variables: Any) -> list[int]:
        """Return the numbers of all pull requests, page by page."""
        found: list[int] = []
        after: str | None = None
        while True:
            page = self.listing(first, after=after, **variables)
            found += [node["number"] for node in page["nodes"]]
            after = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                return found
