"""The log of a run, for operators: what the package's own loggers say, on standard error or in a file.

Modules log by `logging.getLogger(__name__)`: INFO for what is done, WARNING for what went wrong and is tried again,
DEBUG for details. Texts that models are sent, what they reply and what commands print are never logged. Whatever is
written passes `prchain.core.secrets.scrub.redact`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from prchain.core.console.terminal import clean
from prchain.core.errors import PrchainError, UsageError
from prchain.core.secrets.scrub import redact

PACKAGES = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
"""Packages whose loggers are used. What libraries log may hold whole requests."""

_LONGEST_MESSAGE = 200
"""Characters of an exception's words beside its traceback: they may quote a text."""

log = logging.getLogger(__name__)


@contextmanager
def open_log(verbosity: int, file: Path | None, secrets: Callable[[], tuple[str, ...]]) -> Iterator[None]:
    """Write the log until the end of the block: to `file`, or where there is none and `verbosity` is not 0, to standard
    error. From 2 on DEBUG is in it.

    `secrets` is called before the first line is written. With neither, only errors are shown, as bare lines. A nested
    block uses the outer block's log. Raises `UsageError` for a file that cannot be written.
    """
    if (
        not verbosity
        and file is None
        and any(isinstance(handler, _LogHandler) for handler in logging.getLogger("prchain").handlers)
    ):
        yield
        return
    handlers: list[logging.Handler] = []
    if file is not None:
        handlers.append(_LogFile(file))
    elif verbosity:
        handlers.append(_Terminal())
    for handler in handlers:
        handler.setFormatter(_LineFormatter(secrets))
    if file is not None or not verbosity:
        bare = _Terminal(logging.ERROR)
        bare.setFormatter(_LineFormatter(secrets, "%(message)s"))
        handlers.append(bare)
    level = logging.DEBUG if verbosity > 1 else logging.INFO if verbosity or file is not None else logging.NOTSET
    loggers = [logging.getLogger(name) for name in PACKAGES]
    previous_levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, previous_level in zip(loggers, previous_levels, strict=True):
            logger.setLevel(previous_level)
            for handler in handlers:
                logger.removeHandler(handler)
        for handler in handlers:
            handler.close()


@contextmanager
def logged_command(words: str) -> Iterator[None]:
    """Log when a command begins, and how it ends."""
    started = time.monotonic()
    log.info("%s begins", words)
    try:
        yield
    except BaseException as error:
        code = getattr(error, "exit_code", None)
        how = f"ends with {code}" if code is not None else f"is cut off by {type(error).__name__}"
        why = f": {error.name}: {error}" if isinstance(error, PrchainError) else ""
        log.info("%s %s after %.1f s%s", words, how, time.monotonic() - started, why)
        if code is None or why:
            log.debug("%s was in", words, exc_info=True)
        raise
    log.info("%s is done after %.1f s", words, time.monotonic() - started)


class _LogHandler(logging.Handler):
    """A handler of `open_log`."""

    _failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        # Once, and without Python's traceback: whatever else writes there reports a full disk.
        if not self._failed:
            self._failed = True
            with contextlib.suppress(OSError, ValueError):  # standard error itself may be gone
                sys.stderr.write("prchain: the log cannot be written any more\n")


class _LogFile(_LogHandler, logging.FileHandler):
    def __init__(self, file: Path) -> None:
        try:
            super().__init__(file, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(f"the log file {file} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of what is not written yet; that was told
            super().close()


class _Terminal(_LogHandler, logging.StreamHandler[TextIO]):
    """Standard error at the time of writing: a progress bar may have replaced it, and prints above itself."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        logging.Handler.__init__(self, level)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _LineFormatter(logging.Formatter):
    """One line a record, and one for each frame of a traceback; without secrets, times in UTC."""

    converter = staticmethod(time.gmtime)

    def __init__(
        self,
        secrets: Callable[[], tuple[str, ...]],
        layout: str = "%(asctime)s.%(msecs)03dZ %(levelname)-7s %(threadName)s %(name)s: %(message)s",
    ) -> None:
        super().__init__(layout, "%Y-%m-%dT%H:%M:%S")
        self._find_secrets = secrets
        self._secrets: tuple[str, ...] | None = None

    def format(self, record: logging.LogRecord) -> str:
        return self._clean(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        return clean(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  logging's name
        """Where it was raised, and a few of its words: some exceptions quote their whole input."""
        error = ei[1] if isinstance(ei, tuple) else None
        parts: list[str] = []
        while isinstance(error, BaseException) and len(parts) < 10:
            words = clean(self._clean(str(error)))[:_LONGEST_MESSAGE]  # a secret must not be cut in two
            frames = "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
            parts.append(f"{frames}\n{type(error).__qualname__}: {words}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nraised from\n".join(parts)

    def _clean(self, text: str) -> str:
        if self._secrets is None:
            self._secrets = self._find_secrets()
        return redact(text, self._secrets)
