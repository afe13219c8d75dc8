"""The boundary around observers, which may be third-party code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prchain.core.errors import ObserverFailed, PrchainError
from prchain.core.runs import defect_words


@contextmanager
def observer_errors(name: str) -> Iterator[None]:
    """Turn an observer's unnamed errors into `ObserverFailed` with its name: they are no defect of ours."""
    try:
        yield
    except PrchainError:
        raise
    except Exception as error:  # the boundary to observers: anybody's code, which may raise anything
        raise ObserverFailed(f"the observer {name} failed: {defect_words(error)}") from error
