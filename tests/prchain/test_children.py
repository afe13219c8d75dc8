"""The programs that run are known, whoever starts, forgets and ends them."""

from __future__ import annotations

import subprocess
import threading

from prchain.core.processes.children import forget_child, start_child


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def test_a_program_is_forgotten_while_its_thread_starts_another_as_the_garbage_collector_does() -> None:
    abandoned = start_child(sleeper)
    started: list[subprocess.Popen[bytes]] = []

    def collected_while_starting() -> subprocess.Popen[bytes]:
        abandoned.kill()
        abandoned.wait()
        forget_child(abandoned)
        return sleeper()

    thread = threading.Thread(target=lambda: started.append(start_child(collected_while_starting)), daemon=True)
    thread.start()
    thread.join(10)
    assert len(started) == 1, "the thread waits for itself"
    started[0].kill()
    started[0].wait()
    forget_child(started[0])
