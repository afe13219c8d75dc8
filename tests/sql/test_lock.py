"""The lock of a database: one holder, told in one line, and gone with its holder."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from prchain.core.errors import StoreInUse
from sql.lock import exclusive_lock, wait_for_lock
from sql.store import Store
from tests.databases import open_new
from tests.endpoint import wait_for

ROOT = Path(__file__).parents[2]

HOLD = """
import sys, time
from sql.lock import exclusive_lock, wait_for_lock
from sql.store import Store
with exclusive_lock(Store.open(sys.argv[1]), "tasks", "prchain tasks build"):
    print("held", flush=True)
    time.sleep(60)
"""


def is_free(store: Store) -> bool:
    """Whether the lock can be had."""
    with suppress(StoreInUse), exclusive_lock(store, "tasks", "prchain tasks build"):
        return True
    return False


def test_one_at_a_time_each_work_for_itself_and_free_again_afterwards(store: Store) -> None:
    with exclusive_lock(store, "tasks", "prchain tasks build"):
        with pytest.raises(StoreInUse) as caught, exclusive_lock(store, "tasks", "prchain tasks build"):
            pass
        assert "another `prchain tasks build` is at work" in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.exit_code == 1
        with exclusive_lock(store, "rollouts", "prchain rollouts"), store.transaction(), store.reading():
            pass
    with pytest.raises(KeyError), exclusive_lock(store, "tasks", "prchain tasks build"):
        raise KeyError("of the work")
    with exclusive_lock(store, "tasks", "prchain tasks build"):
        pass


def test_a_killed_holder_leaves_no_lock(store: Store, database_url: str) -> None:
    command = [sys.executable, "-c", HOLD, database_url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(StoreInUse), exclusive_lock(store, "tasks", "prchain tasks build"):
            pass
        holder.kill()
    wait_for(lambda: is_free(store))  # a server takes a moment to see that its client is gone


def test_who_waits_for_a_lock_gets_it_when_its_holder_is_done(store: Store) -> None:
    order: list[str] = []

    def second() -> None:
        with wait_for_lock(store, "image", "x"):
            order.append("second")

    with exclusive_lock(store, "image", "x"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_a_lock_that_was_given_back_is_free_at_once_also_while_programs_are_started(store: Store) -> None:
    stop = threading.Event()

    def starts_programs() -> None:
        while not stop.is_set():
            subprocess.run(["true"], check=True)

    threads = [threading.Thread(target=starts_programs) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            with exclusive_lock(store, "tasks", "x"):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_database_opened_by_another_name_is_the_same_one(tmp_path: Path) -> None:
    first = open_new(tmp_path / "prchain.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "prchain.db")
    second = Store.open(str(tmp_path / "link.db"))
    with exclusive_lock(first, "tasks", "x"), pytest.raises(StoreInUse), exclusive_lock(second, "tasks", "x"):
        pass
    first.close()
    second.close()


def test_locks_of_which_there_are_thousands_leave_no_files_and_still_keep_others_out(tmp_path: Path) -> None:
    store = open_new(tmp_path / "prchain.db")
    inside = most = 0
    counting = threading.Lock()

    def work(_: int) -> None:
        nonlocal inside, most
        with suppress(StoreInUse), exclusive_lock(store, "one", "x"):
            with counting:
                inside += 1
                most = max(most, inside)
            with counting:
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(400)))
    assert most == 1
    with exclusive_lock(store, "one", "x"), pytest.raises(StoreInUse), exclusive_lock(store, "one", "x"):
        pass
    assert not list(tmp_path.glob("*.lock"))
    store.close()
