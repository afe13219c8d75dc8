"""The addresses under which people find what a chain is made of."""

from __future__ import annotations


def pull_request_url(host: str, full_name: str, number: int) -> str:
    """The page of a pull request, in the form that GitHub and those like it have: no row says which forge it was."""
    return f"https://{host}/{full_name}/pull/{number}"
