"""The base of a world: accounts, repositories, ids and the index of all things."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tests.emulator.model import Account, Label, Milestone, Repository
from tests.emulator.objects import iso

T = TypeVar("T")


class Universe:
    """Accounts and repositories, ids for everything, an index by node id, and a clock.

    `changes` counts the mutations; derived data (sorted lists) is valid for one count. `now` is in seconds.
    """

    def __init__(self, seed: int, *, start: int = 1_546_300_800, root: str = "https://github.example") -> None:
        self.seed = seed
        self.root = root
        self.now = start
        self.changes = 0
        self.lock = threading.RLock()
        self.nodes: dict[str, Any] = {}
        self.accounts: dict[str, Account] = {}
        self.repositories: dict[int, Repository] = {}
        self.home: Repository
        """The repository that is mined: the first one."""
        self._names: dict[str, Repository] = {}
        # Close below 2**31, so that the ids of a small world already outgrow GraphQL's Int, as GitHub's have done.
        self._next_key = 2**31 - 4000 + seed % 1000
        self._salt = (seed * 2654435761 + 97) % 2**32

    def key(self) -> int:
        self._next_key += 1
        return self._next_key

    def _id(self, prefix: str, key: int) -> str:
        raw = b"\x93\x00" + self._salt.to_bytes(4, "big") + (key ^ self._salt).to_bytes(6, "big")
        return f"{prefix}_{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"

    def add(self, prefix: str, make: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Make a thing with new ids (`make(id, key, *args)`) and enter it in the index."""
        key = self.key()
        thing = make(self._id(prefix, key), key, *args, **kwargs)
        self.nodes[thing.id] = thing  # type: ignore[attr-defined]
        return thing

    def account(self, login: str, kind: str = "User") -> Account:
        """Return the account of that login; makes it if it is new."""
        if login not in self.accounts:
            prefix = {"User": "U", "Bot": "BOT", "Organization": "O", "Mannequin": "M"}.get(kind, "EUA")
            name = login.replace("-", " ").title()
            self.accounts[login] = self.add(prefix, Account, login, kind, name, self.root)
        return self.accounts[login]

    def repository(self, name_with_owner: str, **kwargs: Any) -> Repository:
        """Return the repository of that name; makes it (public, empty) if it is new."""
        if (found := self.find(name_with_owner)) is not None:
            return found
        owner, _, name = name_with_owner.partition("/")
        kind = "Organization" if not self.repositories else "User"
        repository = self.add("R", Repository, iso(self.now), self.account(owner, kind), name, **kwargs)
        repository.updated_at = iso(self.now)
        self._names[name_with_owner.lower()] = repository
        self.repositories[repository.database_key] = repository
        if len(self.repositories) == 1:
            self.home = repository
        return repository

    def find(self, name_with_owner: str, *, follow: bool = True) -> Repository | None:
        """Return a repository by its name in any case, or, following renames, by a former one."""
        found = self._names.get(name_with_owner.lower())
        if found and not follow and found.name_with_owner.lower() != name_with_owner.lower():
            return None
        return found

    def label(self, name: str) -> Label:
        return self.add("LA", Label, name)

    def milestone(self, title: str, number: int) -> Milestone:
        return self.add("MI", Milestone, title, number)

    def next_number(self, repository: Repository) -> int:
        return max(repository.numbered, default=0) + 1

    def tick(self, seconds: int = 60) -> str:
        """Let time pass and return the new time; every mutation calls it."""
        with self.lock:
            self.now += seconds
            self.changes += 1
            return iso(self.now)
