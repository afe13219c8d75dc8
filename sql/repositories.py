"""Rows of repositories that are made while others make theirs."""

from __future__ import annotations

from sql.store import Transaction
from sql.tables import Repository


def new_repository(tx: Transaction, host: str, owner: str, name: str, location: str) -> int:
    """The id of a row for a repository that none was there for; of one that another process makes now, where it is
    the same one.

    Two processes may ask for the same next id. The later one waits for the other's end and then sees its row, so it
    takes no id whose row is not its own.
    """
    while True:
        next_id = max((int(id_) for (id_,) in tx.rows(Repository, "id")), default=0) + 1
        full_name = f"{owner}/{name}".lower()
        for id_, its_owner, its_name in tx.rows(Repository, "id", "owner", "name", host=host):
            if f"{its_owner}/{its_name}".lower() == full_name:
                return int(id_)
        row = {"id": next_id, "host": host, "owner": owner, "name": name, "location": location}
        tx.insert_new(Repository, [row])
        if list(tx.rows(Repository, "host", "owner", "name", id=next_id)) == [(host, owner, name)]:
            return next_id
