"""GitHub, and GitHub Enterprise: how it names things, and the source that asks its API (`miner.github`)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from miner.citations.urls import COMMIT, NUMBER, UrlForm
from miner.source import Forge, ReadResult, Source, SourceKind
from prchain.core.console.progress import Progress
from prchain.core.settings import Settings
from sql.store import Store

_NAME = r"(?P<name>[a-z0-9][a-z0-9-]{0,38}/[a-z0-9_.-]{1,100})"


def forge_at(host: str) -> Forge:
    """How GitHub names things, at any host."""
    # Bots put redirectors before github.com's addresses, so that citing says nothing to the one who is cited.
    redirector = r"(?P<redirector>redirect\.|to)?" if host == "github.com" else "(?P<redirector>(?!))?"
    address = rf"{redirector}{re.escape(host)}/{_NAME}/(?:(?:pulls?|issues)/{NUMBER}|commits?/{COMMIT})(?![\w-])"
    return Forge(
        title="GitHub",
        host=host,
        pull_heads="refs/pull/*/head",
        urls=UrlForm(("/pull", "/issues/", "/commit"), re.compile(address, re.I | re.A)),
    )


class _GitHub(SourceKind):
    def forge(self, settings: Settings) -> Forge:
        tokens = _tokens(settings)
        # The host that people see: github.com for api.github.com, the server itself for GitHub Enterprise.
        host = (urlsplit(settings.github_api_url).hostname or "github.com").removeprefix("api.")
        return replace(forge_at(host), credentials=f"x-access-token:{tokens[0]}" if tokens else None)

    def lacks(self, settings: Settings) -> str | None:
        return None if settings.github_tokens else "a token; set GITHUB_TOKEN"

    def source(self, settings: Settings, store: Store, progress: Progress) -> Source[Any]:
        from miner.github import GitHubSource  # noqa: PLC0415  the client takes a tenth of a second

        return GitHubSource(
            store,
            forge=self.forge(settings),
            tokens=_tokens(settings),
            api_url=settings.github_api_url,
            max_wait=settings.max_wait_seconds,
            timeout=settings.request_timeout_seconds,
            progress=progress,
        )

    def replay(self, store: Store, repository_id: int) -> ReadResult:
        from miner.github import replay  # noqa: PLC0415  the client takes a tenth of a second, which git need not pay

        return replay(store, repository_id)


def _tokens(settings: Settings) -> tuple[str, ...]:
    return tuple(token.get_secret_value() for token in settings.github_tokens)


SOURCE = _GitHub()
