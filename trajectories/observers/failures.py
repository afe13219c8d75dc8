"""The boundary around observers, which are anybody's code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prchain.errors import ObserverFailed, PrchainError
from prchain.runs import defect_words


@contextmanager
def observer_errors(name: str) -> Iterator[None]:
    """Name the observer in what it raises without a name: no defect of ours. Raises `ObserverFailed`."""
    try:
        yield
    except PrchainError:
        raise
    except Exception as error:  # the boundary
        raise ObserverFailed(f"the observer {name} failed: {defect_words(error)}") from error
